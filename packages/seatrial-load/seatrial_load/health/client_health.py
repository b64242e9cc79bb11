"""The client's own measurements of a wave: lag, delivered concurrency and cost, and whether they void a level."""

from __future__ import annotations

import math
import os
import time
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial_base.field_facts import facts_of
from seatrial_base.units import MS_PER_S, tenths
from seatrial_load.documents.result import ClientEvidence
from seatrial_load.documents.stop import Void, VoidReason
from seatrial_load.measure.interval import percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial_load.client.event_loop import Wave, WaveResult
    from seatrial_load.decode.exchange import Exchange
    from seatrial_load.documents.result import ClientCalibration


SCHEDSTAT = "/proc/thread-self/schedstat"
LEAST_SPAN_S = 0.25
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ThreadSample:
    """The thread at one time of the clock.

    Attributes:
        run_delay_s: Seconds spent ready to run without a core so far; None where the kernel doesn't report it.
    """

    at_s: float
    cpu_s: float
    run_delay_s: float | None


@dataclass(slots=True)
class UsageMeter:
    """Samples of the thread, in order of time."""

    samples: list[ThreadSample] = field(default_factory=list)

    @property
    def cpu_s(self) -> float:
        """CPU seconds between the first and the last sample."""
        return self.samples[-1].cpu_s - self.samples[0].cpu_s if self.samples else 0.0

    def sample(self, at_s: float) -> None:
        """Take a sample; costs some 20 µs."""
        self.samples.append(ThreadSample(at_s, time.thread_time(), run_delay_s()))

    def shares(self, since_s: float, until_s: float) -> tuple[float | None, float | None]:
        """Return the shares of CPU and run delay between the samples nearest outside these times.

        None below a quarter of a second: a few time slices of a scheduler are noise.
        """
        if not self.samples or until_s <= since_s:
            return None, None
        times_s = [sample.at_s for sample in self.samples]
        first = self.samples[max(0, bisect_left(times_s, since_s + 1e-9) - 1)]
        last = self.samples[min(len(times_s) - 1, bisect_left(times_s, until_s))]
        seconds = last.at_s - first.at_s
        if seconds < LEAST_SPAN_S:
            return None, None
        waited_s = None
        if first.run_delay_s is not None and last.run_delay_s is not None:
            waited_s = last.run_delay_s - first.run_delay_s
        return (last.cpu_s - first.cpu_s) / seconds, None if waited_s is None else waited_s / seconds


def run_delay_s(schedstat: str = SCHEDSTAT) -> float | None:
    """Return the run delay of this thread, s; its file holds ns on a core, ns of waiting, number of time slices."""
    try:
        descriptor = os.open(schedstat, os.O_RDONLY)
    except OSError:
        return None
    try:
        _, waited_ns, *_ = os.read(descriptor, 100).split()
        return int(waited_ns) / _NS_PER_S
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)


P99 = 0.99
LEAST_READS = 100
LEAST_WINDOW_SHARE = 0.5


def evidence_of(wave: Wave, result: WaveResult) -> ClientEvidence:
    """Compute one process's evidence.

    Its window begins when every stream has, and ends when the last request is taken up: before and after, streams are
    idle on purpose. A wave whose window is shorter than half of it (one round of requests) has no concurrency, and its
    CPU share is that of the whole wave. Of fewer than 100 reads a p99 is no more than the one unlucky read.
    """
    start_s = result.started_s + max(wave.starts_s, default=0.0)
    until_s = max((exchange.taken_s for exchange in result.every if exchange.taken_s), default=start_s)
    is_long = until_s - start_s >= LEAST_WINDOW_SHARE * (result.ended_s - start_s) > 0
    cpu_share, run_delay_share = result.usage.shares(start_s, until_s if is_long else result.ended_s)
    busy_s = math.fsum(_busy_s(exchange, start_s, until_s) for exchange in result.every) if is_long else None
    window_s, seconds = until_s - start_s, result.ended_s - start_s
    idle_s = None if busy_s is None or wave.due_s is not None else max(0.0, wave.streams * window_s - busy_s)
    sendings = _open_loop(result.exchanges, wave.streams)
    lags_s, full = sorted(lag_s for lag_s, was_full in sendings if not was_full), [full for _, full in sendings]
    return ClientEvidence(
        workers=1,
        streams=wave.streams,
        receive_lag_p99_ms=result.lag.percentile_ms(P99) if result.lag.reads >= LEAST_READS else None,
        delivered_concurrency=None if busy_s is None else busy_s / window_s,
        cpu_share=cpu_share,
        run_delay_share=run_delay_share,
        send_lag_p99_ms=percentile(lags_s, 100 * P99) * MS_PER_S if lags_s else None,
        idle_ms=None if idle_s is None else idle_s / len(result.every) * MS_PER_S,
        full_share=sum(full) / len(full) if full else None,
        reads_per_s=result.lag.reads / seconds if seconds >= LEAST_SPAN_S else None,
    )


