"""What follows from the levels: the concurrency that scaling shall track, and what a million tokens cost there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.units import S_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import Knee, LevelResult

TOKENS_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ScalingTarget:
    """The concurrency per copy to track, the level that it comes from (None for the fallback), and the reason."""

    concurrency_per_copy: float
    level: LevelResult | None
    because: str


def scaling_target(request: TrialRequest, levels: Sequence[LevelResult], slo: Knee, kneedle: Knee) -> ScalingTarget:
    """Choose what scaling shall track.

    With objectives it is the `slo` knee; without, the `kneedle` knee, else the highest level without an error; times
    the target utilization. When there is none, the request's fallback, as it is.
    """
    found, reason = _knee_level(request, levels, slo, kneedle)
    if found is None:
        fallback = request.fallback_target_concurrency
        return ScalingTarget(fallback, None, f"fallback {fallback:g} per copy: {reason}")
    concurrency = found.concurrency * request.target_utilization
    because = f"{reason} {found.concurrency} per copy x target utilization {request.target_utilization:g}"
    return ScalingTarget(concurrency, found, because)


def cost_at(request: TrialRequest, level: LevelResult | None) -> float | None:
    """Cost of output, USD per million tokens: price per hour and copy / (3600 x tokens/s per copy) x 10^6.

    None without a level to take it from, without its throughput, or without a price.
    """
    if level is None or not level.output_tok_s or request.usd_per_hour_per_copy is None:
        return None
    tokens_per_hour_per_copy = S_PER_HOUR * level.output_tok_s / request.copy_count
    return request.usd_per_hour_per_copy / tokens_per_hour_per_copy * TOKENS_PER_MILLION


def _knee_level(
    request: TrialRequest, levels: Sequence[LevelResult], slo: Knee, kneedle: Knee
) -> tuple[LevelResult | None, str]:
    if request.objectives:
        return _level_at(levels, slo), "slo knee" if slo.concurrency else f"no slo knee, {slo.because}"
    if kneedle.concurrency is not None:
        return _level_at(levels, kneedle), "kneedle knee"
    clean = max((level for level in levels if level.succeeded == level.requests), key=_concurrency, default=None)
    return clean, "no kneedle knee; highest level without an error" if clean else "no level without an error"


def _level_at(levels: Sequence[LevelResult], knee: Knee) -> LevelResult | None:
    return next((level for level in levels if level.concurrency == knee.concurrency), None)


def _concurrency(level: LevelResult) -> int:
    return level.concurrency
