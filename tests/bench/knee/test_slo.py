from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee import slo_knee

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def test_slo_knee_is_the_last_level_before_the_first_miss(level: MakeLevel) -> None:
    missed = level(4, meets_slo=False, misses=("ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy",))
    knee = slo_knee([level(1), level(2), missed, level(8)])
    assert (knee.detector, knee.concurrency) == ("slo", 2)
    assert knee.because == "ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy"


def test_slo_held_everywhere(level: MakeLevel) -> None:
    knee = slo_knee([level(1), level(2)])
    assert (knee.concurrency, knee.because) == (2, "every level meets the SLO up to 2 per copy, the highest measured")


def test_slo_missed_from_the_start(level: MakeLevel) -> None:
    knee = slo_knee([level(1, meets_slo=False, misses=("too slow",)), level(2)])
    assert (knee.concurrency, knee.because) == (None, "the lowest level misses the SLO: too slow")


def test_nothing_measured() -> None:
    assert slo_knee([]).because == "no level was measured"


def test_a_level_that_the_client_limited_is_no_miss(level: MakeLevel) -> None:
    void = level(4, meets_slo=False, misses=("too slow",), void_because="the client lagged")
    assert slo_knee([level(1), void, level(2)]).concurrency == 2
    assert slo_knee([void]).because == "no level is valid: the client was the limit"


def test_levels_may_come_in_any_order(level: MakeLevel) -> None:
    missed = level(4, meets_slo=False, misses=("too slow",))
    assert slo_knee([missed, level(8), level(1), level(2)]).concurrency == 2