def together(shares: Sequence[ClientEvidence]) -> ClientEvidence:
    """Join the evidence of processes that loaded at the same time: concurrency adds up, the worst of the rest counts.

    A sum with an unknown part is unknown.
    """
    delivered = [share.delivered_concurrency for share in shares]
    known = [number for number in delivered if number is not None]
    sums = {"workers", "streams", "delivered_concurrency"}
    worst = {
        name: max((number for share in shares if (number := getattr(share, name)) is not None), default=None)
        for name in facts_of(ClientEvidence)
        if name not in sums
    }
    return ClientEvidence(
        workers=sum(share.workers for share in shares),
        streams=sum(share.streams for share in shares),
        delivered_concurrency=math.fsum(known) if len(known) == len(delivered) else None,
        **worst,
    )


def _busy_s(exchange: Exchange, start_s: float, until_s: float) -> float:
    # Reconnecting and pauses count: a server that closes its connections costs the trial time, but that is the
    # endpoint's doing, not the client's.
    taken_s = exchange.sent_s if exchange.taken_s is None else exchange.taken_s
    return max(0.0, min(exchange.ended_s, until_s) - max(taken_s, start_s))


def _open_loop(exchanges: Sequence[Exchange], streams: int) -> list[tuple[float, bool]]:
    taken_s = sorted(exchange.taken_s for exchange in exchanges if exchange.taken_s is not None)
    ended_s = sorted(exchange.ended_s for exchange in exchanges)
    return [
        (
            exchange.sent_s - exchange.due_s,
            bisect_left(taken_s, exchange.due_s) - bisect_right(ended_s, exchange.due_s) >= streams,
        )
        for exchange in exchanges
        if exchange.due_s is not None
    ]


# Receive lag p99 over the median gap between tokens: beyond it, gaps are the client's as much as the endpoint's.
MAX_LAG_SHARE = 0.10
# Lag, and time between two requests of a stream, that never voids: what a scheduler adds on a shared machine, little
# compared with any TTFT. Signing and writing a request takes about 0.2 ms.
HARMLESS_MS = 5.0
# The same where the engine runs on the client's own machine, as on a laptop: the scheduler parts the cores there.
HARMLESS_BESIDE_ENGINE_MS = 50.0
# Requests in flight over those requested.
MIN_DELIVERED = 0.98
# Of a core: beyond it, work queues up in the client (at 70 % an M/M/1 queue is 2.3 long).
MAX_CPU_SHARE = 0.70
# A process that reads less isn't kept busy by the load, whatever its CPU share.
MIN_CPU_READS_PER_S = 100.0
# Of an open loop's requests, those that found every connection taken: beyond it, the endpoint never had the requests
# that were ordered.
MAX_FULL_SHARE = 0.01
# Send lag p99 of an open loop over the median end-to-end latency: beyond it, the arrivals aren't those ordered.
MAX_SEND_LAG_SHARE = 0.10
REMEDY = "use more workers or an idle machine"


