"""Traps from the engines' sources and issue trackers, as rows of data: what stands together, and what comes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_versions import within
from seatrial_base.catalog.rows import CatalogTable
from seatrial_lint.lint.rules import finding, rule
from seatrial_lint.lint.subject import hub_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_base.rules import Severity
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.subject import Subject

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
_COMPARED = re.compile(r"([<>])(.+)")


@dataclass(frozen=True, slots=True, eq=False)
class Trap:
    """One trap.

    Attributes:
        rule: The rule's ID.
        dialects: Those that have it.
        when: Names (`|` between several that mean one thing) and what their value must be: `*` for any, words with `|`
            between them, `!` before words that it must not be, `~` before a part of the text, `>2` or `<2`, or `<` and
            another name, for numbers, `hub` for a repository of the hub, `capital` for True or FALSE.
        message: What the container does; `{version}`, `{key}` and `{value}` are filled in.
        fix: How to mend it.
        source: Where it was read, with commit, issue or pull request.
        date: When.
        without: Names none of which is written.
        since: First version; `None` for every.
        until: Last version, a prefix.
        severity: How bad it is; `None` for the rule's own.
    """

    rule: str
    dialects: tuple[str, ...]
    when: dict[str, str]
    message: str
    fix: str
    source: str
    date: str
    without: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    severity: str | None = None
    named: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Note the names of the first condition, by which rows are found."""
        object.__setattr__(self, "named", tuple(next(iter(self.when)).split("|")))


TRAPS: Final = CatalogTable(Trap, "engine_options.json#traps", key="named")


@rule(
    "SEA344",
    "SEA345",
    "SEA346",
    "SEA347",
    "SEA348",
    "SEA349",
    "SEA354",
    "SEA355",
    "SEA356",
    "SEA357",
    "SEA358",
    "SEA359",
    "SEA375",
    "SEA376",
    "SEA377",
)
def every(subject: Subject) -> Iterator[Finding]:
    """Rows that hold for a configuration."""
    target = subject.target
    if target is None:
        return
    written = {option.name: option for option in subject.options}
    for row in dict.fromkeys(row for name in written for row in TRAPS.having(name)):
        holds = target.dialect in row.dialects and within(target.version, row.since, row.until)
        if holds and (at := _place(row, written)):
            words = {"version": target.called, "key": at.entry.key, "value": at.value}
            message, fix = (_filled(text, words) for text in (row.message, row.fix))
            yield finding(subject, row.rule, at.entry, message, fix, severity=_severity(row.severity))


def _severity(text: str | None) -> Severity | None:
    return "error" if text == "error" else "warning" if text == "warning" else "note" if text == "note" else None


def _filled(text: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def _place(row: Trap, written: dict[str, NamedOption]) -> NamedOption | None:
    """Return the option of the first condition when all hold."""
    if any(name in written for name in row.without):
        return None
    places = [_held(names, wanted, written) for names, wanted in row.when.items()]
    return places[0] if all(places) else None


def _held(names: str, wanted: str, written: dict[str, NamedOption]) -> NamedOption | None:
    option = _first(names, written)
    return option if option and _is(option.value, wanted, written) else None


def _first(names: str, written: dict[str, NamedOption]) -> NamedOption | None:
    return next((written[name] for name in names.split("|") if name in written), None)


def _is(value: str, wanted: str, written: dict[str, NamedOption]) -> bool:
    text = value.strip().lower()
    if wanted in ("*", "hub", "capital"):
        return wanted == "*" or (hub_id(value) if wanted == "hub" else text in ("true", "false") and value != text)
    if compared := _COMPARED.fullmatch(wanted):
        return _compares(text, compared[1], compared[2], written)
    if wanted.startswith("~"):
        return wanted[1:].lower() in text
    if wanted.startswith("!"):
        return bool(text) and text not in wanted[1:].lower().split("|")
    return text in wanted.lower().split("|")


def _compares(text: str, how: str, with_what: str, written: dict[str, NamedOption]) -> bool:
    other = _first(with_what, written)
    than = with_what if _NUMBER.fullmatch(with_what) else other.value.strip() if other else ""
    if not (_NUMBER.fullmatch(text) and _NUMBER.fullmatch(than)):
        return False
    return float(text) < float(than) if how == "<" else float(text) > float(than)
