from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.request import Objective
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.knee import knees_of, scaling_target
from seatrial_load.search import NextLevel, next_level, why_stop
from tests.load.conftest import lagging
from tests.load.search.conftest import Line, searched

if TYPE_CHECKING:
    from tests.load.search.conftest import MakeLevel, MakeRequest


def test_the_listed_levels_are_measured_ascending(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(search="sweep", concurrency_levels=(1, 2, 4, 16))
    found = searched(request, lambda load: Line().measure(level, load))
    assert found.loads == [1, 2, 4, 16]
    assert set(found.reasons) == {"next listed level"}
    assert found.stopped == "every level was measured"


def test_a_sweep_goes_on_where_it_was_left(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(search="sweep", concurrency_levels=(1, 2, 4, 16))
    step = next_level(request, [level(1), level(2)], left_s=1.0)
    assert step == NextLevel(concurrency=4, because="next listed level")


def test_no_success_stops(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(search="sweep", concurrency_levels=(1, 2, 4))
    assert next_level(request, [level(1), level(2, succeeded=0)], left_s=9.0) == Stop(
        reason=StopReason.NO_SUCCESS, because="no request succeeded at concurrency 2 per copy"
    )


@pytest.mark.parametrize(
    ("throughputs", "meets", "stops"),
    [
        ([10.0, 20.0, 19.0, 18.0], [True, True, False, False], True),
        ([10.0, 20.0, 19.0, 18.0], [True, True, True, False], False),
        ([10.0, 20.0, 19.0, 19.0], [True, True, False, False], False),
        ([10.0, 20.0, 19.0], [True, True, False], False),
    ],
)
def test_falling_throughput_and_a_missed_slo_twice_in_a_row_stop(
    level: MakeLevel,
    throughputs: list[float],
    meets: list[bool],
    stops: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    levels = [
        level(2**index, output_tok_s=tok_s, meets_slo=met)
        for index, (tok_s, met) in enumerate(zip(throughputs, meets, strict=True))
    ]
    because = "throughput fell and the SLO was missed twice in a row, last at concurrency 8 per copy"
    assert why_stop(levels) == (Stop(reason=StopReason.FALLING, because=because) if stops else None)


def test_a_client_that_was_the_limit_twice_in_a_row_stops(level: MakeLevel) -> None:
    void = [level(load, void=lagging("the client lagged by 80 ms")) for load in (4, 8)]
    assert why_stop([level(2), void[0]]) is None
    assert why_stop([level(2), *void]) == Stop(
        reason=StopReason.CLIENT_LIMIT,
        because="the client was the limit twice in a row, last at concurrency 8 per copy: the client lagged by 80 ms",
    )


LOOSE = Objective(metric="e2e_latency_ms", statistic="p95", bound=1e6, sense="at_most")
DOUBLING = tuple(2**power for power in range(10))


def test_a_sweep_ends_where_more_load_stops_to_pay(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(search="sweep", concurrency_levels=DOUBLING, objectives=(LOOSE,), gate_concurrency=4)
    found = searched(request, lambda load: Line(batch=24, bound_ms=1e6).measure(level, load))
    assert found.loads == [1, 2, 4, 8, 16, 32, 64]
    assert found.stopped == "more load stops paying at 58.6 per copy"


def test_a_sweep_ends_where_the_slo_is_missed_at_a_load_that_pays(adaptive: MakeRequest, level: MakeLevel) -> None:
    """1,000 ms + 10 ms for each in flight: 2,000 ms are reached at 100, at twice the unloaded latency."""
    request = adaptive(search="sweep", concurrency_levels=DOUBLING)
    found = searched(request, lambda load: Line().measure(level, load))
    assert found.loads == [1, 2, 4, 8, 16, 32, 64, 128]
    assert found.stopped == "SLO missed at 128 per copy"


def test_a_sweep_does_not_end_below_the_gate(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(search="sweep", concurrency_levels=DOUBLING, gate_concurrency=256)
    found = searched(request, lambda load: Line().measure(level, load))
    assert found.loads[-1] == 256


def test_with_the_slo_alone_only_a_miss_ends_a_sweep(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(search="sweep", concurrency_levels=DOUBLING, objectives=(LOOSE,), target_knee="slo")
    found = searched(request, lambda load: Line(batch=24, bound_ms=1e6).measure(level, load))
    assert found.loads == list(DOUBLING)


FLAT = Line(alone_ms=10, each_ms=990, bound_ms=1e6)  # 1 request per second at any load, as on a laptop


def test_a_flat_throughput_ends_a_sweep_at_the_gate(adaptive: MakeRequest, level: MakeLevel) -> None:
    """It took 106 s for 1,000 + 200 tokens and 16 in flight: 32 was measured for the gate's room below the SLO."""
    request = adaptive(search="sweep", concurrency_levels=DOUBLING, objectives=(LOOSE,), target_utilization=0.8)
    found = searched(request, lambda load: FLAT.measure(level, load))
    assert found.loads == [1, 2, 4, 8, 16]
    assert found.stopped == "more load stops paying at 16 per copy"
    target = scaling_target(request, found.levels, knees_of(request, found.levels))
    assert (target.concurrency_per_copy, target.detector) == (16.0, "gate")


def test_a_flat_throughput_ends_a_search_after_two_levels_below_the_gate(
    adaptive: MakeRequest, level: MakeLevel
) -> None:
    found = searched(adaptive(objectives=(LOOSE,)), lambda load: FLAT.measure(level, load))
    assert found.loads == [16, 1, 4]


def test_every_level_is_measured_for_who_asks_for_it(adaptive: MakeRequest, level: MakeLevel) -> None:
    request = adaptive(search="every_level", concurrency_levels=DOUBLING, objectives=(LOOSE,))
    found = searched(request, lambda load: Line(batch=24, bound_ms=1e6).measure(level, load))
    assert found.loads == list(DOUBLING)
    assert found.stopped == "every level was measured"
