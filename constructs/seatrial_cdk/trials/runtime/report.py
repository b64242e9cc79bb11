"""Reports of a trial: the short report, the lines of the log, CloudWatch's metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_base.text import code, escaped
from seatrial_base.units import exported, tenths, whole_or_tenths
from seatrial_cdk.trials.runtime.attributes import headline, trial_usd, value_of
from seatrial_load.metrics.counts import unmeasured_lines
from seatrial_load.metrics.sent import cache_lines, overload_lines
from seatrial_load.slo.verdict import doubt_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.result import Comparison, LevelResult, TrialResult


MISSING = "-"
NAMESPACE: Final = "Seatrial"
DIMENSIONS: Final = ("Endpoint", "Environment")
UNITS: Final[Mapping[str, str]] = {
    "TtftP95Ms": "Milliseconds",
    "TpotP95Ms": "Milliseconds",
    "E2eP95Ms": "Milliseconds",
    "OutputTokensPerSecond": "Count/Second",
    "KneeConcurrencyPerCopy": "Count",
    "ErrorRate": "None",
    "UsdPerMillionOutputTokens": "None",
    "Passed": "Count",
}
"""Each metric's unit; `ErrorRate` is a share from 0 to 1, `Passed` is 1 or 0."""
MS_PER_S = 1000


def short_report(result: TrialResult, uri: str) -> str:
    """Write the short report of a result that lies at a URI."""
    return "\n".join(_lines(result, uri)) + "\n"


def _lines(result: TrialResult, uri: str) -> Iterator[str]:
    request = result.request
    yield f"# Sea trial of {escaped(request.endpoint)} in {escaped(request.environment)}: {result.verdict.status}"
    yield ""
    yield escaped(f"{result.verdict.because}.")
    if result.engine_note:
        yield ""
        yield f"**Measured on {escaped(result.engine_note)}.**"
    yield ""
    yield from (f"- {escaped(check.sentence)}" for check in result.verdict.checks)
    yield from _levels(result)
    target = exported(result.target_concurrency_per_copy)
    yield f"Scaling target: {target} concurrent requests per copy: {escaped(result.target_because)}."
    yield ""
    for knee in result.knees:
        load = MISSING if knee.concurrency is None else whole_or_tenths(knee.concurrency)
        yield f"- knee by {code(knee.detector)}: {load}: {escaped(knee.because)}"
    yield from _facts(result)
    yield f"Summary of {code(uri)}, plan {escaped(request.plan_digest)}, started at {escaped(result.started_at)}."
    yield f"Full report: {code(f'seatrial report {uri}')}."


def _levels(result: TrialResult) -> Iterator[str]:
    yield ""
    yield "| concurrency per copy | requests | failed | tok/s | TTFT p95 ms | TPOT p95 ms | end to end p95 ms | SLO |"
    yield "|---:|---:|---:|---:|---:|---:|---:|---|"
    knee = headline(result).knee
    yield from (_row(level, at_knee=level.concurrency == knee) for level in result.levels)
    yield ""


def _row(level: LevelResult, *, at_knee: bool) -> str:
    rate = level.offered_requests_per_s
    cells = (
        f"{level.concurrency}{'' if rate is None else f' at {rate:.3g} requests/s'}{' (knee)' if at_knee else ''}",
        f"{level.requests}",
        f"{level.requests - level.succeeded}",
        MISSING if level.output_tok_s is None else tenths(level.output_tok_s),
        _p95(level.ttft_ms),
        _p95(level.tpot_ms),
        _p95(level.e2e_latency_ms),
        level.mark or ("met" if level.meets_slo else "not met"),
    )
    return f"| {' | '.join(cells)} |"


def _facts(result: TrialResult) -> Iterator[str]:
    yield ""
    yield from (f"- {escaped(line)}" for line in _conditions(result))
    if result.usd_per_million_output_tokens is not None:
        yield f"- USD per million output tokens: {result.usd_per_million_output_tokens:.4g}"
    if result.blended_usd_per_million_tokens is not None:
        yield f"- USD per million tokens, input and output blended 3:1: {result.blended_usd_per_million_tokens:.4g}"
    if result.comparison is not None:
        yield f"- {escaped(_compared(result.comparison))}"
    yield ""


def _conditions(result: TrialResult) -> Iterator[str]:
    yield from (f"doubt: {doubt}" for doubt in doubt_texts(result))
    yield from cache_lines(result)
    yield from overload_lines(result)
    yield from unmeasured_lines(result.unmeasured)
    yield f"stopped: {result.stopped.because}"
    yield f"live: {result.live.because}"
    if result.start is not None:
        yield f"start of the copy: {result.start.words}"
    yield cost_sentence(result)


def _compared(comparison: Comparison) -> str:
    return f"compared with the last release: {comparison.status}: {comparison.because}"


def _p95(measured: Distribution | None) -> str:
    return MISSING if measured is None else tenths(measured.p95)


def evidence(result: TrialResult) -> Iterator[str]:
    """Write the verdict, each objective, each level, the comparison and the cost, one line each."""
    yield f"verdict {result.verdict.status}: {result.verdict.because}"
    yield from (f"objective: {check.sentence}" for check in result.verdict.checks)
    yield from (level_sentence(level) for level in result.levels)
    yield from (f"doubt: {doubt}" for doubt in doubt_texts(result))
    yield from unmeasured_lines(result.unmeasured)
    if result.comparison is not None:
        yield _compared(result.comparison)
    yield cost_sentence(result)
    yield f"stopped: {result.stopped.because}; live: {result.live.because}"


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
    void = f"; {level.mark}: {level.invalid_because}" if level.mark else ""
    return (
        f"level {level.concurrency} per copy: {level.succeeded} of {level.requests} requests succeeded, "
        f"{speed} tok/s, TTFT p95 {_p95_ms(level.ttft_ms)}, TPOT p95 {_p95_ms(level.tpot_ms)}{void}"
    )


def _p95_ms(measured: Distribution | None) -> str:
    return "unknown" if measured is None else f"{tenths(measured.p95)} ms"


def metrics_line(result: TrialResult, *, now_s: float) -> str:
    """Return the line; the numbers are those of the trial's headline."""
    values = {name: value for name, value in _values(result).items() if value is not None}
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(DIMENSIONS)],
        "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
    }
    root = {
        "_aws": {"Timestamp": int(now_s * MS_PER_S), "CloudWatchMetrics": [directive]},
        "Endpoint": result.request.endpoint,
        "Environment": result.request.environment,
        **values,
    }
    return json.dumps(root, separators=(",", ":"), allow_nan=False)


def _values(result: TrialResult) -> dict[str, float | None]:
    summary = headline(result)
    at = summary.at
    return {
        "TtftP95Ms": None if at is None else value_of(at.ttft_p95_ms),
        "TpotP95Ms": None if at is None else value_of(at.tpot_p95_ms),
        "E2eP95Ms": None if at is None else value_of(at.e2e_p95_ms),
        "OutputTokensPerSecond": None if at is None else at.output_tok_s,
        "KneeConcurrencyPerCopy": summary.knee,
        "ErrorRate": None if at is None else value_of(at.errors),
        "UsdPerMillionOutputTokens": result.usd_per_million_output_tokens,
        "Passed": int(result.verdict.status == "pass"),
    }
