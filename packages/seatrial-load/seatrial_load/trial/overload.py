"""Overload: whether what a server can't serve in time is refused at once, and the rest is as good as ever.

After the levels, requests come at twice the rate that was answered at the knee, at random times, whatever is answered.
A closed loop with twice as many in flight would be no overload of users: a client that is refused sends again at once,
so its own pace would be the load. Requests at a quarter of the knee's rate follow; they tell when the wait is back.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.errors import BenchError
from seatrial_base.units import MS_PER_S, digits
from seatrial_load.client.event_loop import Wave
from seatrial_load.decode.exchange import limits_of
from seatrial_load.documents.arrivals import poisson
from seatrial_load.documents.progress import TrialMessage
from seatrial_load.documents.request import single_requests
from seatrial_load.documents.result import OverloadResult
from seatrial_load.health.client_health import void_of
from seatrial_load.measure.interval import percentile
from seatrial_load.metrics.level import level_of_records
from seatrial_load.metrics.request_metrics import e2e_latency_ms, ttft_ms
from seatrial_load.trial.budget import left_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.client.worker_pool import PoolResult
    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import Objective, TrialRequest
    from seatrial_load.documents.result import Knee, LevelResult, Verdict
    from seatrial_load.documents.stop import Void
    from seatrial_load.trial.dependencies import Tools

TTFT: Final = "TTFT"
TIMES_THE_KNEE: Final = 2.0
_PROBE_SHARE = 0.25  # of the knee's rate: no load, and several probes within the time to recover
_MOST_PROBES = 10
_FEWEST = 20  # requests of a burst: of fewer, a share and a percentile say nothing
_LEAST_SLACK_MS = 100.0  # of a wait without a bound: twice a wait of 20 ms is noise
_LEAST_HELD, _HELD = 2, 4  # times those in flight at the knee: a server that holds so many refuses none
_FUNCTION_STREAMS = 896  # a function has 900 sockets


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadBounds:
    """The bounds of a proof: length of the burst, p95 of a refusal's time, and time until the wait is back."""

    least_s: float = 10.0
    most_s: float = 60.0
    refusal_ms: float = 100.0
    recovery_s: float = 5.0


BOUNDS: Final = OverloadBounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """The load beyond the knee.

    Attributes:
        rate_per_s: Requests per second, all copies together: twice those answered at the knee.
        streams: Most requests in flight.
        limit_ms: Longest wait that is no queue: the SLO's, else twice that at the knee.
        is_bounded: Whether the SLO bounds the wait.
        wait_name: The time to first token, where tokens are streamed; else the end-to-end latency.
        answer_s: Mean end-to-end latency at the knee.
        due_s: When each request of the burst leaves, from the start.
        probes_s: When each probe after it leaves.
    """

    rate_per_s: float
    seconds: float
    streams: int
    limit_ms: float
    is_bounded: bool
    wait_name: str
    answer_s: float
    bounds: OverloadBounds = BOUNDS
    due_s: tuple[float, ...] = field(repr=False)
    probes_s: tuple[float, ...] = field(repr=False)

    def wait_ms(self, record: RequestRecord) -> float | None:
        """Return how long a request waited; None where it failed."""
        wait = ttft_ms if self.wait_name == TTFT else e2e_latency_ms
        return wait(record) if record.error is None else None


