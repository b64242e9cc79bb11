"""What is wrong with an endpoint, as findings: cause, how to mend it, what it was seen by, where it is known from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog.symptoms import find_symptom
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator


def diagnosis(*, rule: str, part: str, cause: str, mend: str, seen: str = "", source: str = "") -> Finding:
    """Return one thing that is wrong.

    Args:
        rule: Its rule.
        part: The part of the endpoint.
        cause: What is wrong, as a sentence.
        mend: How to mend it, as an imperative.
        seen: What it was seen by: a status, a reason, a line of a log.
        source: Where the cause is known from; empty where what was seen says it.
    """
    return Finding(rule, Place(resource=part), cause, mend, source=source, evidence=seen)


def by_symptom(part: str, lines: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the cause that lines tell, if they tell one that the catalog knows."""
    if (match := find_symptom(lines)) is not None:
        known = match.symptom
        yield diagnosis(
            rule=known.rule, part=part, cause=known.cause, mend=known.mend, seen=match.line, source=known.source
        )
