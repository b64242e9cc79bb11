"""The values of a trial's result that no type excludes and no measurement gives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.documents.result import LevelResult, TrialResult


def impossible_values(result: TrialResult) -> Iterator[tuple[str, str]]:
    """Yield the path of every value that no trial can have measured, and what is wrong with it."""
    if result.duration_s < 0:
        yield "duration_s", f"{result.duration_s:g} is below 0"
    loads: Counter[tuple[int, float]] = Counter()
    for index, level in enumerate(result.levels):
        yield from ((f"levels[{index}].{name}", message) for name, message in _impossible_of(level))
        rate = level.offered_requests_per_s
        loads[level.concurrency if rate is None else 0, rate or 0.0] += 1
    for (concurrency, rate), times in loads.items():
        if times > 1:
            load = f"{rate:g} requests/s" if rate else f"concurrency {concurrency}"
            yield "levels", f"{load} stands there {times} times"
    for index, seen in enumerate(result.unmeasured):
        if not 0 <= seen.succeeded <= seen.sent:
            yield f"unmeasured[{index}].succeeded", f"{seen.succeeded} of {seen.sent} sent"
    if result.verdict.status == "pass":
        yield from _unfounded(result)


def _unfounded(result: TrialResult) -> Iterator[tuple[str, str]]:
    """Yield what a trial that passed has not: an answer that proves it, and every objective met."""
    verified = any(seen.succeeded for seen in result.unmeasured if seen.occasion == "verification")
    if not verified and not any(level.succeeded and level.valid for level in result.levels):
        yield "verdict.status", "pass, though no request of a valid level or of a verification was answered"
    for index, check in enumerate(result.verdict.checks):
        if check.met is not True:
            yield f"verdict.checks[{index}].met", "not met, though the verdict is pass"


def _impossible_of(level: LevelResult) -> Iterator[tuple[str, str]]:
    if level.requests < 1:
        yield "requests", f"{level.requests} is below 1"
    if not 0 <= level.succeeded <= level.requests:
        yield "succeeded", f"{level.succeeded} of {level.requests} requests"
    elif (failed := sum(level.errors.values())) > level.requests - level.succeeded or any(
        count < 0 for count in level.errors.values()
    ):
        yield "errors", f"{failed} failures of {level.requests - level.succeeded} requests that failed"
    for name in ("concurrency", "window_s", "duration_s", "output_tok_s", "requests_per_s", "goodput_requests_per_s",
                 "total_tok_s", "offered_requests_per_s", "input_tokens_mean", "output_tokens_mean",
                 "input_tokens_p50", "input_tokens_p95", "output_tokens_p50", "output_tokens_p95"):  # fmt: skip
        if (value := getattr(level, name)) is not None and value < 0:
            yield name, f"{value:g} is below 0"
    if level.cached_share is not None and not 0 <= level.cached_share <= 1:
        yield "cached_share", f"{level.cached_share:g} is no share"
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "ms_per_token", "e2e_latency_ms"):
        values = getattr(level, name)
        if values is not None and min(values.count, values.mean, values.p50, values.p90, values.p95, values.p99) < 0:
            yield name, "a value is below 0"
