"""What was seen of requests that no level measured: the first request, the warm-up, a level that was cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.bench.counts import first_of_each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.bench.record import RequestRecord
    from seatrial.bench.result import LevelResult
    from seatrial.bench.tally import LevelTally

Occasion: TypeAlias = Literal["first_request", "warm_up", "level"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """Requests of which no latency and no throughput is reported, and how they ended.

    Attributes:
        occasion: `first_request`, `warm_up`, or `level`: a level that was cut before it was over.
        concurrency: Requests in flight per copy of the level; None of the others.
        offered_requests_per_s: What an open loop offered at the level; None of the others.
        sent: Requests that left.
        succeeded: Those answered in full.
        errors: How many failed, by error class; `unanswered` are those in flight when the level was cut.
        first_errors: The first failure of each class in the service's own words.
        longest_wait_s: How long it took until the last of the failures that took longest; None without a failure.
        because: Why the level was cut; empty where every request came to its end.
    """

    occasion: Occasion
    concurrency: int | None = None
    offered_requests_per_s: float | None = None
    sent: int
    succeeded: int
    errors: Mapping[str, int]
    first_errors: tuple[str, ...]
    longest_wait_s: float | None
    because: str = ""

    @property
    def place(self) -> str:
        """What it was, in words."""
        if self.occasion == "first_request":
            return "the first request"
        if self.occasion == "warm_up":
            return "the warm-up"
        if self.offered_requests_per_s is not None:
            return f"{self.offered_requests_per_s:g} requests/s"
        return f"concurrency {self.concurrency} per copy"

    @property
    def sentence(self) -> str:
        """How many were sent and answered, why the others were not, and after how long."""
        return _sentence(self.sent, self.succeeded, [self])


def unmeasured_of(
    records: Sequence[RequestRecord],
    occasion: Occasion,
    *,
    concurrency: int | None = None,
    offered_requests_per_s: float | None = None,
    because: str = "",
) -> Unmeasured:
    """Sum up requests, with those that were in flight at the end."""
    failed = [(record.error, record) for record in records if record.error is not None]
    return Unmeasured(
        occasion=occasion,
        concurrency=concurrency,
        offered_requests_per_s=offered_requests_per_s,
        sent=len(records),
        succeeded=len(records) - len(failed),
        errors=dict(Counter(error for error, _ in failed).most_common()),
        first_errors=tuple(first_of_each((error, f"{error}: {record.detail}") for error, record in failed).values()),
        longest_wait_s=max((record.ended_s - record.sent_s for _, record in failed), default=None),
        because=because,
    )


def unmeasured_share(tally: LevelTally) -> Unmeasured:
    """Return a worker's share that was loaded in full, of a level that counts for nothing since another's was not."""
    counts = tally.counts
    errors = Counter(counts.errors) + Counter(counts.ramp_errors)
    sent = counts.requests + counts.ramp_requests
    return Unmeasured(
        occasion="level",
        concurrency=tally.concurrency,
        offered_requests_per_s=tally.offered_requests_per_s,
        sent=sent,
        succeeded=sent - errors.total(),
        errors=dict(errors.most_common()),
        first_errors=tuple(counts.first_errors.values()),
        longest_wait_s=None,
    )


def merged_unmeasured(shares: Sequence[Unmeasured], *, because: str) -> Unmeasured:
    """Put the workers' shares of a cut level together, at least one."""
    offered = [share.offered_requests_per_s for share in shares if share.offered_requests_per_s is not None]
    return Unmeasured(
        occasion="level",
        concurrency=shares[0].concurrency,
        offered_requests_per_s=sum(offered) if offered else None,
        sent=sum(share.sent for share in shares),
        succeeded=sum(share.succeeded for share in shares),
        errors=dict(_errors(shares).most_common()),
        first_errors=_first_errors(shares),
        longest_wait_s=_longest_wait_s(shares),
        because=because,
    )


def nothing_answered(levels: Sequence[LevelResult], unmeasured: Sequence[Unmeasured]) -> str:
    """Say that requests were sent in this trial and none was answered; empty where one was, or none was sent."""
    answered = sum(level.succeeded for level in levels) + sum(seen.succeeded for seen in unmeasured)
    sent = sum(level.requests for level in levels) + sum(seen.sent for seen in unmeasured)
    if answered or not sent:
        return ""
    return _sentence(sent, 0, [*levels, *unmeasured])


def _sentence(sent: int, succeeded: int, seen: Sequence[Unmeasured | LevelResult]) -> str:
    classes = ", ".join(f"{name} {count}" for name, count in _errors(seen).most_common())
    if not classes:
        return f"{succeeded} of {sent} requests were answered"
    longest_s = _longest_wait_s([one for one in seen if isinstance(one, Unmeasured)])
    waited = "" if longest_s is None else f", {sent - succeeded} failed after {longest_s:.1f} s at most"
    first = next(iter(_first_errors(seen)), "")
    told = f" ({first})" if first else ""
    return f"{succeeded} of {sent} requests were answered{waited}: {classes}{told}"


def _errors(seen: Sequence[Unmeasured | LevelResult]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in seen:
        total.update(one.errors)
    return total


def _first_errors(seen: Sequence[Unmeasured | LevelResult]) -> tuple[str, ...]:
    """Return the first failure of each class, those of the most frequent class first."""
    first = first_of_each(_classed(seen))
    return tuple(first[name] for name, _ in _errors(seen).most_common() if name in first)


def _classed(seen: Sequence[Unmeasured | LevelResult]) -> Iterator[tuple[str, str]]:
    return ((text.partition(":")[0], text) for one in seen for text in one.first_errors)


def _longest_wait_s(seen: Sequence[Unmeasured]) -> float | None:
    return max((one.longest_wait_s for one in seen if one.longest_wait_s is not None), default=None)
