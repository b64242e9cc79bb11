from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.trial import request_template, trial_request
from seatrial.engines.render import render_plan
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import BenchError
from seatrial_load.documents.request import PredictedLevel, TrialRequest, TrialTarget
from seatrial_load.documents.request_checks import read_trial_request

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan

ROOT = Path(__file__).parents[2]
NOWHERE = TrialTarget(endpoint_name="", inference_component=None, region="us-east-1")


@pytest.fixture(scope="module")
def planned() -> tuple[Plan, TrialRequest]:
    loaded = load_spec(ROOT / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan = make_plan(loaded)
    return plan, trial_request(loaded, plan, render_plan(loaded, plan), NOWHERE, None)


def test_the_prior_is_the_plans_curve_of_one_copy(planned: tuple[Plan, TrialRequest]) -> None:
    plan, request = planned
    assert [level.concurrency for level in request.prior.levels] == list(plan.concurrency_levels.value)
    first = plan.curve[0]
    assert request.prior.levels[0] == PredictedLevel(
        concurrency=1,
        output_tok_s=first.output_tok_s,
        ttft_p95_ms=first.ttft_p95_ms,
        e2e_mean_ms=first.e2e_latency_ms,
    )


def test_the_batch_limit_is_the_lesser_of_engine_and_kv_room(planned: tuple[Plan, TrialRequest]) -> None:
    plan, request = planned
    assert request.prior.batch_limit == min(plan.max_num_seqs.value, plan.memory.kv_limited_batch)


def test_what_the_deployed_trial_would_refuse_is_refused_before() -> None:
    loaded = load_spec(ROOT / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan = make_plan(loaded)
    trial = loaded.endpoint.trial.model_copy(update={"budget_usd": 5.0})
    asked = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"trial": trial}))
    unpriced = plan.model_copy(update={"cost": plan.cost.model_copy(update={"usd_per_hour_per_copy": None})})
    with pytest.raises(BenchError) as caught:
        request_template(asked, unpriced, render_plan(loaded, plan))
    assert str(caught.value) == ("trial request: load.budget_usd: SEA501: a budget of 5 USD needs a price per hour")


def test_a_request_with_a_prior_is_read_as_it_was_written(planned: tuple[Plan, TrialRequest]) -> None:
    request = planned[1]
    assert read_trial_request(request.to_json()) == request
