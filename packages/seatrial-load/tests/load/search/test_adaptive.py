from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seatrial_load.documents.request import Objective, Prior
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.knee import knees_of, scaling_target, slo_knee
from seatrial_load.search import NextLevel, next_level
from seatrial_load.search.adaptive import TRUSTED, doublings
from tests.load.conftest import lagging, make_level
from tests.load.search.conftest import TOKENS, Line, flat, searched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import Goal, TrialRequest
    from seatrial_load.documents.result import LevelResult
    from tests.load.search.conftest import MakeLevel, MakeRequest

LINE = Line()  # 1,000 ms + 10 ms for each request in flight: 2,000 ms are reached at 100


def is_right(found: float | None, true: float) -> bool:
    return found is not None and (abs(found - true) <= 1 or abs(found / true - 1) <= 0.1)


def test_the_gate_comes_first(adaptive: MakeRequest) -> None:
    assert next_level(adaptive(), [], left_s=600) == NextLevel(concurrency=16, because="the gate, 16 per copy")


def test_a_right_plan_leads_to_the_knee_at_once(adaptive: MakeRequest, level: MakeLevel) -> None:
    found = searched(adaptive(prior=LINE.prior(), target_knee="slo"), lambda load: LINE.measure(level, load))
    assert found.loads == [16, 94, 103]
    assert found.reasons[1] == "SLO met at 16 per copy; expected to be missed from 99"
    assert found.stopped == "SLO met at 94 and missed at 103 per copy; less than 10 % apart"