def void_of(
    evidence: ClientEvidence,
    *,
    requested_streams: int | None,
    itl_p50_ms: float | None,
    calibration: ClientCalibration | None = None,
    tpot_p50_ms: float | None = None,
    e2e_p50_ms: float | None = None,
    beside_engine: bool = False,
    rest_share: float = 0.0,
) -> Void | None:
    """Return why a level is void; None when it is valid. Each rule has a floor, so that a fast small level isn't void.

    - Lag: the p99 receive lag is above 10 % of the median gap between tokens, and above 5 ms. Where events bundle
      tokens most gaps are nothing, so the median TPOT takes their place if it is longer; an answer that isn't streamed
      has neither, and its end-to-end latency does.
    - Concurrency (closed loop): less than 98 % of the requested requests were in flight, and streams waited more than
      5 ms for the client between two requests. Time in which the endpoint made the client reconnect, and pauses that
      it requested, count as in flight: they are no fault of the client.
    - CPU: the busiest process used more than 70 % of a core.
    - Self-calibration: the busiest process read more often than 70 % of what it can here.
    - Arrivals (open loop): the p99 send lag of requests that found a free connection is above 10 % of the median
      end-to-end latency, and above 5 ms; or more than 1 % found none, so that they queued in the client.

    Args:
        requested_streams: Requests that a closed loop should keep in flight; None in an open loop.
        rest_share: Share of the time in which its streams rest on purpose.
        beside_engine: The engine runs on the client's own machine; both floors are 50 ms there.
    """
    floor_ms = HARMLESS_BESIDE_ENGINE_MS if beside_engine else HARMLESS_MS
    gaps_ms = [gap_ms for gap_ms in (itl_p50_ms, tpot_p50_ms) if gap_ms is not None]
    reasons = [
        *_late(evidence, max(gaps_ms, default=None), e2e_p50_ms, floor_ms),
        *_thin(evidence, requested_streams, floor_ms, rest_share),
        *_busy(evidence, calibration),
        *_late_sending(evidence, e2e_p50_ms, floor_ms),
    ]
    if not reasons:
        return None
    because = f"the client was the limit: {'; '.join(words for _, words in reasons)}: {REMEDY}"
    return Void(reasons=tuple(reason for reason, _ in reasons), because=because)


def reads_per_s_possible(calibration: ClientCalibration) -> float | None:
    """Return the reads per second that would fill a core, by the calibration's CPU time; None when it has none.

    Its own reads per second are no bound: its server may have offered less than the client can read.
    """
    cpu_s = calibration.cpu_s_per_1k_parts
    return 1_000 / cpu_s if cpu_s else None


def _late(
    evidence: ClientEvidence, gap_ms: float | None, e2e_p50_ms: float | None, floor_ms: float
) -> Iterator[tuple[VoidReason, str]]:
    lag_ms, measure_ms = evidence.receive_lag_p99_ms, e2e_p50_ms if gap_ms is None else gap_ms
    if lag_ms is None or measure_ms is None or lag_ms <= max(floor_ms, MAX_LAG_SHARE * measure_ms):
        return
    what = "gap between tokens" if gap_ms is not None else "end-to-end latency"
    yield (
        VoidReason.READ_LATE,
        (
            f"reads {tenths(lag_ms)} ms late (p99), above {MAX_LAG_SHARE:.0%} of the median {what}"
            f" ({tenths(measure_ms)} ms)"
        ),
    )


def _thin(
    evidence: ClientEvidence, requested_streams: int | None, floor_ms: float, rest_share: float
) -> Iterator[tuple[VoidReason, str]]:
    delivered, idle_ms = evidence.delivered_concurrency, evidence.idle_ms
    if requested_streams is None or delivered is None or idle_ms is None or idle_ms <= floor_ms:
        return
    if delivered < (MIN_DELIVERED - rest_share) * requested_streams:
        yield (
            VoidReason.TOO_FEW_IN_FLIGHT,
            (
                f"{tenths(delivered)} of {requested_streams} requests in flight on average, below"
                f" {MIN_DELIVERED:.0%}: streams waited {tenths(idle_ms)} ms between two requests"
            ),
        )


