"""The end of a trial: prove the deployment again, add knees and the containers' metrics, judge, compare, price."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum, unique
from typing import TYPE_CHECKING

from seatrial_base import __version__
from seatrial_base.errors import BenchError
from seatrial_base.field_facts import made_of
from seatrial_load.aws.clock_skew import shifted
from seatrial_load.aws.cloudwatch import LATE_S, Measured, cloudwatch_client, cloudwatch_errors, service_overhead
from seatrial_load.aws.container_metrics import (
    causes_of,
    cloudwatch_promql,
    own_cloudwatch,
    read_container_series,
    target_labels,
    with_component_gpus,
)
from seatrial_load.aws.deployment_check import prove_still_live
from seatrial_load.documents.container_metrics import ContainerMetrics, LevelMetrics
from seatrial_load.documents.result import (
    SCHEMA_VERSION,
    TrialResult,
    Verdict,
)
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.knee import blended_cost_at, cost_at, fallback_target, knees_of, scaling_target, without_price
from seatrial_load.metrics.counts import nothing_answered, outcome_sentence
from seatrial_load.metrics.level import with_queue_share
from seatrial_load.quality.answers import MOST_AT_ONCE, QualityTools, measure_quality
from seatrial_load.quality.scores import unmeasured_quality, with_quality
from seatrial_load.slo.verdict import (
    compare_with_baseline,
    grave_doubts,
    inconclusive,
    measured_at_random,
    no_success_at,
    saying_nothing,
    up_to_gate,
    verdict_at,
    with_cut_level,
    with_error_rate,
    with_regression,
)
from seatrial_load.trial.budget import (
    VERIFICATION_REQUESTS,
    adds_load,
    beside_plan,
    beside_users,
    left_s,
    live_request,
    verification_of,
)
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.overload import measure_overload, with_overload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.aws.container_metrics import ContainerSeries, PromQl
    from seatrial_load.documents.container_metrics import Cause
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import (
        Knee,
        LevelResult,
        LiveProof,
        QualityResult,
        ServiceOverhead,
        UsersLoad,
    )
    from seatrial_load.knee import ScalingTarget


NOTHING = (
    "CloudWatch has no metric of the container for that time: the endpoint publishes none "
    "(`hosting.metrics.detailed`), or its engine has none"
)


def promql_of(request: TrialRequest, progress: TrialProgress, tools: Tools) -> PromQl | None:
    """Return the source of the containers' metrics; None where CloudWatch is not read.

    A CloudWatch that is given without PromQL has none. Behind a local or simulated engine there is a CloudWatch only
    where boto3 has its address.
    """
    if request.target.kind != "sagemaker" or not tools.asks_cloudwatch or progress.measured_from_s is None:
        return None
    if tools.promql is not None or tools.cloudwatch is not None:
        return tools.promql
    if progress.engine_note and not own_cloudwatch():
        return None
    region, offset_s = request.target.region, progress.clock_offset_s
    now = tools.wall_clock if offset_s is None else shifted(tools.wall_clock, offset_s)
    return cloudwatch_promql(region, tools.credentials, now=now)


def with_container_metrics(result: TrialResult, ask: PromQl | None, tools: Tools) -> TrialResult:
    """Return the result with the containers' metrics; a verdict that fails names what limits the throughput.

    The CloudWatch of `tools` has the accelerators of a component that publishes none in detail.
    """
    times_s = [time_s for level in result.levels for time_s in (level.from_s, level.to_s) if time_s is not None]
    if ask is None or not times_s:
        return result
    target, from_s, to_s = result.request.target, min(times_s), max(times_s)
    try:
        series = read_container_series(ask, target_labels(target), from_s=from_s, to_s=to_s)
    except (OSError, ValueError) as refused:
        return replace(result, container=ContainerMetrics(because=f"CloudWatch did not respond: {refused}"))
    if not series.gpu and target.inference_component is not None and not result.engine_note:
        with suppress(*cloudwatch_errors()):
            cloudwatch = tools.cloudwatch or cloudwatch_client(target.region)
            series = with_component_gpus(series, cloudwatch, target.inference_component, from_s=from_s, to_s=to_s)
    metrics = _metrics_of(result, series)
    verdict = result.verdict
    if metrics.causes and verdict.status == "fail" and not series.simulated_by:
        verdict = replace(verdict, because=f"{verdict.because}; {metrics.causes[0].because}")
    return replace(result, container=metrics, verdict=verdict)


def _metrics_of(result: TrialResult, series: ContainerSeries) -> ContainerMetrics:
    loads = [
        (level, series.load(level.from_s, level.to_s))
        for level in result.levels
        if level.from_s is not None and level.to_s is not None
    ]
    levels = tuple(made_of(LevelMetrics, level, load=load) for level, load in loads if not load.is_empty)
    if not levels:
        return ContainerMetrics(because=NOTHING)
    source = (
        "CloudWatch, detailed observability" if series.waiting or series.running else "CloudWatch, accelerators alone"
    )
    if series.simulated_by:
        source = f"the embedded AWS, measured by {series.simulated_by}: no GPU, and another engine than the named one"
    return ContainerMetrics(levels=levels, causes=_causes(result, levels), because=source)


def _causes(result: TrialResult, levels: Sequence[LevelMetrics]) -> tuple[Cause, ...]:
    """Return what limits the throughput at the first level past the knee; without one, at the highest.

    The queue of a closed loop can't grow: it sends no more than it has in flight.
    """
    knee = result.knee.concurrency if result.knee is not None else None
    past = [level for level in levels if knee is not None and level.concurrency > knee]
    level = (past or levels[-1:])[0]
    return tuple(
        cause
        for cause in causes_of(level.load)
        if cause.kind != "queue_grows" or level.offered_requests_per_s is not None
    )


EVERYDAY = Tools()
# The rules of a control plane that can't be read: no credentials, connection or permission.
UNREADABLE = ("SEA503", "SEA504", "SEA511", "SEA512")


def conclude_trial(
    request: TrialRequest,
    progress: TrialProgress,
    tools: Tools = EVERYDAY,
    *,
    baseline: TrialResult | None = None,
    baseline_uri: str = "",
    patience_s: float = LATE_S,
) -> TrialResult:
    """Make the result of a trial's measurements.

    Raises:
        BenchError: SEA502, the live endpoint isn't this deployment's any more.
        ValueError: A further level may be measured.
    """
    if progress.stopped is None:
        raise ValueError("the trial is not over")
    request = live_request(request, progress)
    after, unread = _proof(request, progress, tools)
    doubt = unread or _doubt(request, progress, after)
    result = _judged(request, progress, progress.stopped, doubt)
    if request.overload != "off":
        # What adds no load beside users proves nothing of it, and fails for nothing.
        required = request.overload == "require" and request.manner == "load"
        because = "" if request.manner == "load" else "users' requests would be refused"
        if progress.stopped.reason == StopReason.CANCELLED or doubt is not None:
            because = progress.stopped.because if doubt is None else doubt.because
        overload = measure_overload(request, progress, result.levels, result.knee, tools, doubt=because)
        progress = replace(progress, elapsed_s=progress.elapsed_s + overload.duration_s)
        verdict = with_overload(result.verdict, overload, is_required=required)
        result = replace(result, overload=overload, verdict=verdict, duration_s=progress.elapsed_s)
    quality = _quality(request, progress, tools, doubt)
    if quality is not None:
        verdict, duration_s = with_quality(result.verdict, quality), result.duration_s + quality.duration_s
        result = replace(result, quality=quality, verdict=verdict, duration_s=duration_s)
    result = replace(
        result,
        live=_throughout(progress.live, after, request, progress.users),
        users=progress.users,
        overhead=_overhead(request, progress, tools, patience_s),
    )
    result = with_container_metrics(result, promql_of(request, progress, tools), tools)
    if baseline is None:
        return result
    comparison = compare_with_baseline(result, baseline, baseline_uri=baseline_uri)
    if doubt is not None and doubt.kind == _DoubtKind.CHANGED:
        comparison = replace(comparison, status="incomparable", because=doubt.because, changes=())
        return replace(result, comparison=comparison)
    if request.manner != "load":
        because = "the trial added no load" if request.manner == "verify" else "the load was alongside users' requests"
        return replace(result, comparison=replace(comparison, status="incomparable", because=because, changes=()))
    return replace(result, comparison=comparison, verdict=with_regression(result.verdict, comparison, request.gate))


def result_so_far(request: TrialRequest, progress: TrialProgress) -> TrialResult:
    """Return the result of the levels so far of a trial that goes on: it proves nothing."""
    stop = Stop(reason=StopReason.CANCELLED, because="the trial was not over")
    result = _judged(live_request(request, progress), replace(progress, stopped=stop), stop, None)
    return replace(result, verdict=inconclusive(result.verdict, stop.because))


def _quality(
    request: TrialRequest, progress: TrialProgress, tools: Tools, doubt: _Doubt | None
) -> QualityResult | None:
    """Send the evaluation set after the levels, within the rest of the budget; None without a set."""
    floor, stopped = request.quality, progress.stopped
    if floor is None:
        return None
    if doubt is not None:
        return unmeasured_quality(floor, doubt.because)
    if stopped is not None and (stopped.reason.is_guarded or stopped.reason == StopReason.CANCELLED):
        return unmeasured_quality(floor, stopped.because)
    return measure_quality(
        floor,
        request.target,
        request.workload.schema,
        confidence=request.gate.confidence,
        within_s=left_s(request, progress),
        streams=MOST_AT_ONCE if request.manner == "load" else 1,
        tools=made_of(QualityTools, tools),
    )


def distinct_levels(levels: Sequence[LevelResult]) -> tuple[LevelResult, ...]:
    """Return the levels ascending, each load once: of those measured again, the last valid one, else the last."""
    kept: dict[float, LevelResult] = {}
    for level in levels:
        load = level.offered_load
        if level.valid or load not in kept or not kept[load].valid:
            kept[load] = level
    return tuple(kept[load] for load in sorted(kept))


@unique
class _DoubtKind(StrEnum):
    NOT_VERIFIED = "not_verified"  # no copy served, or that is unknown
    BROKEN = "broken"  # the deployment was live before, and is not any more
    CHANGED = "changed"  # copies came or went meanwhile, or that is unknown


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Why the levels prove nothing of the deployment, whatever they measured."""

    kind: _DoubtKind
    because: str