@pytest.mark.parametrize("wrong", [0.1, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("gate", [1, 16, 64, 256])
def test_a_wrong_plan_costs_some_levels_but_not_the_knee(
    adaptive: MakeRequest, level: MakeLevel, wrong: float, gate: int
) -> None:
    request = adaptive(prior=LINE.prior(wrong), gate_concurrency=gate)
    found = searched(request, lambda load: LINE.measure(level, load))
    assert is_right(found.held, 100)
    assert len(found.loads) <= 7


def test_without_a_plan_it_doubles_and_halves(adaptive: MakeRequest, level: MakeLevel) -> None:
    found = searched(adaptive(), lambda load: LINE.measure(level, load))
    assert found.loads[:4] == [16, 1, 4, 32]
    assert is_right(found.held, 100)


@settings(max_examples=150, deadline=None)
@given(
    alone_ms=st.floats(100, 1_900),
    each_ms=st.floats(0.5, 400),
    batch=st.integers(1, 600),
    gate=st.integers(1, 512),
    wrong=st.sampled_from([None, 0.1, 0.3, 1.0, 3.0, 10.0]),
    goal=st.sampled_from(["knee", "max_concurrency", "max_goodput"]),
    noise=st.sampled_from([0.0, 0.05, 0.3]),
    seed=st.integers(0, 1_000),
)
@example(alone_ms=1805, each_ms=0.5, batch=226, gate=3, wrong=0.1, goal="max_concurrency", noise=0.0, seed=0)
@example(alone_ms=1624, each_ms=25, batch=17, gate=11, wrong=3.0, goal="max_concurrency", noise=0.05, seed=3)
@example(alone_ms=100, each_ms=20, batch=3, gate=3, wrong=None, goal="knee", noise=0.3, seed=461)
def test_every_search_ends_without_measuring_a_level_twice(
    adaptive: MakeRequest,
    alone_ms: float,
    each_ms: float,
    batch: int,
    gate: int,
    wrong: float | None,
    goal: Goal,
    noise: float,
    seed: int,
) -> None:
    line, chance = Line(alone_ms, each_ms, batch), random.Random(seed)  # noqa: S311 (noise, no secret)
    prior = Prior() if wrong is None else replace(line, each_ms=each_ms * wrong).prior()
    request = adaptive(prior=prior, gate_concurrency=gate, goal=goal)
    found = searched(request, lambda load: line.measure(make_level, load, slower=chance.lognormvariate(0, noise)))
    assert found.loads[0] == gate
    assert len(set(found.loads)) == len(found.loads)
    assert all(1 <= load <= 512 for load in found.loads)
    assert all(found.reasons)
    if goal == "max_concurrency" and not noise:
        knee = min(512, line.knee)  # the search ends when both sides of it are within a factor of 1.2
        assert knee / TRUSTED - 1 <= (found.held or 0) <= knee


def test_an_slo_missed_at_the_lowest_level(adaptive: MakeRequest, level: MakeLevel) -> None:
    found = searched(adaptive(), lambda load: Line(alone_ms=2_500).measure(level, load))
    assert found.loads[-1] == 1
    assert found.stopped == "SLO missed at 1 per copy, the lowest level"


def test_an_slo_met_at_the_highest_level(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(concurrency_levels=(1, 64), goal="max_concurrency")
    found = searched(request, lambda load: LINE.measure(level, load))
    assert found.loads == [16, 32, 64]
    assert found.stopped == "SLO met at 64 per copy, the highest level"


def test_a_throughput_without_a_bend_is_followed_to_the_highest_level(adaptive: MakeRequest, level: MakeLevel) -> None:
    straight = Line(each_ms=0)
    request = adaptive(concurrency_levels=(1, 64), objectives=())
    found = searched(request, lambda load: straight.measure(level, load))
    assert found.loads == [16, 1, 4, 32, 64, 8]
    assert found.stopped == "more load stops paying at 64 per copy"


def knee_of(request: TrialRequest, levels: Sequence[LevelResult]) -> float:
    """The knee that scaling takes."""
    knee = scaling_target(request, levels, knees_of(request, levels)).knee
    assert knee is not None
    assert knee.concurrency is not None
    return knee.concurrency


def test_an_slo_that_holds_where_throughput_is_full_ends_the_search_there(
    adaptive: MakeRequest, level: MakeLevel
) -> None:
    """It climbed to the highest level, where the target was the load that the SLO allows, and most of it queued."""
    bound = Objective(metric="e2e_latency_ms", statistic="p95", bound=FULL.bound_ms, sense="at_most")
    request = adaptive(objectives=(bound,), gate_concurrency=8)
    found = searched(request, lambda load: FULL.measure(level, load))
    assert found.loads == [8, 1, 2, 16, 32, 64, 4]
    assert found.reasons[1:4] == [
        "SLO met at 8 per copy; the unloaded latency",
        "throughput may be higher below the gate",
        "throughput may grow above 8 per copy",
    ]
    assert found.stopped == "more load stops paying at 58.6 per copy"
    assert knee_of(request, found.levels) == pytest.approx(58.6, abs=0.1)


def test_with_the_slo_alone_it_is_followed_to_the_highest_level(adaptive: MakeRequest, level: MakeLevel) -> None:
    bound = Objective(metric="e2e_latency_ms", statistic="p95", bound=FULL.bound_ms, sense="at_most")
    request = adaptive(concurrency_levels=(1, 64), objectives=(bound,), target_knee="slo")
    found = searched(request, lambda load: FULL.measure(level, load))
    assert found.loads == [16, 32, 64]
    assert found.stopped == "SLO met at 64 per copy, the highest level"


FULL = Line(batch=24, bound_ms=60_000)  # 24 requests are batched; more load only queues, and the SLO allows it


def test_a_batch_limit_of_the_plan_bounds_the_load_that_pays(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(objectives=(), prior=FULL.prior(3.0), gate_concurrency=4)
    found = searched(request, lambda load: FULL.measure(level, load))
    assert found.loads == [4, 1, 32]
    assert found.reasons[2] == "throughput is expected to saturate at 28 per copy"
    assert knee_of(request, found.levels) == 24.0


def test_an_slo_that_is_missed_at_the_gate_needs_no_unloaded_latency(adaptive: MakeRequest, level: MakeLevel) -> None:
    found = searched(adaptive(gate_concurrency=128), lambda load: LINE.measure(level, load))
    assert 1 not in found.loads
    assert found.stopped.startswith("SLO met at ")


def falling(level: MakeLevel, load: int) -> LevelResult:
    """The local engine of the first deployment on a laptop: throughput fell from 1,089 tok/s at 2 to 253 at 32."""
    seen = {1: 640.0, 2: 1_089.0, 4: 860.0, 8: 560.0, 16: 370.0}
    return at_speed(level, load, seen.get(load) or (253.0 if load >= 32 else 1_089.0 * (2 / load) ** 0.5))


def at_speed(level: MakeLevel, load: int, speed: float) -> LevelResult:
    """A level of so many tokens per second."""
    latency_ms = load * TOKENS / speed * 1_000
    return level(load, e2e_latency_ms=flat(latency_ms), output_tok_s=speed, duration_s=4 * latency_ms / 1_000)


@pytest.mark.parametrize("search", ["sweep", "adaptive"])
@pytest.mark.parametrize("gate", [1, 2, 4, 8])
def test_a_throughput_that_falls_ends_the_trial_at_the_load_that_pays(
    adaptive: MakeRequest, level: MakeLevel, search: str, gate: int
) -> None:
    """The trial climbed to 256 in flight, 624 s, and set the target to 102.4, a quarter of the highest throughput."""
    loose = Objective(metric="e2e_latency_ms", statistic="p95", bound=1e6, sense="at_most")
    levels = tuple(2**power for power in range(9))
    request = adaptive(gate_concurrency=gate, search=search, concurrency_levels=levels, objectives=(loose,))
    found = searched(request, lambda load: falling(level, load))
    assert max(found.loads) <= 8
    assert 2 <= knee_of(request, found.levels) <= 4


def test_a_peak_of_throughput_between_two_loads_with_as_much_is_found(adaptive: MakeRequest, level: MakeLevel) -> None:
    """With 370 tok/s at 8 and 347 at 64 the target was 64, where a fifth of the 410 at 16 is lost."""
    seen = {1: 58.0, 2: 121.0, 4: 224.0, 8: 370.0, 16: 410.0, 32: 394.0, 64: 347.0}
    request = adaptive(gate_concurrency=64, objectives=())
    found = searched(request, lambda load: at_speed(level, load, seen.get(load, 370.0)))
    assert 16 in found.loads or 32 in found.loads
    assert knee_of(request, found.levels) < max(found.loads[1:])  # which gave 370, 90 % of the highest


@pytest.mark.parametrize("gate", [1, 4, 16, 64])
@pytest.mark.parametrize("batch", [12, 24, 50, 100])
def test_the_knee_is_the_one_that_a_full_sweep_shows(
    adaptive: MakeRequest, level: MakeLevel, gate: int, batch: int
) -> None:
    full, request = replace(FULL, batch=batch), adaptive(objectives=(), gate_concurrency=gate)
    sweep = [full.measure(level, 2**power) for power in range(10)]
    found = searched(request, lambda load: full.measure(level, load))
    assert is_right(knee_of(request, found.levels), knee_of(request, sweep))


def test_levels_of_the_doubling_sweep_end_at_the_top() -> None:
    assert doublings(1, 8) == [1, 2, 4, 8]
    assert doublings(3, 20) == [3, 6, 12, 20]
    assert doublings(5, 5) == [5]


def known(request: TrialRequest, levels: Sequence[LevelResult]) -> str:
    stop = next_level(request, levels, left_s=600)
    assert isinstance(stop, Stop)
    assert stop.reason == StopReason.GOAL_KNOWN
    return stop.because


def test_a_bracket_that_is_closed_by_expectation_says_so(adaptive: MakeRequest, level: MakeLevel) -> None:
    # 94 and 112 differ by more than 10 %; the power law between them crosses 2,000 ms at 101 to 102
    levels = [LINE.measure(level, load) for load in (16, 94, 112)]
    assert known(adaptive(gate_concurrency=94), levels) == (
        "SLO met at 94 and missed at 112 per copy; expected to be missed from 102"
    )


def test_ends_without_a_load_between_them_say_so(adaptive: MakeRequest, level: MakeLevel) -> None:
    levels = [Line(alone_ms=1_955).measure(level, load) for load in (2, 4, 5)]  # 2,005 ms at 5
    assert known(adaptive(gate_concurrency=4), levels) == ("SLO met at 4 and missed at 5 per copy; adjacent levels")


def test_a_narrow_hold_over_a_wide_stretch_is_looked_into(adaptive: MakeRequest, level: MakeLevel) -> None:
    # the SLO is missed from 5 to 8 in flight, met again up to 30 and then missed for good
    flat = Line(alone_ms=1_900, each_ms=1)
    slower = {load: 1.2 if 5 <= load <= 8 else 1.0 for load in range(1, 31)}
    request = adaptive(gate_concurrency=4, goal="max_concurrency", prior=flat.prior())
    found = searched(request, lambda load: flat.measure(level, load, slower=slower.get(load, 1.1)))
    assert "the SLO margin is small from 4 to 10 per copy; a level between" in found.reasons
    assert slo_knee(found.levels).concurrency == 4


def test_the_highest_concurrency_is_sought_through_saturation(adaptive: MakeRequest, level: MakeLevel) -> None:
    full = Line(alone_ms=100, each_ms=5, batch=24)
    found = searched(adaptive(goal="max_concurrency"), lambda load: full.measure(level, load))
    assert full.knee == 218
    assert is_right(found.held, full.knee)


def test_no_success_at_the_gate_tries_less_and_then_stops(adaptive: MakeRequest, level: MakeLevel) -> None:
    dead = {"succeeded": 0, "meets_slo": False, "misses": ("no",), "e2e_latency_ms": None, "output_tok_s": None}
    found = searched(adaptive(), lambda load: level(load, ttft_ms=None, requests_per_s=None, **dead))
    assert found.loads == [16, 8]
    assert found.stopped == "no request succeeded at concurrency 8 and 16 per copy"


def test_a_level_that_the_client_limited_lowers_the_range(adaptive: MakeRequest, level: MakeLevel) -> None:
    def measure(load: int) -> object:
        found = LINE.measure(level, load)
        return replace(found, void=lagging("the client lagged by 80 ms")) if load > 70 else found

    request = adaptive(prior=LINE.prior(), target_knee="slo")
    found = searched(request, measure)  # type: ignore[arg-type]  # a level it is
    assert found.loads == [16, 94, 75]
    assert found.stopped == "the client was the limit at concurrency 75 and 94 per copy: the client lagged by 80 ms"


def test_a_level_that_does_not_fit_into_the_time_left_is_replaced(adaptive: MakeRequest, level: MakeLevel) -> None:
    request, gate = adaptive(prior=LINE.prior(), target_knee="slo"), LINE.measure(level, 16)
    # a level of 94 takes 4 x 1.94 s = 7.8 s; 7 s are enough for 4 x 1.75 s: about 75 requests in flight
    step = next_level(request, [gate], left_s=7.0)
    assert isinstance(step, NextLevel)
    assert step.concurrency == pytest.approx(75, abs=2)
    assert step.because == "94 per copy needs about 8 s, but 7 s are left; this level fits"
    assert next_level(request, [gate], left_s=4.0) == Stop(
        reason=StopReason.BUDGET, because="94 per copy needs about 8 s, but 4 s are left"
    )


def test_no_time_is_left(adaptive: MakeRequest) -> None:
    assert next_level(adaptive(), [], left_s=0.0) == Stop(reason=StopReason.BUDGET, because="the budget of 600 s ended")


def test_a_miss_below_a_level_that_holds_counts(adaptive: MakeRequest, level: MakeLevel) -> None:
    # the detector wants every level below the knee to hold, so the search closes in on the lowest miss
    levels = [LINE.measure(level, load) for load in (16, 32, 64)]
    levels[1] = replace(levels[1], meets_slo=False, misses=("a bad moment",))
    step = next_level(adaptive(), levels, left_s=600)
    assert isinstance(step, NextLevel)
    assert 16 < step.concurrency < 32
    assert step.because.startswith("SLO met at 16 and missed at 32 per copy")


def test_the_most_goodput_is_found_where_the_slo_begins_to_be_missed(adaptive: MakeRequest, level: MakeLevel) -> None:
    found = searched(adaptive(goal="max_goodput", prior=LINE.prior(2.0)), lambda load: LINE.measure(level, load))
    best = max(found.levels, key=lambda one: one.goodput_requests_per_s or 0.0)
    assert is_right(best.concurrency, 100)
    assert found.stopped.startswith(f"highest goodput so far: {best.goodput_requests_per_s:.2f} requests/s at")


def test_no_goodput_anywhere_ends_at_the_lowest_level(adaptive: MakeRequest, level: MakeLevel) -> None:
    slow = Line(alone_ms=2_500)
    found = searched(adaptive(goal="max_goodput", gate_concurrency=2), lambda load: slow.measure(level, load))
    assert found.loads == [2, 1]
    assert found.stopped == "highest goodput so far: 0.00 requests/s at 1 per copy, the lowest level"


def test_neighbours_with_as_much_goodput_are_named(adaptive: MakeRequest, level: MakeLevel) -> None:
    levels = [level(load, goodput_requests_per_s=rate) for load, rate in ((8, 4.95), (16, 5.0), (32, 4.95))]
    assert known(adaptive(goal="max_goodput"), levels) == (
        "highest goodput so far: 5.00 requests/s at 16 per copy: equal within 2 % to 8 and 32"
    )
