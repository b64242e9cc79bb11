"""A workload that is a rate: how many copies it needs, and what the plan says of its latencies."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial.planner.predict.simulation import TRIAL, saturation_per_s
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


def test_a_rate_above_saturation_names_max_copies(ask: Ask) -> None:
    asked = ask(workload=workload(40.0, arrivals="poisson"), serving=SERVING, scaling={"max_copies": 1}, slo={})
    with pytest.raises(PlanError, match="max_copies"):
        make_plan(asked)