def _busy(evidence: ClientEvidence, calibration: ClientCalibration | None) -> Iterator[tuple[VoidReason, str]]:
    reads_per_s = evidence.reads_per_s
    if reads_per_s is None or reads_per_s < MIN_CPU_READS_PER_S:
        return
    if evidence.cpu_share is not None and evidence.cpu_share > MAX_CPU_SHARE:
        words = f"busiest process at {evidence.cpu_share:.0%} of a core, above {MAX_CPU_SHARE:.0%}"
        yield VoidReason.CPU, words
    most = None if calibration is None else reads_per_s_possible(calibration)
    if most is not None and reads_per_s > MAX_CPU_SHARE * most:
        yield (
            VoidReason.CPU,
            (f"busiest process at {reads_per_s:,.0f} reads/s, above {MAX_CPU_SHARE:.0%} of its maximum of {most:,.0f}"),
        )


def _late_sending(
    evidence: ClientEvidence, e2e_p50_ms: float | None, floor_ms: float
) -> Iterator[tuple[VoidReason, str]]:
    if evidence.full_share is not None and evidence.full_share > MAX_FULL_SHARE:
        yield (
            VoidReason.CONNECTIONS,
            (
                f"{evidence.full_share:.0%} of the requests waited for one of {evidence.streams} connections"
                " (load.max_connections)"
            ),
        )
    lag_ms = evidence.send_lag_p99_ms
    if lag_ms is None or e2e_p50_ms is None or lag_ms <= max(floor_ms, MAX_SEND_LAG_SHARE * e2e_p50_ms):
        return
    yield (
        VoidReason.SENT_LATE,
        (
            f"requests sent {tenths(lag_ms)} ms late (p99), above {MAX_SEND_LAG_SHARE:.0%} of the median"
            f" end-to-end latency ({tenths(e2e_p50_ms)} ms)"
        ),
    )


STEPS_PER_OCTAVE = 16
MOST_POINTS = 4
_FLOOR_S = 1e-6
_ROUNDING = 1e-9


class LagMeter:
    """Keeps three numbers of each turn of the loop; the lags are computed when the clock has stopped.

    Bytes that a waiting poll returned arrived when it returned: their lag is the time until their own read. Bytes that
    a poll returned without waiting may have arrived at any time since the return of the poll before it, which didn't
    have them: their lag is counted from there, so it is an upper bound, and it is that of a loop without a free moment.
    Not in it: the time in which the process was ready to run but had no core, because a process can't see that of
    itself; Linux reports the sum (`run_delay_share`).
    """

    __slots__ = ("_counts", "_delays_s", "_polled_s", "_spans_s")

    def __init__(self) -> None:
        self._delays_s = array("d")
        self._spans_s = array("d")
        self._counts = array("L")
        self._polled_s = math.inf

    def note(self, polled_s: float, done_s: float, count: int, *, waited: bool) -> None:
        """Note a turn.

        Args:
            waited: Whether the poll had to wait for them.
        """
        if count:
            self._delays_s.append(0.0 if waited else max(0.0, polled_s - self._polled_s))
            self._spans_s.append(done_s - polled_s)
            self._counts.append(count)
        self._polled_s = polled_s

    @property
    def reads(self) -> int:
        """How many reads were noted."""
        return sum(self._counts)

    def percentile_ms(self, share: float) -> float | None:
        """Return the lag that this share of the reads doesn't exceed, ms, up to 4.4 % too much; None without reads.

        The reads of a turn are taken to be evenly spread over it.
        """
        tally: dict[int, float] = defaultdict(float)
        for delay_s, span_s, count in zip(self._delays_s, self._spans_s, self._counts, strict=True):
            points = min(count, MOST_POINTS)
            for point in range(1, points + 1):
                lag_s = delay_s + span_s * point / points
                tally[math.ceil(math.log2(max(lag_s, _FLOOR_S)) * STEPS_PER_OCTAVE)] += count / points
        return _at_share(tally, share)


def _at_share(tally: Mapping[int, float], share: float) -> float | None:
    left = math.fsum(tally.values()) * share
    for step in sorted(tally):
        left -= tally[step]
        if left <= _ROUNDING:
            return float(2.0 ** (step / STEPS_PER_OCTAVE)) * MS_PER_S
    return None
