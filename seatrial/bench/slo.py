"""What is good: levels held against objectives, and the verdict at the gate's concurrency, in sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.bench.check import checks_of
from seatrial.bench.judgement import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.request import Objective
    from seatrial.bench.result import LevelResult


def judged(level: LevelResult, objectives: Sequence[Objective]) -> LevelResult:
    """Return the level with its verdict on the SLO filled in, by the measured values as they are."""
    misses = (
        tuple(check.sentence for check in checks_of(level, objectives) if not check.met)
        if level.succeeded
        else (no_success(level),)
    )
    return replace(level, meets_slo=not misses, misses=misses)


def verdict_at(
    gate_concurrency: int, levels: Sequence[LevelResult], objectives: Sequence[Objective], *, confidence: float = 0.0
) -> Verdict:
    """Judge at the gate's concurrency per copy; of an open loop, at the highest rate offered.

    The level there decides. When it wasn't measured, a level above that meets the SLO passes (less load isn't
    worse), the level below fails if it misses the SLO (more load isn't better); anything else is inconclusive. A level
    that the client limited proves nothing, neither there nor beside it.

    Args:
        gate_concurrency: Requests in flight per copy at which the SLO must hold.
        levels: What was measured, ascending.
        objectives: The SLO.
        confidence: Of the proof; see `checks_of`.
    """
    offered = [level for level in levels if level.offered_requests_per_s is not None]
    exact = offered[-1:] or [level for level in levels if level.concurrency == gate_concurrency]
    if exact:
        return _verdict_of(exact[0], objectives, "", confidence)
    unmeasured = f"concurrency {gate_concurrency} per copy was not measured; "
    valid = [level for level in levels if level.valid]
    above = [level for level in valid if level.concurrency > gate_concurrency][:1]
    below = [level for level in valid if level.concurrency < gate_concurrency][-1:]
    for level, proof in [*((level, "pass") for level in above), *((level, "fail") for level in below)]:
        verdict = _verdict_of(level, objectives, unmeasured, confidence)
        if verdict.status == proof:
            return verdict
    measured = ", ".join(map(_named, levels)) or "none"
    return Verdict(status="inconclusive", because=f"{unmeasured}measured in full: {measured}", checks=())


def inconclusive(verdict: Verdict, because: str) -> Verdict:
    """Return the verdict as one that proves nothing, for a reason; what was measured stays readable."""
    return replace(verdict, status="inconclusive", because=f"{because}; {verdict.because}")


def no_success(level: LevelResult) -> str:
    """Say that nothing succeeded, and what happened instead."""
    counts = ", ".join(f"{name} {count}" for name, count in level.errors.items())
    first = f" ({level.first_errors[0]})" if level.first_errors else ""
    return f"0 of {level.requests} requests succeeded at concurrency {level.concurrency} per copy: {counts}{first}"


def _named(level: LevelResult) -> str:
    return f"{level.concurrency}" if level.valid else f"{level.concurrency} (void: {level.void_because})"


def _verdict_of(level: LevelResult, objectives: Sequence[Objective], preface: str, confidence: float) -> Verdict:
    checks = checks_of(level, objectives, confidence) if level.succeeded else ()
    if not level.valid:
        because = f"{preface}the level at concurrency {level.concurrency} per copy proves nothing: {level.void_because}"
        unproven = tuple(replace(check, met=None) for check in checks)
        return Verdict(status="inconclusive", because=because, checks=unproven)
    if not level.succeeded:
        return Verdict(status="fail", because=preface + no_success(level), checks=())
    missed = [check.sentence for check in checks if check.met is False]
    unknown = [check.sentence for check in checks if check.met is None]
    if missed:
        return Verdict(status="fail", because=preface + "; ".join(missed + unknown), checks=checks)
    if unknown:
        return Verdict(status="inconclusive", because=preface + "; ".join(unknown), checks=checks)
    return Verdict(status="pass", because=f"{preface}{_success(level, len(checks))}", checks=checks)


def _success(level: LevelResult, objectives: int) -> str:
    answered = f"{level.succeeded} of {level.requests} requests succeeded at concurrency {level.concurrency} per copy"
    if not objectives:
        return f"no objective is set, {answered}"
    met = "the objective is met" if objectives == 1 else f"all {objectives} objectives are met"
    return f"{met}, {answered}"
