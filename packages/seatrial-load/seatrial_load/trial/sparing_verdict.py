"""The verdict of a trial that spares users: by single requests, or by the highest level beside theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_load.model.result import Verdict
from seatrial_load.slo.verdict import inconclusive, verdict_at, with_error_rate
from seatrial_load.trial.manner import VERIFICATION_REQUESTS, adds_load, beside_users, verification_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.metrics.counts import Unmeasured
    from seatrial_load.model.progress import TrialProgress
    from seatrial_load.model.request import TrialRequest
    from seatrial_load.model.result import LevelResult
    from seatrial_load.model.stop import Stop


def sparing_verdict(request: TrialRequest, progress: TrialProgress, levels: Sequence[LevelResult]) -> Verdict:
    """Judge a trial whose manner isn't `load`.

    Harm to users fails it; what could not be watched proves nothing. Without load, every single request must have
    succeeded, or as many as the gate's error rate lets. With load, the highest level that was measured decides.

    Args:
        request: What was asked.
        progress: What was seen, and why no more.
        levels: What was measured, ascending.
    """
    judged = _beside_users(request, progress, levels) if adds_load(request, progress.users) else _verified(
        request, progress
    )  # fmt: skip
    stop = progress.stopped
    if stop is None or not stop.reason.is_guarded:
        return judged
    told = f"the trial stopped: {stop.because}"
    if stop.reason.is_harm:
        return replace(judged, status="fail", because=f"{told}; {judged.because}")
    return judged if judged.status == "fail" else inconclusive(judged, told)


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
    if _fails(request, seen):
        return Verdict(status="fail", because=f"{seen.sentence}; no load", checks=())
    if seen.sent < VERIFICATION_REQUESTS:
        because = f"{seen.sent} of {VERIFICATION_REQUESTS} requests were sent: {_because(stop)}"
        return Verdict(status="inconclusive", because=because, checks=())
    told = f"verified: {seen.sentence}, no load"
    return Verdict(status="pass", because=told, checks=())


def _fails(request: TrialRequest, seen: Unmeasured) -> bool:
    """Tell whether more requests failed than the gate's error rate lets; without one, any."""
    return (seen.sent - seen.succeeded) / seen.sent > (request.gate.max_error_rate or 0.0)


def _because(stop: Stop | None) -> str:
    return "the trial is not over" if stop is None else stop.because
