"""What the runner's log keeps of a trial: the results bucket of a rolled-back creation is gone with its stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.distribution import Distribution
    from seatrial.bench.result import LevelResult, TrialResult


def evidence(result: TrialResult) -> Iterator[str]:
    """Write the verdict, each objective and each level, one line each."""
    yield f"verdict {result.verdict.status}: {result.verdict.because}"
    yield from (f"objective: {check.sentence}" for check in result.verdict.checks)
    yield from (_line(level) for level in result.levels)
    yield f"stopped: {result.stopped_because}; live: {result.live.because}"


def _line(level: LevelResult) -> str:
    speed = "unknown" if level.output_tok_s is None else f"{level.output_tok_s:.1f}"
    return (
        f"level {level.concurrency} per copy: {level.succeeded} of {level.requests} requests succeeded, "
        f"{speed} tok/s, TTFT p95 {_p95(level.ttft_ms)}, TPOT p95 {_p95(level.tpot_ms)}"
    )


def _p95(measured: Distribution | None) -> str:
    return "unknown" if measured is None else f"{measured.p95:.1f} ms"
