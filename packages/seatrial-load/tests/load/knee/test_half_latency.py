from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_load.documents.distribution import Distribution
from seatrial_load.knee import half_latency_knee
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def latencies(level: MakeLevel, means: dict[int, float]) -> list[LevelResult]:
    return [level(load, e2e_latency_ms=flat(mean)) for load, mean in means.items()]


def flat(value: float) -> Distribution:
    return Distribution(count=8, mean=value, p50=value, p90=value, p95=value, p99=value, max=value)


def test_it_is_the_last_level_within_twice_the_lowest_latency(level: MakeLevel) -> None:
    knee = half_latency_knee(latencies(level, {1: 500.0, 2: 600.0, 4: 1000.0, 8: 1000.1, 16: 900.0}))
    assert (knee.detector, knee.concurrency) == ("half_latency", 4)
    assert knee.because == "mean latency at 8 per copy is 1000.1 ms, above twice the 500.0 ms at 1 per copy"


def test_latency_that_grows_linearly_doubles_where_power_is_highest(level: MakeLevel) -> None:
    # latency 400 + 100 C: power = throughput / latency = C / latency^2 is highest at C = 4, where latency is 800;
    # twice the lowest level's 500 ms, which isn't quite unloaded, is reached at 6
    levels = latencies(level, {load: 400.0 + 100.0 * load for load in range(1, 12)})
    power = {one.concurrency: one.concurrency / (400.0 + 100.0 * one.concurrency) ** 2 for one in levels}
    assert max(power, key=lambda load: power[load]) == 4
    assert half_latency_knee(levels).concurrency == 6


def test_latency_that_never_doubles_has_no_knee(level: MakeLevel) -> None:
    knee = half_latency_knee(latencies(level, {1: 500.0, 16: 700.0}))
    assert knee.concurrency is None
    assert knee.because == (
        "mean latency is at most twice the 500.0 ms at 1 per copy up to 16 per copy, the highest level"
    )


def test_one_level_says_nothing(level: MakeLevel) -> None:
    void = level(8, void=lagging("the client lagged"))
    knee = half_latency_knee([level(1), level(2, e2e_latency_ms=None), void])
    assert (knee.concurrency, knee.because) == (None, "1 levels with a latency; 2 are needed")
