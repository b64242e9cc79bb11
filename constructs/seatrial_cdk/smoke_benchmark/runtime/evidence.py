"""What the runner's log keeps of a trial: the results bucket of a rolled-back creation is gone with its stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.units import tenths
from seatrial_cdk.smoke_benchmark.runtime.attributes import trial_usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.result import LevelResult, TrialResult
    from seatrial.measure.distribution import Distribution


def evidence(result: TrialResult) -> Iterator[str]:
    """Write the verdict, each objective, each level, the comparison and the cost, one line each."""
    yield f"verdict {result.verdict.status}: {result.verdict.because}"
    yield from (f"objective: {check.sentence}" for check in result.verdict.checks)
    yield from (level_sentence(level) for level in result.levels)
    yield from (f"not measured: {seen.place}: {seen.sentence}" for seen in result.unmeasured if seen.errors)
    if result.comparison is not None:
        yield f"compared with the last release: {result.comparison.status}: {result.comparison.because}"
    yield cost_sentence(result)
    yield f"stopped: {result.stopped_because}; live: {result.live.because}"


def cost_sentence(result: TrialResult) -> str:
    """Say what the trial's copies cost while it ran."""
    usd, request = trial_usd(result), result.request
    if result.engine_note:
        return (
            f"cost of the trial: not measured: local engine ({request.copy_count} copies for {result.duration_s:.0f} s)"
        )
    if usd is None:
        return f"cost of the trial: unknown ({request.copy_count} copies for {result.duration_s:.0f} s)"
    return (
        f"cost of the trial: {usd:.4f} USD ({request.copy_count} copies x {request.usd_per_hour_per_copy:g} USD/h "
        f"x {result.duration_s:.0f} s)"
    )


def level_sentence(level: LevelResult) -> str:
    """Say what was measured at a level."""
    speed = "unknown" if level.output_tok_s is None else tenths(level.output_tok_s)
    void = f"; void: {level.void_because}" if level.void_because else ""
    return (
        f"level {level.concurrency} per copy: {level.succeeded} of {level.requests} requests succeeded, "
        f"{speed} tok/s, TTFT p95 {_p95(level.ttft_ms)}, TPOT p95 {_p95(level.tpot_ms)}{void}"
    )


def _p95(measured: Distribution | None) -> str:
    return "unknown" if measured is None else f"{tenths(measured.p95)} ms"