def burst_of(
    request: TrialRequest, levels: Sequence[LevelResult], knee: Knee | None, bounds: OverloadBounds = BOUNDS
) -> Burst | None:
    """Return the burst after some levels; None where none of them was measured."""
    known = None if knee is None else knee.concurrency
    valid = [level for level in levels if level.valid and level.requests_per_s and level.e2e_latency_ms]
    at = max(
        [level for level in valid if known is None or level.load <= known] or valid[:1],
        key=lambda level: level.requests_per_s or 0.0,
        default=None,
    )
    if at is None or at.e2e_latency_ms is None or not at.requests_per_s:
        return None
    usual = at.ttft_ms or at.e2e_latency_ms
    metric = "ttft_ms" if at.ttft_ms else "e2e_latency_ms"
    given = {each.statistic: each.bound for each in request.objectives if each.metric == metric}
    usual_ms = max(2 * usual.p95, usual.p95 + _LEAST_SLACK_MS)
    limit_ms = given.get("p95", max(given.values())) if given else usual_ms
    rate_per_s, answer_s = TIMES_THE_KNEE * at.requests_per_s, at.e2e_latency_ms.mean / MS_PER_S
    wanted_s = max(bounds.least_s, answer_s + 2 * limit_ms / MS_PER_S, _FEWEST / rate_per_s)
    seconds = min(bounds.most_s, wanted_s)
    due_s = poisson(rate_per_s, seconds, "overload")
    within = min(_MOST_PROBES, max(1, int(bounds.recovery_s * at.requests_per_s * _PROBE_SHARE)))
    step_s, held = bounds.recovery_s / within, math.ceil(at.load) * request.copy_count
    return Burst(
        rate_per_s=rate_per_s,
        seconds=seconds,
        streams=max(request.load.max_connections, _LEAST_HELD * held, min(_HELD * held, _FUNCTION_STREAMS)),
        limit_ms=limit_ms,
        is_bounded=bool(given),
        wait_name=TTFT if at.ttft_ms else "end-to-end latency",
        answer_s=answer_s,
        bounds=bounds,
        due_s=due_s,
        probes_s=tuple(seconds + step_s * (number + 1) for number in range(within + max(1, within // 2))),
    )


def measure_overload(
    request: TrialRequest,
    progress: TrialProgress,
    levels: Sequence[LevelResult],
    knee: Knee | None,
    tools: Tools,
    *,
    doubt: str = "",
    bounds: OverloadBounds = BOUNDS,
) -> OverloadResult:
    """Send the burst and judge it; what can't be sent is reported, not raised.

    Args:
        doubt: Why nothing is to be sent; empty where nothing speaks against it.
    """
    burst = None if doubt else burst_of(request, levels, knee, bounds)
    if burst is None:
        return _unmeasured(doubt or "no level was measured whose rate could be doubled")
    needed_s, time_left_s = burst.probes_s[-1] + burst.answer_s, left_s(request, progress)
    if len(burst.due_s) < _FEWEST // 2:
        return _unmeasured(f"{burst.rate_per_s:.2g} requests/s are too few within {burst.seconds:g} s")
    if needed_s > time_left_s:
        return _unmeasured(f"it takes {needed_s:.0f} s, and {max(0.0, time_left_s):.0f} s of the budget are left")
    text = f"twice the knee's load: {digits(burst.rate_per_s)} requests/s for {burst.seconds:.0f} s"
    tools.watch(TrialMessage(text=text, elapsed_s=progress.elapsed_s))
    began_s, due_s = tools.clock(), (*burst.due_s, *burst.probes_s)
    single = replace(request, workload=single_requests(request.workload))
    wave = Wave.of(
        replace(request.load, max_retries=0),  # a refusal that is repeated would be hidden
        streams=min(burst.streams, len(due_s)),
        requests=len(due_s),
        deadline_s=began_s + min(time_left_s, due_s[-1] + request.load.request_timeout_s),
        first_index=progress.sent,
        due_s=due_s,
        limits=limits_of(single.workload, len(due_s)),
    )
    try:
        pool = tools.send(single, tools.writer_of(single, progress), wave, request.load.workers)
    except BenchError as error:
        return _unmeasured(error.problems[0].message)
    seen, void = judged_overload(burst, pool.records, progress.sent, request.objectives), _void(pool, progress)
    if void is not None or pool.lost_because is not None:
        because = void.because if void is not None else f"the load generator failed: {pool.lost_because}"
        seen = replace(seen, status="unmeasured", because=because)
    return replace(seen, duration_s=tools.clock() - began_s)


def _unmeasured(because: str) -> OverloadResult:
    return OverloadResult(status="unmeasured", because=because)


def _void(pool: PoolResult, progress: TrialProgress) -> Void | None:
    """Return the client's limit; connections that are all taken are none: the server holds what it should refuse."""
    level = level_of_records(1, pool.records, (), arrival="poisson")
    return void_of(
        replace(pool.evidence, full_share=None),
        requested_streams=None,
        itl_p50_ms=level.itl_ms.p50 if level.itl_ms else None,
        calibration=progress.client,
        tpot_p50_ms=level.tpot_ms.p50 if level.tpot_ms else None,
        e2e_p50_ms=level.e2e_latency_ms.p50 if level.e2e_latency_ms else None,
        beside_engine=bool(progress.engine_note),
    )


def judged_overload(
    burst: Burst, records: Sequence[RequestRecord], first: int, objectives: Sequence[Objective]
) -> OverloadResult:
    """Judge a burst and the probes after it.

    Refused is what the server or the service turned away for load (503, 429, and SageMaker's error of a model that
    answered so). All else is admitted, also what failed. Objectives are compared with measured values, as they are.

    Args:
        first: The number of the burst's first request.
    """
    sent = [record for record in records if record.index - first < len(burst.due_s)]
    probes = [record for record in records if record.index - first >= len(burst.due_s)]
    refused = [record for record in sent if record.error == "throttled"]
    admitted = [record for record in sent if record.error != "throttled"]
    took_ms = sorted((record.ended_s - record.sent_s) * MS_PER_S for record in refused)
    waits_ms = sorted(wait for record in admitted if (wait := burst.wait_ms(record)) is not None)
    seen = OverloadResult(
        status="unmeasured",
        because="",
        offered_requests_per_s=burst.rate_per_s,
        burst_s=burst.seconds,
        sent=len(sent),
        admitted=len(admitted),
        refusals=dict(Counter(map(_refusal, refused)).most_common()),
        refusal_p95_ms=percentile(took_ms, 95) if took_ms else None,
        wait_p95_ms=percentile(waits_ms, 95) if waits_ms else None,
        recovery_s=_recovery_s(burst, probes, first),
    )
    misses = _misses(burst, admitted, objectives)
    rate = f"{digits(burst.rate_per_s)} requests/s, twice the knee's"
    if not refused:
        waited = seen.wait_p95_ms is None or seen.wait_p95_ms > burst.limit_ms
        if not misses and not waited:
            because = f"all {len(sent)} requests at {rate}, were answered in time: that is no overload"
            return replace(seen, because=because)
        misses = (f"none of {len(sent)} requests at {rate}, was refused{_waits(burst, seen)}", *misses)
    reasons = [*misses, *_broken(burst, seen)]
    if reasons:
        return replace(seen, status="refuted", because="; ".join(reasons))
    how = ", ".join(f"{name} {count}" for name, count in seen.refusals.items())
    kept = "kept the SLO" if objectives else "have no SLO to keep"
    because = (
        f"{100 * seen.refused_share:.0f} % of {len(sent)} requests at {rate}, were refused ({how}) within "
        f"{seen.refusal_p95_ms:.3g} ms (p95); the admitted {kept}{_waits(burst, seen)}; "
        f"back after {seen.recovery_s:.1f} s"
    )
    return replace(seen, status="proved", because=because)


def _refusal(record: RequestRecord) -> str:
    if record.status == HTTPStatus.OK:
        return "in the stream"
    return "ModelError" if record.status == HTTPStatus.FAILED_DEPENDENCY else f"HTTP {record.status}"


def _waits(burst: Burst, seen: OverloadResult) -> str:
    return "" if seen.wait_p95_ms is None else f" ({burst.wait_name} p95 {seen.wait_p95_ms:,.0f} ms)"


def _misses(burst: Burst, admitted: Sequence[RequestRecord], objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Return what the admitted requests miss; a burst's throughput is that of its length, and bounds nothing."""
    if not admitted:
        return ("every request was refused",)
    bounds = [objective for objective in objectives if objective.metric != "output_tok_s"]
    level = level_of_records(1, admitted, bounds, arrival="poisson", offered_requests_per_s=burst.rate_per_s)
    return tuple(f"admitted: {miss}" for miss in level.misses)


def _broken(burst: Burst, seen: OverloadResult) -> list[str]:
    bounds, reasons = burst.bounds, list[str]()
    if seen.refusal_p95_ms is not None and seen.refusal_p95_ms > bounds.refusal_ms:
        reasons.append(f"refused only after {seen.refusal_p95_ms:,.0f} ms (p95), not within {bounds.refusal_ms:g} ms")
    if seen.recovery_s is None or seen.recovery_s > bounds.recovery_s:
        what = "by the SLO" if burst.is_bounded else "as at the knee"
        reasons.append(f"{bounds.recovery_s:g} s after the burst requests still wait longer than {what}")
    return reasons


def _recovery_s(burst: Burst, probes: Sequence[RequestRecord], first: int) -> float | None:
    """Return when the probe was sent, seconds after the burst, from which on none waits too long; None where none."""
    waits_ms = {record.index - first - len(burst.due_s): burst.wait_ms(record) for record in probes}
    in_time = [
        (wait := waits_ms.get(each)) is not None and wait <= burst.limit_ms for each in range(len(burst.probes_s))
    ]
    back = next((number for number in range(len(in_time)) if all(in_time[number:])), None)
    return None if back is None else burst.probes_s[back] - burst.seconds


def with_overload(verdict: Verdict, seen: OverloadResult, *, is_required: bool) -> Verdict:
    """Return the verdict of a trial that requires the proof: refuted it fails, unmeasured it is inconclusive."""
    if not is_required:
        return verdict
    if seen.status == "proved":
        return replace(verdict, because=f"{verdict.because}; overload proved")
    because, failed = f"overload {seen.status}: {seen.because}", verdict.status == "fail"
    status: Literal["fail", "inconclusive"] = "fail" if failed or seen.status == "refuted" else "inconclusive"
    return replace(
        verdict, status=status, because=f"{because}; {verdict.because}" if verdict.status != "pass" else because
    )