def _judged(request: TrialRequest, progress: TrialProgress, stop: Stop, doubt: _Doubt | None) -> TrialResult:
    levels = with_queue_share(distinct_levels((*progress.cut, *progress.levels)))
    whole = tuple(level for level in levels if not level.cut)
    knees = knees_of(request, whole) if request.manner == "load" else ()
    target = _target(request, whole, knees, stop, doubt)
    priced = without_price(request) if progress.engine_note else request
    return made_of(
        TrialResult,
        progress,
        schema_version=SCHEMA_VERSION,
        request=request,
        duration_s=progress.elapsed_s,
        levels=levels,
        knees=knees,
        verdict=with_cut_level(_verdict(request, progress, whole, doubt), request, levels),
        target_concurrency_per_copy=target.concurrency_per_copy,
        target_detector=target.detector,
        target_because=target.because,
        usd_per_million_output_tokens=cost_at(priced, target.at),
        blended_usd_per_million_tokens=blended_cost_at(priced, target.at),
        stopped=stop,
        users=None,  # `conclude_trial` adds them
        random_arrivals=measured_at_random(request, levels),
        seatrial_version=__version__,
    )


def _target(
    request: TrialRequest, levels: Sequence[LevelResult], knees: Sequence[Knee], stop: Stop, doubt: _Doubt | None
) -> ScalingTarget:
    if doubt is not None:
        return fallback_target(request, doubt.because, levels)
    if request.manner != "load":
        return fallback_target(request, "no knee was sought", levels)
    if request.load.rates_for_copies is not None and len(up_to_gate(levels, request.load)) == len(levels):
        if request.load.gate_rate_per_s is None:
            return fallback_target(request, "no knee was sought: the rates end at the planned one", levels)
        planned = "the planned rate" if levels else "a rate"
        because = f"no knee was found: {planned} was the highest that was measured ({stop.because})"
        return fallback_target(request, because, levels)
    return scaling_target(request, levels, knees)


