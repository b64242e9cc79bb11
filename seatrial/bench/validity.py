"""Whether a level measured the endpoint or its own client. A level that the client limited is void, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.units import tenths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.evidence import ClientCalibration, ClientEvidence

MAX_LAG_SHARE = 0.10
"""Receive lag p99 over the median gap between tokens: beyond it, gaps are the client's as much as the endpoint's."""
HARMLESS_MS = 5.0
"""Lag, and time between two requests of a stream, that never voids: what a scheduler adds on a machine that others use,
little beside any TTFT. Signing and writing a request takes about 0.2 ms."""
HARMLESS_BESIDE_ENGINE_MS = 50.0
"""The same where the engine runs on the client's own machine, as on a laptop: the scheduler parts the cores there."""
MIN_DELIVERED = 0.98
"""Requests in flight over those asked for."""
MAX_CPU_SHARE = 0.70
"""Of a core: beyond it, work queues up in the client (at 70 % an M/M/1 queue is 2.3 long)."""
MIN_CPU_READS_PER_S = 100.0
"""A process that reads less isn't kept busy by the load, whatever its CPU share."""
MAX_FULL_SHARE = 0.01
"""Of an open loop's requests, those that found every connection taken: beyond it, latencies leave out a queue."""
MAX_SEND_LAG_SHARE = 0.10
"""Send lag p99 of an open loop over the median end-to-end latency: beyond it, the arrivals aren't those ordered."""
REMEDY = "load with more workers, or from a machine that has nothing else to do"


def void_because(
    evidence: ClientEvidence,
    *,
    requested_streams: int | None,
    itl_p50_ms: float | None,
    calibration: ClientCalibration | None = None,
    tpot_p50_ms: float | None = None,
    e2e_p50_ms: float | None = None,
    beside_engine: bool = False,
) -> str:
    """Say why a level is void; empty when it is valid. Each rule has a floor, so that a fast small level isn't void.

    - Lag: the p99 receive lag is above 10 % of the median gap between tokens, and above 5 ms. Where events bundle
      tokens most gaps are nothing, so the median TPOT takes their place if it is longer; an answer that isn't streamed
      has neither, and its end-to-end latency does.
    - Concurrency (closed loop): less than 98 % of the requests asked for were in flight, and streams waited more than
      5 ms for the client between two requests. Time in which the endpoint made the client connect anew, and pauses
      that it asked for, count as in flight: they are no fault of the client.
    - CPU: the busiest process used more than 70 % of a core.
    - Self-calibration: the busiest process read more often than 70 % of what it can here.
    - Arrivals (open loop): the p99 send lag of requests that found a free connection is above 10 % of the median
      end-to-end latency, and above 5 ms; or more than 1 % found none, so that they queued where no latency shows it.

    Args:
        evidence: How the client fared.
        requested_streams: Requests that a closed loop should keep in flight; None in an open loop.
        itl_p50_ms: Median gap between token events; None when nothing streamed.
        calibration: What the client can take in here; None when it wasn't measured.
        tpot_p50_ms: Median time per output token; None when unknown.
        e2e_p50_ms: Median end-to-end latency; None when nothing succeeded.
        beside_engine: The engine runs on the client's own machine; both floors are 50 ms there.
    """
    floor_ms = HARMLESS_BESIDE_ENGINE_MS if beside_engine else HARMLESS_MS
    gaps_ms = [gap_ms for gap_ms in (itl_p50_ms, tpot_p50_ms) if gap_ms is not None]
    reasons = [
        *_late(evidence, max(gaps_ms, default=None), e2e_p50_ms, floor_ms),
        *_thin(evidence, requested_streams, floor_ms),
        *_busy(evidence, calibration),
        *_late_sending(evidence, e2e_p50_ms, floor_ms),
    ]
    return f"the client was the limit: {'; '.join(reasons)}: {REMEDY}" if reasons else ""


def reads_per_s_possible(calibration: ClientCalibration) -> float | None:
    """Return the reads per second that would fill a core, by the calibration's CPU time; None when it has none.

    What it took in is no bound: its server may have offered less than the client could take.
    """
    cpu_s = calibration.cpu_s_per_1k_parts
    return 1_000 / cpu_s if cpu_s else None


def _late(evidence: ClientEvidence, gap_ms: float | None, e2e_p50_ms: float | None, floor_ms: float) -> Iterator[str]:
    lag_ms, measure_ms = evidence.receive_lag_p99_ms, e2e_p50_ms if gap_ms is None else gap_ms
    if lag_ms is None or measure_ms is None or lag_ms <= max(floor_ms, MAX_LAG_SHARE * measure_ms):
        return
    what = "gap between tokens" if gap_ms is not None else "end-to-end latency"
    yield (
        f"it read bytes up to {tenths(lag_ms)} ms late (p99), more than {MAX_LAG_SHARE:.0%} of the median {what}"
        f" ({tenths(measure_ms)} ms)"
    )


def _thin(evidence: ClientEvidence, requested_streams: int | None, floor_ms: float) -> Iterator[str]:
    delivered, idle_ms = evidence.delivered_concurrency, evidence.idle_ms
    if requested_streams is None or delivered is None or idle_ms is None or idle_ms <= floor_ms:
        return
    if delivered < MIN_DELIVERED * requested_streams:
        yield (
            f"{tenths(delivered)} of {requested_streams} requests were in flight on average, less than"
            f" {MIN_DELIVERED:.0%}, since streams waited {tenths(idle_ms)} ms for it between two requests"
        )


def _busy(evidence: ClientEvidence, calibration: ClientCalibration | None) -> Iterator[str]:
    reads_per_s = evidence.reads_per_s
    if reads_per_s is None or reads_per_s < MIN_CPU_READS_PER_S:
        return
    if evidence.cpu_share is not None and evidence.cpu_share > MAX_CPU_SHARE:
        yield f"its busiest process used {evidence.cpu_share:.0%} of a core, more than {MAX_CPU_SHARE:.0%}"
    most = None if calibration is None else reads_per_s_possible(calibration)
    if most is not None and reads_per_s > MAX_CPU_SHARE * most:
        yield (
            f"its busiest process read {reads_per_s:,.0f} times a second, more than {MAX_CPU_SHARE:.0%} of the"
            f" {most:,.0f} that it can here"
        )


def _late_sending(evidence: ClientEvidence, e2e_p50_ms: float | None, floor_ms: float) -> Iterator[str]:
    if evidence.full_share is not None and evidence.full_share > MAX_FULL_SHARE:
        yield (
            f"{evidence.full_share:.0%} of the requests found all {evidence.streams} connections taken and left late"
            " (load.max_connections)"
        )
    lag_ms = evidence.send_lag_p99_ms
    if lag_ms is None or e2e_p50_ms is None or lag_ms <= max(floor_ms, MAX_SEND_LAG_SHARE * e2e_p50_ms):
        return
    yield (
        f"it sent requests up to {tenths(lag_ms)} ms late (p99), more than {MAX_SEND_LAG_SHARE:.0%} of the median"
        f" end-to-end latency ({tenths(e2e_p50_ms)} ms)"
    )
