"""A workload that is a rate: how many copies it needs, and what the plan says of its latencies."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.planner.comparisons import explain
from seatrial.planner.planner import make_plan
from seatrial.planner.predict.simulation import TRIAL, saturation_per_s
from seatrial.planner.resolve import search_for
from seatrial.planner.search.capacity import Levels
from seatrial.planner.search.demand import LatencyBound
from seatrial.planner.search.sizing import copies_at_rate, keeps, too_fast
from seatrial.specs.scaling import ScalingSpec
from seatrial_base.catalog.engines import find_engine
from seatrial_base.errors import PlanError
from tests.planner.predict.conftest import placed

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from tests.planner.conftest import Ask

LEVELS = Levels(
    replace(
        placed("meta-llama/Llama-3.1-8B-Instruct", engine=find_engine("vllm", "0.15.1")),
        max_num_seqs=64,
    ),
    TRIAL,
    60.0,
)
TTFT = LatencyBound(("slo", "ttft_ms", "p95"), "ttft_ms", "p95", 400)
SERVING = {"engine": "vllm", "instance_types": ["ml.g5.2xlarge"]}


def workload(rate: float, **fields: object) -> dict[str, object]:
    return {"input_tokens": 512, "output_tokens": 128, "requests_per_second": rate, **fields}


def planned(ask: Ask, rate: float, **fields: object) -> Plan:
    return make_plan(ask(workload=workload(rate, **fields), serving=SERVING, scaling={"max_copies": 1}, slo={}))


@pytest.mark.parametrize("shares", [0.3, 1.4, 3.1])
def test_the_fewest_copies_keep_the_objectives_and_one_less_does_not(shares: float) -> None:
    rate = shares * saturation_per_s(LEVELS.copy)
    copies = copies_at_rate(LEVELS, [TTFT], rate, ScalingSpec(max_copies=16), 1)

    assert keeps(LEVELS, [TTFT], rate / copies)
    assert copies == 1 or not keeps(LEVELS, [TTFT], rate / (copies - 1))


def test_a_rate_that_the_most_copies_do_not_take_is_one_more_copy_and_a_sentence() -> None:
    rate = 2 * saturation_per_s(LEVELS.copy)

    assert copies_at_rate(LEVELS, [TTFT], rate, ScalingSpec(max_copies=1), 1) > 1
    assert too_fast(LEVELS, [TTFT], rate, 1).startswith("One copy answers")
    tight = replace(TTFT, bound_ms=100)
    assert "ms against slo.ttft_ms.p95 of 100 ms" in too_fast(LEVELS, [tight], rate / 10, 1)


@pytest.mark.parametrize("arrivals", ["closed", "poisson"])
def test_the_time_to_first_token_grows_with_the_rate(ask: Ask, arrivals: str) -> None:
    slow_plan, fast_plan = (planned(ask, rate, arrivals=arrivals) for rate in (1.0, 2.0))
    points = [*slow_plan.rates, *fast_plan.rates[1:]]

    assert [point.requests_per_second for point in points] == [0.5, 0.75, 1.0, 1.5, 2.0]
    assert all(slow.ttft_p95_ms < fast.ttft_p95_ms for slow, fast in pairwise(points))
    assert all(0 < point.utilization < 1 and point.queue_p95_ms >= 0 for point in points)


def test_a_closed_trial_of_a_rate_is_said_to_measure_no_queue(ask: Ask) -> None:
    assert any("measures no queue" in warning for warning in planned(ask, 1.0).warnings)
    assert not any("queue" in warning for warning in planned(ask, 1.0, arrivals="poisson").warnings)


def test_bursts_need_a_larger_batch_than_the_mean(ask: Ask) -> None:
    plan = planned(ask, 2.0, arrivals="poisson")

    assert plan.max_num_seqs.value > plan.gate_concurrency_per_copy.value
    assert "requests per second; peak is 2 requests per second" in plan.copy_count.because


def test_an_slo_that_only_the_queue_breaks_buys_another_copy(ask: Ask) -> None:
    """At random, 2 requests/s on one copy queue longer than the bound; evenly spaced they don't."""
    slo = {"ttft_ms": {"p95": 450}}

    def copies(arrivals: str) -> int:
        even = {"objective": {"headroom": 0.51}, "scaling": {"max_copies": 4}}  # so that the SLO alone decides
        asked = ask(workload=workload(2.0, arrivals=arrivals), serving=SERVING, slo=slo, **even)
        return make_plan(asked).copy_count.value

    assert copies("constant") < copies("poisson")


EVEN: dict[str, object] = {"objective": {"headroom": 0.51}}


def carried(ask: Ask, rate: float, **fields: object) -> tuple[Plan, float]:
    plan = make_plan(ask(**{"workload": workload(rate), "serving": SERVING, "slo": {}, **fields}))
    assert plan.carried_chance is not None
    return plan, plan.carried_chance


@pytest.fixture
def saturation(ask: Ask) -> float:
    return carried(ask, 1.0)[0].saturation_requests_per_second or 0.0


