"""A value of a template with its place: known, unknown until deployment, or absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_lint.cloudformation.intrinsic import is_function, is_no_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class TemplateValue:
    """A value at a path of a resource.

    Attributes:
        path: Names and indices from the resource on, with dots between them.
        raw: What the template has there; `None` where it has nothing.
    """

    path: str
    raw: JsonValue

    def at(self, *names: str) -> TemplateValue:
        """Return the value below; below an intrinsic function everything is that function."""
        value = self
        for name in names:
            value = value._below(name)
        return value

    def _below(self, name: str) -> TemplateValue:
        path = f"{self.path}.{name}"
        if is_function(self.raw):
            return TemplateValue(path, self.raw)
        below = self.raw.get(name) if isinstance(self.raw, dict) else None
        return TemplateValue(path, None if is_no_value(below) else below)

    @property
    def is_absent(self) -> bool:
        """Nothing is written here; what only the deployment knows counts as written."""
        return self.raw is None

    @property
    def is_known(self) -> bool:
        """Something is written here that the template alone tells."""
        return self.raw is not None and not is_function(self.raw)

    @property
    def text(self) -> str | None:
        """The text or the number written here; `None` when there is none."""
        if isinstance(self.raw, str):
            return self.raw
        return f"{self.raw}" if isinstance(self.raw, int | float) and not isinstance(self.raw, bool) else None

    @property
    def number(self) -> float | None:
        """The number written here, also as text, which CloudFormation accepts; `None` when there is none."""
        if isinstance(self.raw, bool) or not isinstance(self.raw, int | float | str):
            return None
        try:
            return float(self.raw)
        except (ValueError, OverflowError):
            return None

    @property
    def flag(self) -> bool | None:
        """The boolean written here, also as text; `None` when there is none."""
        return {"true": True, "false": False}.get(f"{self.raw}".lower())

    @property
    def items(self) -> tuple[TemplateValue, ...]:
        """The items of the list written here; none of anything else."""
        if not isinstance(self.raw, list):
            return ()
        given = enumerate(self.raw)
        return tuple(TemplateValue(f"{self.path}.{index}", item) for index, item in given if not is_no_value(item))

    @property
    def fields(self) -> Mapping[str, TemplateValue]:
        """The fields of the mapping written here; none of anything else."""
        if not isinstance(self.raw, dict) or is_function(self.raw):
            return {}
        return {name: self.at(name) for name, value in self.raw.items() if value is not None and not is_no_value(value)}
