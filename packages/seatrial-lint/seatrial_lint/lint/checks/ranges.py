"""Values out of the range that the engine takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_versions import within
from seatrial_base.catalog.rows import CatalogTable
from seatrial_lint.lint.rules import finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.subject import Subject
    from seatrial_lint.lint.target import TargetContainer


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be.

    Attributes:
        dialects: Those that refuse another.
        names: Options, without prefix.
        least: Smallest value that is taken; `None` for no end.
        most: Largest value; `None` for no end.
        above: The value that is not taken any more below `least`: the range is open there.
        but: Single values that are taken beside the range.
        values: The only values that are taken; empty for a range.
        source: Where it was read.
        date: When.
        since: First version; `None` for every.
        until: Last version, a prefix.
    """

    dialects: tuple[str, ...]
    names: tuple[str, ...]
    source: str
    date: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    but: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    since: str | None = None
    until: str | None = None

    def takes(self, number: float) -> bool:
        """Say whether a number is taken."""
        if number in self.but or number in self.values:
            return True
        low = (self.least is not None and number < self.least) or (self.above is not None and number <= self.above)
        return not (self.values or low or (self.most is not None and number > self.most))

    @property
    def shown(self) -> str:
        """The range for people."""
        if self.values:
            return ", ".join(f"{value:g}" for value in self.values)
        low = f"{self.least:g} or more" if self.least is not None else f"above {self.above:g}"
        both = f"{low}, at most {self.most:g}" if self.most is not None else low
        return f"{both}, or {', '.join(f'{value:g}' for value in self.but)}" if self.but else both


RANGES: Final = CatalogTable(Range, "engine_options.json#ranges", key="names")


@rule("SEA318")
def limits(subject: Subject) -> Iterator[Finding]:
    """A number that the engine refuses."""
    target = subject.target
    for option in subject.options if target else ():
        row = _broken_range(target, option) if target and option.space != "server" else None
        if target and row:
            message = f"{option.value.strip()} is out of range: {target.called} does not start with it"
            yield finding(subject, "SEA318", option.entry, message, f"valid: {row.shown}")


def _broken_range(target: TargetContainer, option: NamedOption) -> Range | None:
    """Return the first range of a target that an option's number is outside of."""
    number = _number(option)
    held = (
        row
        for row in RANGES.having(option.name)
        if target.dialect in row.dialects and within(target.version, row.since, row.until)
    )
    return None if number is None else next((row for row in held if not row.takes(number)), None)


def _number(option: NamedOption) -> float | None:
    try:
        number = float(option.value.strip())
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None  # noqa: PLR2004 (longer digits are no setting)
