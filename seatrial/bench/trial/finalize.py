"""How a trial ends: prove again what is live, find the knees, judge, compare, and say what it cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from seatrial import __version__
from seatrial.bench.aws.deployment_check import not_proven, prove_still_live
from seatrial.bench.aws.service_overhead import LATE_S, Measured, service_overhead
from seatrial.bench.aws.wake import COMPONENT_FAILED, NOT_VERIFIED
from seatrial.bench.knee.detectors import knees_of
from seatrial.bench.knee.scaling_target import blended_cost_at, cost_at, fallback_target, scaling_target, unpriced
from seatrial.bench.metrics.level import with_queue_share
from seatrial.bench.model.result import SCHEMA_VERSION, TrialResult
from seatrial.bench.slo.baseline import compare, with_regression
from seatrial.bench.slo.verdict import inconclusive, no_success_at, verdict_at, with_error_rate
from seatrial.bench.trial.dependencies import Tools
from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.metrics.counts import Unmeasured
    from seatrial.bench.model.progress import TrialProgress
    from seatrial.bench.model.request import TrialRequest
    from seatrial.bench.model.result import LevelResult, LiveProof, ServiceOverhead, Verdict


EVERYDAY = Tools()
UNASKED = ("SEA503", "SEA504", "SEA511", "SEA512")
"""The rules of a control plane that can't be asked: no credentials, connection or permission."""


def conclude(
    request: TrialRequest,
    progress: TrialProgress,
    tools: Tools = EVERYDAY,
    *,
    baseline: TrialResult | None = None,
    baseline_uri: str = "",
    patience_s: float = LATE_S,
) -> TrialResult:
    """Make the result of everything that was measured.

    Args:
        request: The trial.
        progress: What was measured, and why no more.
        tools: What to ask the control plane with.
        baseline: The last release's result; None when there is none.
        baseline_uri: Where it lies.
        patience_s: How long CloudWatch may be waited for.

    Raises:
        BenchError: SEA502, the live endpoint isn't this deployment's any more.
    """
    after, lost = _proof(request, progress, tools)
    broken = "" if lost else _broken(progress, after)
    changed = "" if broken else lost or _changed(progress.live, after)
    judging = _Judging(request, with_queue_share(settled(progress.levels)), broken, changed)
    result = replace(
        judging.result(progress),
        live=_throughout(progress.live, after, request.copy_count),
        overhead=_overhead(request, progress, tools, patience_s),
    )
    if baseline is None:
        return result
    comparison = compare(result, baseline, baseline_uri=baseline_uri)
    if changed:
        return replace(result, comparison=replace(comparison, status="incomparable", because=changed, changes=()))
    return replace(result, comparison=comparison, verdict=with_regression(result.verdict, comparison, request.gate))


def settled(levels: Sequence[LevelResult]) -> tuple[LevelResult, ...]:
    """Return the levels ascending, each load once: of those measured again, the last valid one, else the last."""
    kept: dict[float, LevelResult] = {}
    for level in levels:
        load = level.concurrency if level.offered_requests_per_s is None else level.offered_requests_per_s
        if level.valid or load not in kept or not kept[load].valid:
            kept[load] = level
    return tuple(kept[load] for load in sorted(kept))


@dataclass(frozen=True, slots=True)
class _Judging:
    request: TrialRequest
    levels: tuple[LevelResult, ...]
    broken: str
    changed: str

    def result(self, progress: TrialProgress) -> TrialResult:
        request, levels = self.request, self.levels
        knees = knees_of(levels, request.prior, request.objectives)
        because = (
            self.broken
            or self.changed
            or (progress.stopped_because if progress.stopped_because.startswith(NOT_VERIFIED) else "")
        )
        target = fallback_target(request, because) if because else scaling_target(request, levels, knees)
        priced = unpriced(request) if progress.engine_note else request
        return TrialResult(
            schema_version=SCHEMA_VERSION,
            request=request,
            started_at=progress.started_at,
            duration_s=progress.elapsed_s,
            engine_note=progress.engine_note,
            live=progress.live,
            levels=levels,
            knees=knees,
            verdict=self._verdict(because, progress.unmeasured),
            target_concurrency_per_copy=target.concurrency_per_copy,
            target_detector=target.detector,
            target_because=target.because,
            usd_per_million_output_tokens=cost_at(priced, target.at),
            blended_usd_per_million_tokens=blended_cost_at(priced, target.at),
            stopped_because=progress.stopped_because,
            search=progress.search,
            unmeasured=progress.unmeasured,
            client=progress.client,
            clock_offset_s=progress.clock_offset_s,
            words_per_token=progress.words_per_token,
            seatrial_version=__version__,
        )

    def _verdict(self, because: str, unmeasured: Sequence[Unmeasured]) -> Verdict:
        """Judge; no success stays a failure though copies came or went, unless it is for lack of a copy to wake."""
        request, gate = self.request, self.request.gate_concurrency
        if because.startswith(NOT_VERIFIED):
            return inconclusive(verdict_at(gate, (), ()), because)
        confidence = request.gate.confidence
        verdict = verdict_at(gate, self.levels, request.objectives, confidence=confidence, unmeasured=unmeasured)
        verdict = with_error_rate(verdict, self.levels, request.gate)
        if self.broken or (because and no_success_at(gate, self.levels, unmeasured)):
            return replace(verdict, status="fail", because=f"{because}; {verdict.because}")
        return inconclusive(verdict, because) if because else verdict


def _proof(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[LiveProof, str]:
    """Prove once more; where AWS can't be asked any more, say so: what was measured before is not thrown away."""
    if request.expected is None or not progress.live.proven:
        return (progress.live if progress.live.because else not_proven()), ""
    try:
        return prove_still_live(request.target, request.expected, sagemaker=tools.sagemaker), ""
    except BenchError as unasked:
        if not all(problem.rule in UNASKED for problem in unasked.problems):
            raise
        told = "; ".join(problem.message for problem in unasked.problems)
        because = f"the deployment could not be checked after the trial: {told}"
        return replace(progress.live, proven=False, because=because), because


def _broken(progress: TrialProgress, after: LiveProof) -> str:
    """Say that the deployment broke; empty when it did not."""
    if progress.stopped_because.startswith(COMPONENT_FAILED):
        return f"the deployment changed during the trial: {progress.stopped_because}"
    broke = progress.live.proven and not after.proven
    return f"the deployment changed during the trial: {after.because}" if broke else ""


def _throughout(before: LiveProof, after: LiveProof, copy_count: int) -> LiveProof:
    """Join both proofs; copies that differ from those the trial loaded make its numbers per copy doubtful: say so."""
    counts = {proof.copy_count for proof in (before, after)} - {None, copy_count}
    if not counts:
        return after
    seen = " and ".join(str(count) for count in (before.copy_count, after.copy_count))
    note = f"{seen} copies ran before and after; the load was for {copy_count}"
    return replace(after, because=f"{after.because}; {note}")


def _changed(before: LiveProof, after: LiveProof) -> str:
    """Say that copies came or went meanwhile; empty when none did. The load per copy is then unknown."""
    if before.copy_count == after.copy_count:
        return ""
    return f"copies changed from {before.copy_count} to {after.copy_count} during the trial"


def _overhead(
    request: TrialRequest, progress: TrialProgress, tools: Tools, patience_s: float
) -> ServiceOverhead | None:
    """Ask what SageMaker adds; None where nobody asks: a local or simulated engine has no CloudWatch behind it."""
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
