"""What is wrong with an endpoint: each thing with its cause, how to mend it, and where that is known from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.catalog.symptoms import find_symptom

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One thing that is wrong.

    Attributes:
        rule: Its rule.
        part: The part of the endpoint.
        cause: What is wrong, as a sentence.
        mend: How to mend it, as an imperative.
        seen: What it was seen by: a status, a reason, a line of a log.
        source: Where the cause is known from; empty where what was seen says it.
    """

    rule: str
    part: str
    cause: str
    mend: str
    seen: str = ""
    source: str = ""


def by_symptom(part: str, lines: tuple[str, ...]) -> Iterator[Diagnosis]:
    """Yield the cause that lines tell, if they tell one that the catalog knows."""
    if (found := find_symptom(lines)) is not None:
        known = found.symptom
        yield Diagnosis(
            rule=known.rule, part=part, cause=known.cause, mend=known.mend, seen=found.line, source=known.source
        )
