"""The highest load that meets the SLO: where the objective that is missed first reaches its bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seatrial.bench.knee.points import ascending
from seatrial.bench.metrics import is_met
from seatrial.bench.result import Knee
from seatrial.bench.statistic import reading_of
from seatrial.measure.crossing import Crossing, crossing
from seatrial.measure.distribution import Interval
from seatrial.units import whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.bench.request import Objective
    from seatrial.bench.result import LevelResult


class SloBracket(NamedTuple):
    """The highest level that meets the SLO, and the lowest above it that misses; None where there is none."""

    held: LevelResult | None
    missed: LevelResult | None


def slo_bracket(levels: Sequence[LevelResult]) -> SloBracket:
    """Return the levels between which the SLO begins to be missed.

    Levels that miss below the first one that meets don't count: less load per copy, which is all that scaling can do,
    doesn't mend them. Where no level meets the SLO, the lowest one is the missed one. Void levels don't count.
    """
    held: LevelResult | None = None
    lowest_missed: LevelResult | None = None
    for level in ascending(levels):
        if level.meets_slo:
            held = level
        elif held is not None:
            return SloBracket(held, level)
        else:
            lowest_missed = lowest_missed or level
    return SloBracket(held, None) if held is not None else SloBracket(None, lowest_missed)


def slo_knee(levels: Sequence[LevelResult], objectives: Sequence[Objective] = ()) -> Knee:
    """Find the load at which the SLO begins to be missed, between the highest level that meets it and the next miss.

    It is the lowest load at which the metric of a missed objective reaches its bound (`measure.crossing`). Where a miss
    can't be placed, as where no request succeeded, it is the highest level that meets the SLO. Where no level above
    misses, it is that level, too, and its interval has no upper end.

    Args:
        levels: The measured levels, in any order.
        objectives: The SLO; without it the knee is a measured level.
    """
    held, missed = slo_bracket(levels)
    if held is None:
        return _none(levels, missed)
    at = whole_or_tenths(held.concurrency)
    if missed is None:
        because = f"every level meets the SLO up to {at} per copy, the highest measured"
        return _knee(float(held.concurrency), Interval(low=float(held.concurrency), high=None), because)
    misses = "; ".join(missed.misses)
    found = min(_crossings(levels, objectives, held, missed), key=lambda one: one.load, default=None)
    if found is None:
        return _knee(float(held.concurrency), None, misses)
    between = f"{at} and {whole_or_tenths(missed.concurrency)} per copy"
    because = f"{misses}; interpolated between {between}: {whole_or_tenths(found.load)} per copy"
    return _knee(found.load, found.interval, because)


def _crossings(
    levels: Sequence[LevelResult], objectives: Sequence[Objective], held: LevelResult, missed: LevelResult
) -> Iterator[Crossing]:
    if missed.concurrency <= held.concurrency:  # two rates of an open loop with the same number in flight
        return
    for objective in objectives:
        known = [one for one in (reading_of(level, objective) for level in ascending(levels)) if one is not None]
        within, beyond = reading_of(held, objective), reading_of(missed, objective)
        if within is None or beyond is None or not missed.succeeded:
            continue
        if is_met(within.value, objective) and not is_met(beyond.value, objective):
            yield crossing(known, within, beyond, objective.bound)


def _none(levels: Sequence[LevelResult], missed: LevelResult | None) -> Knee:
    if missed is not None:
        because = f"no level meets the SLO; the lowest one misses it: {'; '.join(missed.misses)}"
    else:
        because = "no level is valid: the client was the limit" if levels else "no level was measured"
    return Knee(detector="slo", concurrency=None, because=because)


def _knee(load: float, interval: Interval | None, because: str) -> Knee:
    return Knee(detector="slo", concurrency=load, because=because, interval=interval)
