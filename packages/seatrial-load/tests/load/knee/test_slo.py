from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.request import Objective
from seatrial_load.knee import slo_knee
from tests.load.conftest import flat, lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def test_slo_knee_is_the_last_level_before_the_first_miss(level: MakeLevel) -> None:
    missed = level(4, meets_slo=False, misses=("ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy",))
    knee = slo_knee([level(1), level(2), missed, level(8)])
    assert (knee.detector, knee.concurrency) == ("slo", 2)
    assert knee.because == "ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy"


def test_slo_held_everywhere(level: MakeLevel) -> None:
    knee = slo_knee([level(1), level(2)])
    assert (knee.concurrency, knee.because) == (2, "every level meets the SLO, up to 2 per copy")


def test_slo_missed_everywhere(level: MakeLevel) -> None:
    knee = slo_knee([level(load, meets_slo=False, misses=(f"too slow at {load}",)) for load in (1, 2)])
    assert (knee.concurrency, knee.because) == (
        None,
        "no level meets the SLO; the lowest: too slow at 1",
    )


def test_a_miss_below_every_level_that_holds_is_not_mended_by_less_load(level: MakeLevel) -> None:
    """It was no knee: the target was the plan's and the attributes `unknown`, though the trial was passed."""
    knee = slo_knee([level(1, meets_slo=False, misses=("a cold start",)), level(2), level(4)])
    assert knee.concurrency == 4


TTFT = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")
TPOT = Objective(metric="tpot_ms", statistic="p95", bound=25.0, sense="at_most")
ERRORS = Objective(metric="error_rate", statistic="value", bound=0.01, sense="at_most")


def missed(level: MakeLevel, load: int, **changes: object) -> LevelResult:
    return level(load, meets_slo=False, misses=("missed",), **changes)


def test_between_two_levels_the_knee_is_where_the_metric_reaches_its_bound(level: MakeLevel) -> None:
    # 125 ms x (load / 2)^2: 500 ms at a load of 4
    knee = slo_knee([level(2, ttft_ms=125.0), missed(level, 8, ttft_ms=2_000.0)], [TTFT])
    assert knee.concurrency == pytest.approx(4.0)
    assert knee.because == "missed; interpolated between 2 and 8 per copy: 4 per copy"


def test_of_two_missed_objectives_the_one_that_is_missed_first_limits(level: MakeLevel) -> None:
    levels = [level(2, ttft_ms=125.0), missed(level, 8, ttft_ms=2_000.0, tpot_ms=flat(200.0))]
    assert (slo_knee(levels, [TTFT, TPOT]).concurrency or 0) < (slo_knee(levels, [TTFT]).concurrency or 0)


def test_an_error_rate_that_begins_at_0_is_interpolated_in_proportion(level: MakeLevel) -> None:
    knee = slo_knee([level(2, requests=100, succeeded=100), missed(level, 6, requests=100, succeeded=96)], [ERRORS])
    assert knee.concurrency == pytest.approx(3.0)  # 1 % of the 4 % that 4 more requests in flight bring


def test_where_no_request_succeeded_the_knee_is_the_level_below(level: MakeLevel) -> None:
    dead = missed(level, 8, succeeded=0, ttft_ms=None, tpot_ms=None, e2e_latency_ms=None, output_tok_s=None)
    assert slo_knee([level(2), dead], [TTFT]).concurrency == 2


def test_the_interval_of_the_knee_comes_from_that_of_the_metric(level: MakeLevel) -> None:
    def wide(value: float) -> Distribution:
        return replace(flat(value), intervals={"p95": Interval(low=value / 1.21, high=value * 1.21)})

    alone: dict[str, object] = {"e2e_latency_ms": None}  # so that nothing tells what waits
    held, missed_one = (level(2, **alone), missed(level, 8, **alone))
    held, missed_one = (replace(held, ttft_ms=wide(125.0)), replace(missed_one, ttft_ms=wide(2_000.0)))
    assert slo_knee([held, missed_one], [TTFT]).interval == Interval(
        low=2.0, high=8.0
    )  # two show no curve between them
    between = replace(level(3, **alone), ttft_ms=wide(281.25))
    knee = slo_knee([held, between, missed_one], [TTFT])
    assert knee.concurrency == pytest.approx(4)
    assert knee.interval is not None
    off = 1.21 ** (1 / 2)  # of a slope of 2, and of one level
    assert knee.interval.low == pytest.approx(4 / off, rel=0.07)
    assert knee.interval.high == pytest.approx(4 * off, rel=0.07)


def test_where_no_level_misses_the_interval_has_no_upper_end(level: MakeLevel) -> None:
    assert slo_knee([level(1), level(2)], [TTFT]).interval == Interval(low=2.0, high=None)


def test_nothing_measured() -> None:
    assert slo_knee([]).because == "no level was measured"


def test_a_level_that_the_client_limited_is_no_miss(level: MakeLevel) -> None:
    void = level(
        4,
        meets_slo=False,
        misses=("too slow",),
        void=lagging("the client lagged"),
    )
    assert slo_knee([level(1), void, level(2)]).concurrency == 2
    assert slo_knee([void]).because == "no level is valid: the client was the limit"


def test_levels_may_come_in_any_order(level: MakeLevel) -> None:
    missed = level(4, meets_slo=False, misses=("too slow",))
    assert slo_knee([missed, level(8), level(1), level(2)]).concurrency == 2


@pytest.mark.parametrize(
    ("within", "beyond", "objective"),
    [
        ({"ttft_ms": 125.0}, {"ttft_ms": None}, TTFT),
        ({"ttft_ms": None}, {"ttft_ms": 2_000.0}, TTFT),
        ({}, {"succeeded": 0}, ERRORS),
    ],
)
def test_a_miss_that_cannot_be_placed_leaves_the_level_that_holds(
    level: MakeLevel, within: dict[str, object], beyond: dict[str, object], objective: Objective
) -> None:
    knee = slo_knee([level(2, **within), missed(level, 8, **beyond)], [objective])
    assert (knee.concurrency, knee.interval, knee.because) == (2, None, "missed")
