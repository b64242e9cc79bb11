"""One worker's share of one level, summed up: small enough to ship, and whole when merged with the other shares."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.bench.client_evidence import together
from seatrial.bench.counts import Counts, Tokens, added_counts, added_tokens, counts_of, tokens_of
from seatrial.bench.document import read_document, write_document
from seatrial.bench.evidence import ClientEvidence  # noqa: TC001 (the strict reader resolves the fields' types)
from seatrial.bench.latencies import Latencies, latencies_of, merged_latencies
from seatrial.bench.load import Arrival  # noqa: TC001 (the strict reader resolves the fields' types)
from seatrial.bench.result import Timeline  # noqa: TC001 (the strict reader resolves the fields' types)
from seatrial.bench.throughput import Throughput, added, throughput_of
from seatrial.bench.timeline import added_timelines, timeline_of
from seatrial.bench.window import has_steady_window, measured_time, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.load import PreparedBy
    from seatrial.bench.record import RequestRecord
    from seatrial.bench.request import Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTally:
    """One worker's share of one level, or of several workers'; `level.level_of` makes the level's result of it.

    Attributes:
        concurrency: Requests in flight per copy, of the whole level.
        arrival: How requests were timed.
        offered_requests_per_s: What an open loop offered through this worker; None in a closed loop.
        counts: How many requests there were, and how they ended.
        throughput: What they yielded per second.
        latencies: How long they took.
        tokens: How long they were.
        client: How the client fared; None when nobody looked.
        enough_because: Why no more was sent.
        timeline: What happened when; None when it wasn't kept.
    """

    concurrency: int
    arrival: Arrival
    offered_requests_per_s: float | None
    counts: Counts
    throughput: Throughput
    latencies: Latencies
    tokens: Tokens
    client: ClientEvidence | None
    enough_because: str
    timeline: Timeline | None = None

    def to_json(self) -> str:
        """Write the tally as one line of JSON."""
        return write_document(self)

    @classmethod
    def from_json(cls, text: str) -> LevelTally:
        """Read a tally strictly.

        Raises:
            BenchError: SEA501, with every unknown key and wrong type.
        """
        return read_document(cls, text, where="level tally")


def tally_of(
    records: Sequence[RequestRecord],
    *,
    concurrency: int,
    objectives: Sequence[Objective],
    ramp: int = 0,
    arrival: Arrival = "closed",
    protocol: PreparedBy = "seatrial",
    offered_requests_per_s: float | None = None,
    client: ClientEvidence | None = None,
    enough_because: str = "",
) -> LevelTally:
    """Sum up one worker's share of a level.

    Args:
        records: Every request of the share, ramp included, at least one.
        concurrency: Requests in flight per copy, of the whole level.
        objectives: The SLO; goodput counts what is within it.
        ramp: How many of the share's first requests, in the order of their numbers, aren't measured.
        arrival: How requests were timed.
        protocol: Whose way of measuring this is.
        offered_requests_per_s: What an open loop offered through this worker.
        client: How the client fared.
        enough_because: Why no more was sent.
    """
    first, measured = split(records, ramp)
    succeeded = [record for record in measured if record.succeeded]
    time = measured_time(records, ramp=ramp, steady=has_steady_window(arrival, protocol))
    return LevelTally(
        concurrency=concurrency,
        arrival=arrival,
        offered_requests_per_s=offered_requests_per_s,
        counts=counts_of(first, measured),
        throughput=throughput_of(records, time, objectives),
        latencies=latencies_of(succeeded),
        tokens=tokens_of(succeeded),
        client=client,
        enough_because=enough_because,
        timeline=timeline_of(records),
    )


def merge(tallies: Sequence[LevelTally]) -> LevelTally:
    """Put the shares of one level together, at least one; all are of workers that loaded side by side."""
    offered = [tally.offered_requests_per_s for tally in tallies if tally.offered_requests_per_s is not None]
    return LevelTally(
        concurrency=tallies[0].concurrency,
        arrival=tallies[0].arrival,
        offered_requests_per_s=math.fsum(offered) if offered else None,
        counts=added_counts([tally.counts for tally in tallies]),
        throughput=added([tally.throughput for tally in tallies]),
        latencies=merged_latencies([tally.latencies for tally in tallies]),
        tokens=added_tokens([tally.tokens for tally in tallies]),
        client=_together([tally.client for tally in tallies]),
        enough_because=next((tally.enough_because for tally in tallies if tally.enough_because), ""),
        timeline=added_timelines([tally.timeline for tally in tallies]),
    )


def _together(seen: Sequence[ClientEvidence | None]) -> ClientEvidence | None:
    """Sum up how the clients fared; of a sum with a share that nobody looked at, nobody knows."""
    known = [evidence for evidence in seen if evidence is not None]
    if not known:
        return None
    joined = together(known)
    return joined if len(known) == len(seen) else replace(joined, delivered_concurrency=None)
