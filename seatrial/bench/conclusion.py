"""What follows from the levels: the concurrency that scaling shall track, and what a million tokens cost there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.units import S_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import Detector, Knee, LevelResult

TOKENS_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ScalingTarget:
    """What scaling shall track.

    Attributes:
        concurrency_per_copy: Requests in flight per copy.
        detector: The detector whose knee it comes from; None for the fallback and for a level without a knee.
        level: The level that it comes from; None for the fallback.
        because: The reason.
    """

    concurrency_per_copy: float
    detector: Detector | None
    level: LevelResult | None
    because: str


def scaling_target(request: TrialRequest, levels: Sequence[LevelResult], slo: Knee, kneedle: Knee) -> ScalingTarget:
    """Choose what scaling shall track: a knee times the target utilization.

    With objectives it is the `slo` knee, which a higher level's miss has proven. Where every measured level meets the
    SLO, and where there are no objectives, it is the `kneedle` knee: more load would only queue. Else the highest
    level that meets the SLO, or without objectives the highest one without an error. When there is none, the request's
    fallback, as it is.
    """
    knee, reason = _chosen_knee(request, levels, slo, kneedle)
    found = _clean_level(request, levels) if knee is None else _level_at(levels, knee)
    if found is None:
        return fallback_target(request, reason)
    concurrency = found.concurrency * request.target_utilization
    because = f"{reason} {found.concurrency} per copy x target utilization {request.target_utilization:g}"
    return ScalingTarget(concurrency, None if knee is None else knee.detector, found, because)


def fallback_target(request: TrialRequest, reason: str) -> ScalingTarget:
    """Return the request's fallback, for a reason."""
    fallback = request.fallback_target_concurrency
    return ScalingTarget(fallback, None, None, f"fallback {fallback:g} per copy: {reason}")


def cost_at(request: TrialRequest, level: LevelResult | None) -> float | None:
    """Cost of output, USD per million tokens: price per hour and copy / (3600 x tokens/s per copy) x 10^6.

    None without a level to take it from, without its throughput, or without a price.
    """
    if level is None or not level.output_tok_s or request.usd_per_hour_per_copy is None:
        return None
    tokens_per_hour_per_copy = S_PER_HOUR * level.output_tok_s / request.copy_count
    return request.usd_per_hour_per_copy / tokens_per_hour_per_copy * TOKENS_PER_MILLION


def _chosen_knee(
    request: TrialRequest, levels: Sequence[LevelResult], slo: Knee, kneedle: Knee
) -> tuple[Knee | None, str]:
    if not request.objectives:
        if kneedle.concurrency is not None:
            return kneedle, "kneedle knee"
        clean = _clean_level(request, levels)
        return None, "no kneedle knee; highest level without an error" if clean else "no level without an error"
    if slo.concurrency is None:
        return None, f"no slo knee, {slo.because}"
    if all(level.meets_slo for level in levels) and kneedle.concurrency is not None:
        return kneedle, "every measured level meets the SLO; kneedle knee"
    return slo, "slo knee"


def _clean_level(request: TrialRequest, levels: Sequence[LevelResult]) -> LevelResult | None:
    if request.objectives:
        return None
    return max((level for level in levels if level.succeeded == level.requests), key=_concurrency, default=None)


def _level_at(levels: Sequence[LevelResult], knee: Knee) -> LevelResult | None:
    return next((level for level in levels if level.concurrency == knee.concurrency), None)


def _concurrency(level: LevelResult) -> int:
    return level.concurrency
