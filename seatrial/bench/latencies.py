"""How long the requests of one worker's share of a level took; shares merge."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from seatrial.bench import metrics
from seatrial.bench.sample import Sample, merged, sample_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.bench.record import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """The latencies of the measured requests that succeeded, as `metrics` defines them; None where none has one."""

    ttft_ms: Sample | None
    tpot_ms: Sample | None
    itl_ms: Sample | None
    ms_per_token: Sample | None
    e2e_latency_ms: Sample | None


def latencies_of(succeeded: Sequence[RequestRecord]) -> Latencies:
    """Measure answered requests."""
    return Latencies(
        ttft_ms=_sample(metrics.ttft_ms, succeeded),
        tpot_ms=_sample(metrics.tpot_ms, succeeded),
        itl_ms=sample_of(list(chain.from_iterable(map(metrics.itl_ms, succeeded)))),
        ms_per_token=_sample(metrics.ms_per_token, succeeded),
        e2e_latency_ms=_sample(metrics.e2e_latency_ms, succeeded),
    )


def merged_latencies(shares: Sequence[Latencies]) -> Latencies:
    """Take the latencies of shares together."""
    return Latencies(
        ttft_ms=merged([share.ttft_ms for share in shares]),
        tpot_ms=merged([share.tpot_ms for share in shares]),
        itl_ms=merged([share.itl_ms for share in shares]),
        ms_per_token=merged([share.ms_per_token for share in shares]),
        e2e_latency_ms=merged([share.e2e_latency_ms for share in shares]),
    )


def _sample(metric: Callable[[RequestRecord], float | None], records: Sequence[RequestRecord]) -> Sample | None:
    return sample_of([value for value in map(metric, records) if value is not None])
