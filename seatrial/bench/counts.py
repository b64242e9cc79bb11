"""How many requests and tokens one worker's share of a level had; shares add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.bench.record import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many requests there were, and how they ended.

    Attributes:
        requests: Measured requests that ended.
        succeeded: Those answered in full.
        errors: How many of them failed, by error class.
        first_errors: The first failure of each class in the service's own words, those of the ramp too.
        retried: How many failures were repeated, by error class, those of the ramp too.
        ramp_requests: Requests sent before, not measured.
        ramp_errors: How many of these failed, by error class.
        duration_s: First request sent to last request ended, ramp included; the longest of the shares'.
    """

    requests: int
    succeeded: int
    errors: Mapping[str, int]
    first_errors: Mapping[str, str]
    retried: Mapping[str, int]
    ramp_requests: int
    ramp_errors: Mapping[str, int]
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The lengths of the measured requests that succeeded.

    Attributes:
        read: Sum of the prompts' tokens, of those that told them.
        prompts: How many did.
        written: Sum of the answers' tokens, of those that told them.
        answers: How many did.
        parts: Pieces that carried the streamed ones among these answers.
        written_in_parts: Their tokens.
    """

    read: int
    prompts: int
    written: int
    answers: int
    parts: int
    written_in_parts: int


def counts_of(first: Sequence[RequestRecord], measured: Sequence[RequestRecord]) -> Counts:
    """Count the requests of a share: the ramp's and the measured ones, at least one of either."""
    every = (*first, *measured)
    return Counts(
        requests=len(measured),
        succeeded=sum(record.succeeded for record in measured),
        errors=_by_frequency(record.error for record in measured if record.error is not None),
        first_errors=first_of_each(
            (record.error, f"{record.error}: {record.detail}") for record in every if record.error is not None
        ),
        retried=_by_frequency(name for record in every for name in record.retried),
        ramp_requests=len(first),
        ramp_errors=_by_frequency(record.error for record in first if record.error is not None),
        duration_s=max(record.ended_s for record in every) - min(record.sent_s for record in every),
    )


def added_counts(shares: Sequence[Counts]) -> Counts:
    """Add up the counts of shares, at least one."""
    return Counts(
        requests=sum(share.requests for share in shares),
        succeeded=sum(share.succeeded for share in shares),
        errors=_by_frequency(*(share.errors for share in shares)),
        first_errors=first_of_each(item for share in shares for item in share.first_errors.items()),
        retried=_by_frequency(*(share.retried for share in shares)),
        ramp_requests=sum(share.ramp_requests for share in shares),
        ramp_errors=_by_frequency(*(share.ramp_errors for share in shares)),
        duration_s=max(share.duration_s for share in shares),
    )


def tokens_of(succeeded: Iterable[RequestRecord]) -> Tokens:
    """Count the tokens of answered requests."""
    records = list(succeeded)
    prompts = [record.input_tokens for record in records if record.input_tokens is not None]
    answers = [(record.output_tokens, record.parts) for record in records if record.output_tokens is not None]
    in_parts = [(tokens, parts) for tokens, parts in answers if parts is not None]
    return Tokens(
        read=sum(prompts),
        prompts=len(prompts),
        written=sum(tokens for tokens, _ in answers),
        answers=len(answers),
        parts=sum(parts for _, parts in in_parts),
        written_in_parts=sum(tokens for tokens, _ in in_parts),
    )


def added_tokens(shares: Sequence[Tokens]) -> Tokens:
    """Add up the tokens of shares."""
    return Tokens(
        read=sum(share.read for share in shares),
        prompts=sum(share.prompts for share in shares),
        written=sum(share.written for share in shares),
        answers=sum(share.answers for share in shares),
        parts=sum(share.parts for share in shares),
        written_in_parts=sum(share.written_in_parts for share in shares),
    )


def _by_frequency(*names: Iterable[str] | Mapping[str, int]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for some in names:
        total.update(some)
    return dict(total.most_common())


def first_of_each(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first sentence of each name."""
    first: dict[str, str] = {}
    for name, sentence in items:
        first.setdefault(name, sentence)
    return first
