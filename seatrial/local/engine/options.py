"""Typed reading of options that are written as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from seatrial.local.engine.settings import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Options:
    """Options by name, read with their type; a value of the wrong type is refused with its name."""

    values: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return an option as it's written, without the space around it."""
        return self.values.get(name, default).strip()

    def flag(self, name: str) -> bool:
        """Return whether an option is `true` in any case; an absent one is not."""
        return self.text(name).lower() == "true"

    def whole(self, name: str, *, least: int = 1) -> int | None:
        """Return an option that must be a whole number of at least `least`; None when it's absent.

        Raises:
            LocalError: SEA605, the value isn't such a number.
        """
        value = self._read(name, int, "a whole number")
        if value is not None and value < least:
            raise refusal(f"{value} must be at least {least}", field=name)
        return value

    def share(self, name: str) -> float | None:
        """Return an option that must be a number above 0 and at most 1; None when it's absent.

        Raises:
            LocalError: SEA605, the value isn't such a number.
        """
        value = self._read(name, float, "a number")
        if value is not None and not 0 < value <= 1:
            raise refusal(f"{value} must be above 0 and at most 1", field=name)
        return value

    def _read(self, name: str, kind: Callable[[str], Number], what: str) -> Number | None:
        written = self.text(name)
        if not written:
            return None
        try:
            return kind(written)
        except ValueError:
            raise refusal(f"{written!r} is not {what}", field=name) from None
