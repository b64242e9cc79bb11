"""What follows from the levels: the concurrency that scaling shall track, and what a million tokens cost there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.units import BLENDED_TOKENS_PER_OUTPUT_TOKEN, S_PER_HOUR, as_exported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import Detector, Knee, LevelResult

TOKENS_PER_MILLION = 1_000_000
BENDS: tuple[Detector, ...] = ("two_segment", "kneedle")


@dataclass(frozen=True, slots=True)
class ScalingTarget:
    """What scaling shall track.

    Attributes:
        concurrency_per_copy: Requests in flight per copy, rounded as the attribute is that scaling reads.
        detector: The detector whose knee it comes from; None for the fallback and for a level without a knee.
        level: The level that it comes from, of a knee between two levels the lower one; None for the fallback.
        because: The reason.
    """

    concurrency_per_copy: float
    detector: Detector | None
    level: LevelResult | None
    because: str


def scaling_target(request: TrialRequest, levels: Sequence[LevelResult], knees: Sequence[Knee]) -> ScalingTarget:
    """Choose what scaling shall track: a knee times the target utilization. Levels that the client limited don't count.

    With objectives it is the `slo` knee, if a higher level's miss has proven it. Where every measured level meets the
    SLO, and where there are no objectives, it is the `two_segment` knee, which the adaptive search looks for, else the
    `kneedle` knee: more load would only queue. Else the highest level that meets the SLO, or without objectives the
    highest one without an error. When there is none, the request's fallback, as it is.

    Args:
        request: What was asked.
        levels: What was measured, ascending.
        knees: What each detector found.
    """
    valid = [level for level in levels if level.valid]
    knee, reason = _chosen_knee(request, valid, knees)
    if knee is None:
        found = _clean_level(request, valid)
        concurrency = None if found is None else found.concurrency
    else:
        concurrency = knee.concurrency
        found = _level_below(valid, knee)
    if found is None or concurrency is None:
        return fallback_target(request, reason)
    because = f"{reason} {concurrency} per copy x target utilization {request.target_utilization:g}"
    detector = None if knee is None else knee.detector
    return ScalingTarget(as_exported(concurrency * request.target_utilization), detector, found, because)


def fallback_target(request: TrialRequest, reason: str) -> ScalingTarget:
    """Return the request's fallback, for a reason."""
    fallback = as_exported(request.fallback_target_concurrency)
    return ScalingTarget(fallback, None, None, f"fallback {fallback:g} per copy: {reason}")


def cost_at(request: TrialRequest, level: LevelResult | None) -> float | None:
    """Cost of output, USD per million tokens: price per hour and copy / (3600 x tokens/s per copy) x 10^6.

    None without a level to take it from, without its throughput, or without a price.
    """
    if level is None or not level.output_tok_s or request.usd_per_hour_per_copy is None:
        return None
    tokens_per_hour_per_copy = S_PER_HOUR * level.output_tok_s / request.copy_count
    return request.usd_per_hour_per_copy / tokens_per_hour_per_copy * TOKENS_PER_MILLION


def unpriced(request: TrialRequest) -> TrialRequest:
    """Return the request without its price: a local engine's speed on a CPU says nothing of a GPU's cost."""
    return replace(request, usd_per_hour_per_copy=None)


def blended_cost_at(request: TrialRequest, level: LevelResult | None) -> float | None:
    """Blended cost, USD per million tokens at three input tokens to one output token, by the articles' formula.

    Price per hour x (1 - discount) / (output tokens per hour in millions) / 4: a price per copy has its discount in it.
    None where `cost_at` is.
    """
    cost = cost_at(request, level)
    return None if cost is None else cost / BLENDED_TOKENS_PER_OUTPUT_TOKEN


def _chosen_knee(
    request: TrialRequest, levels: Sequence[LevelResult], knees: Sequence[Knee]
) -> tuple[Knee | None, str]:
    bend = next((knee for name in BENDS for knee in knees if knee.detector == name and _is_found(knee)), None)
    if not request.objectives:
        if bend is not None:
            return bend, f"{bend.detector} knee"
        clean = _clean_level(request, levels)
        return (
            None,
            "throughput does not bend; highest level without an error" if clean else "no level without an error",
        )
    slo = next((knee for knee in knees if knee.detector == "slo"), None)
    if slo is None or slo.concurrency is None:
        return None, f"no slo knee, {'nobody looked' if slo is None else slo.because}"
    if all(level.meets_slo for level in levels) and bend is not None:
        return bend, f"every measured level meets the SLO; {bend.detector} knee"
    return slo, "slo knee"


def _is_found(knee: Knee) -> bool:
    return knee.concurrency is not None


def _clean_level(request: TrialRequest, levels: Sequence[LevelResult]) -> LevelResult | None:
    if request.objectives:
        return None
    return max((level for level in levels if level.succeeded == level.requests), key=_concurrency, default=None)


def _level_below(levels: Sequence[LevelResult], knee: Knee) -> LevelResult | None:
    """Return the highest level that isn't above the knee, which may lie between two levels."""
    below = [level for level in levels if knee.concurrency is not None and level.concurrency <= knee.concurrency]
    return max(below, key=_concurrency, default=None)


def _concurrency(level: LevelResult) -> int:
    return level.concurrency
