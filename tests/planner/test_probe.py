from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

CHEAP, DEAR = "ml.g5.2xlarge", "ml.g5.12xlarge"
WORKLOAD = {"input_tokens": 256, "output_tokens": 256, "concurrency": 16}


def predicted_ms(ask: Ask) -> float:
    """Return the simulated p95 of TPOT of one cheap copy that takes the whole load."""
    alone = make_plan(ask(serving={"instance_types": [CHEAP]}, scaling={"max_copies": 1}))
    return next(point.tpot_p95_ms for point in alone.curve if point.concurrency == WORKLOAD["concurrency"])


def asked(bound_ms: float, **more: object) -> dict[str, object]:
    serving = {"instance_types": [CHEAP, DEAR]}
    return {"serving": serving, "scaling": {"max_copies": 1}, "slo": {"tpot_ms": {"p95": bound_ms}}, **more}


def test_a_cheaper_deployment_within_the_band_is_worth_a_probe(ask: Ask) -> None:
    would_take = predicted_ms(ask)
    bound = would_take / 1.05
    plan = make_plan(ask(**asked(bound)))
    probe = plan.probe

    assert plan.instance_type.value == DEAR
    assert probe is not None
    assert (probe.instance_type, probe.copy_count, probe.concurrency_per_copy) == (CHEAP, 1, 16)
    assert (probe.field, probe.bound) == ("slo.tpot_ms.p95", bound)
    assert probe.predicted == pytest.approx(would_take, abs=0.01)
    assert probe.usd_per_hour + probe.saving_usd_per_hour == pytest.approx(plan.cost.usd_per_hour)
    assert 0.2 < probe.chance < 0.5


def test_ttft_is_in_doubt_within_a_wider_band_of_its_own(ask: Ask) -> None:
    alone = make_plan(ask(serving={"instance_types": [CHEAP]}, scaling={"max_copies": 1}))
    would_take = next(point.ttft_p95_ms for point in alone.curve if point.concurrency == WORKLOAD["concurrency"])
    plan = make_plan(ask(**asked(0, slo={"ttft_ms": {"p95": would_take / 1.25}})))

    assert plan.instance_type.value == DEAR
    assert plan.probe is not None
    assert "It is predicted to miss slo.ttft_ms.p95 by 25%, which is within the band of TTFT, ±" in plan.probe.because


def test_beyond_the_band_nothing_is_worth_a_probe(ask: Ask) -> None:
    plan = make_plan(ask(**asked(predicted_ms(ask) / 1.6)))

    assert plan.instance_type.value == DEAR
    assert plan.probe is None
    assert "probe" not in plan.model_dump(mode="json")


def test_what_meets_the_slo_needs_no_probe(ask: Ask) -> None:
    plan = make_plan(ask(**asked(predicted_ms(ask) * 1.1)))

    assert (plan.instance_type.value, plan.probe) == (CHEAP, None)


def test_where_the_price_does_not_decide_there_is_no_probe(ask: Ask) -> None:
    bound = predicted_ms(ask) / 1.05

    assert make_plan(ask(**asked(bound, objective="latency"))).probe is None


def test_an_output_rate_that_is_nearly_reached_is_worth_a_probe(ask: Ask) -> None:
    alone = make_plan(ask(serving={"instance_types": [CHEAP]}, scaling={"max_copies": 1}))
    reached = next(point.output_tok_s for point in alone.curve if point.concurrency == 16)
    plan = make_plan(ask(**asked(10_000, slo={"output_tok_s": reached * 1.05})))

    assert plan.instance_type.value == DEAR
    assert plan.probe is not None
    assert (plan.probe.field, plan.probe.instance_type) == ("slo.output_tok_s", CHEAP)
    assert plan.probe.predicted < plan.probe.bound
