"""What is good: levels held against objectives, and the verdict at the gate's concurrency, in sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.bench.judgement import Check, Verdict
from seatrial.bench.metrics import is_met

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.distribution import Distribution
    from seatrial.bench.request import Objective
    from seatrial.bench.result import LevelResult


def judged(level: LevelResult, objectives: Sequence[Objective]) -> LevelResult:
    """Return the level with its verdict on the SLO filled in."""
    misses = (
        tuple(check.sentence for check in checks_of(level, objectives) if not check.met)
        if level.succeeded
        else (no_success(level),)
    )
    return replace(level, meets_slo=not misses, misses=misses)


def checks_of(level: LevelResult, objectives: Sequence[Objective]) -> tuple[Check, ...]:
    """Hold every objective against a level."""
    return tuple(_check(level, objective) for objective in objectives)


def verdict_at(gate_concurrency: int, levels: Sequence[LevelResult], objectives: Sequence[Objective]) -> Verdict:
    """Judge at the gate's concurrency per copy.

    The level there decides. When it wasn't measured, a level above that meets the SLO passes (less load isn't
    worse), the level below fails if it misses the SLO (more load isn't better); anything else is inconclusive.
    """
    exact = next((level for level in levels if level.concurrency == gate_concurrency), None)
    if exact is not None:
        return _verdict_of(exact, objectives, "")
    unmeasured = f"concurrency {gate_concurrency} per copy was not measured; "
    above = next((level for level in levels if level.concurrency > gate_concurrency), None)
    if above is not None and above.meets_slo:
        return _verdict_of(above, objectives, unmeasured)
    below = max((level for level in levels if level.concurrency < gate_concurrency), key=_concurrency, default=None)
    verdict = None if below is None else _verdict_of(below, objectives, unmeasured)
    if verdict is not None and verdict.status == "fail":
        return verdict
    measured = ", ".join(str(level.concurrency) for level in levels) or "none"
    return Verdict(status="inconclusive", because=f"{unmeasured}measured in full: {measured}", checks=())


def inconclusive(verdict: Verdict, because: str) -> Verdict:
    """Return the verdict as one that proves nothing, for a reason; what was measured stays readable."""
    return replace(verdict, status="inconclusive", because=f"{because}; {verdict.because}")


def no_success(level: LevelResult) -> str:
    """Say that nothing succeeded, and what happened instead."""
    counts = ", ".join(f"{name} {count}" for name, count in level.errors.items())
    first = f" ({level.first_errors[0]})" if level.first_errors else ""
    return f"0 of {level.requests} requests succeeded at concurrency {level.concurrency} per copy: {counts}{first}"


def _concurrency(level: LevelResult) -> int:
    return level.concurrency


def _verdict_of(level: LevelResult, objectives: Sequence[Objective], preface: str) -> Verdict:
    if not level.succeeded:
        return Verdict(status="fail", because=preface + no_success(level), checks=())
    checks = checks_of(level, objectives)
    missed = [check.sentence for check in checks if check.met is False]
    unknown = [check.sentence for check in checks if check.met is None]
    if missed:
        return Verdict(status="fail", because=preface + "; ".join(missed + unknown), checks=checks)
    if unknown:
        return Verdict(status="inconclusive", because=preface + "; ".join(unknown), checks=checks)
    return Verdict(status="pass", because=f"{preface}{_success(level, len(checks))}", checks=checks)


def _success(level: LevelResult, objectives: int) -> str:
    answered = f"{level.succeeded} of {level.requests} requests succeeded at concurrency {level.concurrency} per copy"
    return f"all {objectives} objectives are met, {answered}" if objectives else f"no objective is set, {answered}"


def _check(level: LevelResult, objective: Objective) -> Check:
    measured = _measured(level, objective)
    name = objective.metric if objective.statistic == "value" else f"{objective.metric} {objective.statistic}"
    place = f"at concurrency {level.concurrency} per copy"
    if measured is None:
        sentence = f"{name} was not measured {place}: no request gave one"
        return Check(objective=objective, measured=None, met=None, sentence=sentence)
    met = is_met(measured, objective)
    relation = "is within" if met else "exceeds" if objective.sense == "at_most" else "is below"
    sentence = f"{name} {_written(measured, objective)} {relation} {_written(objective.bound, objective)} {place}"
    return Check(objective=objective, measured=measured, met=met, sentence=sentence)


def _measured(level: LevelResult, objective: Objective) -> float | None:
    match objective.metric:
        case "error_rate":
            return level.error_rate
        case "output_tok_s":
            return level.output_tok_s
        case "ttft_ms":
            return _statistic(level.ttft_ms, objective)
        case "tpot_ms":
            return _statistic(level.tpot_ms, objective)
        case "e2e_latency_ms":
            return _statistic(level.e2e_latency_ms, objective)


def _statistic(values: Distribution | None, objective: Objective) -> float | None:
    if values is None:
        return None
    by_name = {"p50": values.p50, "p90": values.p90, "p95": values.p95, "p99": values.p99, "mean": values.mean}
    return by_name[objective.statistic]


def _written(value: float, objective: Objective) -> str:
    match objective.metric:
        case "error_rate":
            return f"{value * 100:.2f} %"
        case "output_tok_s":
            return f"{value:.1f} tok/s"
    return f"{value:.1f} ms"
