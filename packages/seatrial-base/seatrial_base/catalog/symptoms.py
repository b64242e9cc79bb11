"""Messages of containers and SageMaker when an endpoint fails, and their meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.rows import CatalogTable, Sourced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Rules of the causes by which AWS has no instance to give, the account may have no more, or no instance has room.
LACK_OF_CAPACITY: Final = ("SEA752", "SEA753")
_COLOR: Final = re.compile(r"(?:\x1b|\ufffd|#033)\[[0-9;]*[A-Za-z]")
"""An escape sequence: as it is, as printable text shows it, and as CloudWatch writes it."""
_LINE_BREAK: Final = re.compile(r"\n|(?<!\\)\\n|#012")
_HARMLESS: Final = re.compile(
    r"^[\d\s:.,TZ/+-]*(?:\([^)]{1,80}\) ?)?\[? ?(?:INFO|WARN(?:ING)?|DEBUG)\b(?!.{0,200}-std(?:err|out))"
)
"""The beginning of a line that tells of no error; DJL Serving passes the errors of its workers on as such lines."""
_ERROR: Final = re.compile(
    r"(?:^|[\s:\]|(\"'])(?:[A-Za-z_][\w.]*(?:Error|Exception)(?:: |\()|[Ee]rror: |(?:fatal|FATAL): |panicked )"
)
_FOLLOWS: Final = re.compile(
    r"see root cause above|stack trace (?:above )?for the root cause|(?:workerproc|engine ?core\S*).{0,20}"
    r"(?:failed|initialization)|shard(?:cannotstart|failed| \d+ (?:failed|terminated))|error: downloaderror"
    r"|webserverfailed|calledprocesserror|childfailederror|keyboardinterrupt|brokenpipe|cancellederror",
    re.IGNORECASE,
)
"""Errors that only follow from another one."""
_PLACE: Final = re.compile(r"\{(\w+)\|([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Symptom(Sourced):
    """A text that tells a cause.

    Attributes:
        pattern: Regular expression of the text, whatever its case.
        cause: What is wrong, as a sentence; `{role|the role}` is the group `role` (`role2`) of the pattern, else `the
            role`.
        mend: How to fix it, as an imperative; likewise.
        is_general: Whether the text tells only that something failed: any other text says more.
    """

    name: str
    rule: str
    pattern: str
    cause: str
    mend: str
    is_general: bool = False


@dataclass(frozen=True, slots=True)
class SymptomMatch:
    """A symptom, the line in which it is, and what the line names."""

    symptom: Symptom
    line: str
    names: Mapping[str, str] = field(default_factory=dict)

    def filled(self, text: str, **known: str) -> str:
        """Return the cause or remedy with the names of the line, and what else is `known`, in their places."""
        names = {**self.names, **known}
        return _PLACE.sub(lambda place: names.get(place[1]) or place[2], text)


# Of two in one line, the earlier one says more.
SYMPTOMS: Final = CatalogTable(Symptom, "symptoms.json")


def find_symptom(lines: Iterable[str]) -> SymptomMatch | None:
    """Return the symptom of the last line that has one; a general one only where no line has another."""
    last_first = [line for line in reversed(plain_lines(lines)) if not _HARMLESS.match(line)]
    for is_general in (False, True):
        rows = [(each, _compiled(each.pattern)) for each in SYMPTOMS.rows if each.is_general is is_general]
        for line in last_first:
            for symptom, pattern in rows:
                if (match := pattern.search(line)) is not None:
                    groups = match.groupdict()
                    return SymptomMatch(symptom, line, {key.rstrip("23"): text for key, text in groups.items() if text})
    return None


def last_error(lines: Iterable[str], *, after: SymptomMatch | None = None) -> str:
    """Return the last line that states an error which does not follow from another one; empty without one.

    `after`: only what comes after this symptom's line is read.
    """
    last_first = takewhile(lambda line: after is None or line != after.line, reversed(plain_lines(lines)))
    stated = (line for line in last_first if _ERROR.search(line) and not _HARMLESS.match(line))
    return next((line for line in stated if not _FOLLOWS.search(line)), "")


def plain_lines(lines: Iterable[str]) -> list[str]:
    """Return lines without colors and blank ones; what a line of JSON escapes are lines of their own."""
    pieces = (piece for line in lines for piece in _LINE_BREAK.split(_COLOR.sub("", line)))
    return [plain for piece in pieces if (plain := piece.strip())]


def is_lack_of_capacity(reason: str) -> bool:
    """Return whether a failure says that no instance has room for a copy, or that the account may have no more."""
    match = find_symptom(reason.splitlines())
    return match is not None and match.symptom.rule in LACK_OF_CAPACITY


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