def _verdict(
    request: TrialRequest, progress: TrialProgress, levels: Sequence[LevelResult], doubt: _Doubt | None
) -> Verdict:
    # No success, or no text, stays a failure though copies came or went, unless no copy could be woken.
    gate, unmeasured = request.gate_concurrency, up_to_gate(progress.unmeasured, request.load)
    levels = up_to_gate(levels, request.load)
    if doubt is not None and doubt.kind == _DoubtKind.NOT_VERIFIED:
        return inconclusive(verdict_at(gate, (), ()), doubt.because)
    if request.manner == "load":
        verdict = verdict_at(
            gate, levels, request.objectives, confidence=request.gate.confidence, unmeasured=unmeasured
        )
        verdict = with_error_rate(verdict, levels, request.gate)
        dead = (no_success_at(gate, levels, unmeasured) or saying_nothing(levels)) is not None
    else:
        verdict = sparing_verdict(request, progress, levels)
        dead = verdict.status == "fail" and nothing_answered(levels, unmeasured) is not None
    if doubt is None:
        return verdict
    if doubt.kind == _DoubtKind.BROKEN or dead:
        return replace(verdict, status="fail", because=f"{doubt.because}; {verdict.because}")
    return inconclusive(verdict, doubt.because)


def _proof(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[LiveProof, _Doubt | None]:
    # Where AWS can't be read any more, the measurements before are kept, in doubt.
    if request.expected is None or not progress.live.proven:
        return progress.live, None
    try:
        still = prove_still_live(request.target, request.expected, sagemaker=tools.sagemaker, sleep=tools.sleep)
        return beside_plan(still, progress.live.planned_copy_count), None
    except BenchError as unread:
        if not all(problem.rule in UNREADABLE for problem in unread.problems):
            raise
        reasons = "; ".join(problem.message for problem in unread.problems)
        because = f"the deployment could not be checked after the trial: {reasons}"
        return replace(progress.live, proven=False, because=because), _Doubt(_DoubtKind.CHANGED, because)


def _doubt(request: TrialRequest, progress: TrialProgress, after: LiveProof) -> _Doubt | None:
    """Return why the measurements prove nothing of the deployment; None when they do.

    Copies that come or go make the load per copy unknown; single requests have none.
    """
    stop, before = progress.stopped, progress.live
    if stop is not None and stop.reason == StopReason.COMPONENT_FAILED:
        return _Doubt(_DoubtKind.BROKEN, f"the deployment changed during the trial: {stop.because}")
    if before.proven and not after.proven:
        return _Doubt(_DoubtKind.BROKEN, f"the deployment changed during the trial: {after.because}")
    if before.copy_count != after.copy_count and adds_load(request, progress.users):
        because = f"copies changed from {before.copy_count} to {after.copy_count} during the trial"
        return _Doubt(_DoubtKind.CHANGED, because)
    return _Doubt(_DoubtKind.NOT_VERIFIED, stop.because) if stop is not None and stop.reason.is_unverified else None


def _throughout(before: LiveProof, after: LiveProof, request: TrialRequest, users: UsersLoad | None) -> LiveProof:
    # Other copies than the loaded ones make the numbers per copy doubtful, so they are named.
    counts = {proof.copy_count for proof in (before, after)} - {None, request.copy_count}
    if not counts:
        return after
    seen = " and ".join(str(count) for count in (before.copy_count, after.copy_count))
    load = f"; the load was for {request.copy_count}" if adds_load(request, users) else ""
    return replace(after, because=f"{after.because}; {seen} copies ran before and after{load}")


def _overhead(
    request: TrialRequest, progress: TrialProgress, tools: Tools, patience_s: float
) -> ServiceOverhead | None:
    # A local or simulated engine has no CloudWatch.
    start_s, end_s = progress.measured_from_s, progress.measured_to_s
    if request.target.kind != "sagemaker" or progress.engine_note or not tools.asks_cloudwatch:
        return None
    if start_s is None or end_s is None:
        return None
    answered = [level for level in progress.levels if level.e2e_latency_ms is not None]
    count = sum(level.e2e_latency_ms.count for level in answered if level.e2e_latency_ms)
    if not count:
        return None
    total_ms = math.fsum(level.e2e_latency_ms.mean * level.e2e_latency_ms.count for level in answered
                         if level.e2e_latency_ms)  # fmt: skip
    measured = Measured(
        start=datetime.fromtimestamp(start_s, UTC),
        end=datetime.fromtimestamp(end_s, UTC),
        requests=count,
        mean_ms=total_ms / count,
        streamed=request.workload.stream,
    )
    return service_overhead(
        request.target, measured, patience_s=patience_s, cloudwatch=tools.cloudwatch, now=tools.wall_clock,
        sleep=tools.sleep,
    )  # fmt: skip


def sparing_verdict(request: TrialRequest, progress: TrialProgress, levels: Sequence[LevelResult]) -> Verdict:
    """Judge a trial whose manner isn't `load`.

    Harm to users fails it; users who could not be observed prove nothing. Without load, every single request must have
    succeeded, or as many as the gate's error rate lets. With load, the highest level that was measured decides.
    """
    judged = _beside_users(request, progress, levels) if adds_load(request, progress.users) else _verified(
        request, progress
    )  # fmt: skip
    stop = progress.stopped
    if stop is None or not stop.reason.is_guarded:
        return judged
    reason = f"the trial stopped: {stop.because}"
    if stop.reason.is_harm:
        return replace(judged, status="fail", because=f"{reason}; {judged.because}")
    return judged if judged.status == "fail" else inconclusive(judged, reason)


def _beside_users(request: TrialRequest, progress: TrialProgress, levels: Sequence[LevelResult]) -> Verdict:
    highest = max((level.concurrency for level in levels), default=request.gate_concurrency)
    verdict = verdict_at(
        highest,
        levels,
        request.objectives,
        confidence=request.gate.confidence,
        unmeasured=[seen for seen in progress.unmeasured if seen.occasion != "level"],
    )
    verdict = with_error_rate(verdict, levels, request.gate)
    if not levels:
        return verdict
    return replace(verdict, because=f"{beside_users(levels, progress.users)}; no knee was sought; {verdict.because}")


def _verified(request: TrialRequest, progress: TrialProgress) -> Verdict:
    seen, stop = verification_of(progress.unmeasured), progress.stopped
    if seen is None:
        return Verdict(status="inconclusive", because=f"no request was sent: {_because(stop)}", checks=())
    if (seen.sent - seen.succeeded) / seen.sent > (request.gate.max_error_rate or 0.0):
        return Verdict(status="fail", because=f"{outcome_sentence(seen)}; no load", checks=())
    if empty := saying_nothing([seen]):
        return Verdict(status="fail", because=f"{empty}; no load", checks=())
    if seen.sent < VERIFICATION_REQUESTS:
        because = f"{seen.sent} of {VERIFICATION_REQUESTS} requests were sent: {_because(stop)}"
        return Verdict(status="inconclusive", because=because, checks=())
    if doubts := grave_doubts(seen.doubts, request.objectives):
        return Verdict(status="inconclusive", because=f"{'; '.join(doubts)}; no load", checks=())
    outcome = f"verified: {outcome_sentence(seen)}, no load"
    return Verdict(status="pass", because=outcome, checks=())


def _because(stop: Stop | None) -> str:
    return "the trial is not over" if stop is None else stop.because