@pytest.mark.parametrize("arrivals", ["closed", "poisson"])
def test_a_rate_near_saturation_takes_another_copy(ask: Ask, saturation: float, arrivals: str) -> None:
    near = {"workload": workload(0.98 * saturation, arrivals=arrivals), "scaling": {"max_copies": 4}}
    (one, even), (two, chance) = (carried(ask, 1.0, **near, **more) for more in (EVEN, {}))

    assert (one.copy_count.value, two.copy_count.value) == (1, 2)
    assert (0.5 < even < 0.6, chance > 0.95) == (True, True)
    assert two.saturation_requests_per_second == pytest.approx(2 * saturation, rel=0.01)
    assert "SEA154" not in " ".join((*one.warnings, *two.warnings))


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rate=st.floats(0.5, 12), headrooms=st.lists(st.floats(0.51, 0.999), min_size=3, max_size=3).map(sorted))
def test_more_headroom_is_never_fewer_copies_nor_a_lower_chance(ask: Ask, rate: float, headrooms: list[float]) -> None:
    plans = [carried(ask, rate, scaling={"max_copies": 6}, objective={"headroom": each}) for each in headrooms]
    copies, chances = [plan.copy_count.value for plan, _ in plans], [chance for _, chance in plans]

    assert (copies, chances) == (sorted(copies), sorted(chances))
    for count, chance, headroom in zip(copies, chances, headrooms, strict=True):
        assert count == 6 or chance >= headroom - 0.001


@pytest.mark.parametrize(
    ("limit", "mended"),
    [
        ({"scaling": {"max_copies": 2}}, "allow more than 2 copies (max_copies)"),
        ({"scaling": {"max_copies": 9}, "budget": {"usd_per_hour": 3.1}}, "raise the budget"),
    ],
)
def test_where_nothing_has_the_headroom_the_likeliest_is_taken_and_said(
    ask: Ask, saturation: float, limit: dict[str, object], mended: str
) -> None:
    plan, chance = carried(ask, 1.75 * saturation, **{**limit, "slo": {"output_tok_s": 500}})
    lacks = f"2 copies carry the rate with a chance of {chance:.1%}, below objective.headroom 0.95"

    assert (plan.copy_count.value, 0.5 < chance < 0.95, plan.chance) == (2, True, chance)
    assert [warning for warning in plan.warnings if "SEA154" in warning] == [
        f"SEA154: {lacks}: {mended} or faster instance types, or lower objective.headroom."
    ]
    assert "Likeliest to carry the rate" in plan.instance_type.because


def test_what_lacks_headroom_loses_at_any_price_and_is_told_so(ask: Ask, saturation: float) -> None:
    serving = {**SERVING, "instance_types": ["ml.g5.2xlarge", "ml.g7e.2xlarge"]}
    asked: dict[str, object] = {"workload": workload(0.92 * saturation), "serving": serving, "slo": {}}
    plan, even = make_plan(ask(**asked)), make_plan(ask(**asked, **EVEN))
    (because,) = (one.because for one in plan.rejected if one.instance_type == "ml.g5.2xlarge")

    assert because.startswith("1 copy carries the rate with a chance of ")
    assert [(each.stage, each.because) for each in explain(ask(**asked), "ml.g5.2xlarge")] == [("copies", because)]
    assert (plan.instance_type.value, even.instance_type.value) == ("ml.g7e.2xlarge", "ml.g5.2xlarge")


def test_no_batch_limit_takes_the_headroom_away(ask: Ask) -> None:
    asked = {"model": {"hub_id": "meta-llama/Llama-3.1-8B-Instruct"}, "serving": {"instance_types": ["ml.g7e.2xlarge"]}}
    free, highest = carried(ask, 20, **asked, **EVEN)
    tight = {"slo": {"tpot_ms": {"p95": 1.4 * free.rates[-1].tpot_p95_ms}}, "objective": {"headroom": highest - 0.02}}
    plan, chance = carried(ask, 20, **asked, **tight)

    assert chance >= highest - 0.021
    assert "headroom" in plan.max_num_seqs.because


def test_the_search_has_the_band_of_the_plan(ask: Ask) -> None:
    """It had that of no engine version, which is another one where releases were measured."""
    serving = {"instance_types": ["ml.g7e.2xlarge"]}
    predicted = {point.concurrency: point.tpot_p95_ms for point in make_plan(ask(serving=serving)).curve}
    asked = ask(serving=serving, slo={"tpot_ms": {"p95": 1.3 * predicted[16]}})

    assert search_for(asked)[1].ranked[0].chance == pytest.approx(make_plan(asked).chance, abs=1e-3)


def test_a_rate_above_saturation_names_max_copies(ask: Ask) -> None:
    asked = ask(workload=workload(40.0, arrivals="poisson"), serving=SERVING, scaling={"max_copies": 1}, slo={})
    with pytest.raises(PlanError, match="max_copies"):
        make_plan(asked)
