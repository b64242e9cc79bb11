from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial.planner.resolve import resolve, search_for
from seatrial.planner.search.best_first import chance_step, front, ranking_order
from seatrial.planner.search.candidate import Candidate, FeasibleCandidate, band_for
from seatrial.planner.search.evaluate import chance_of, estimate, evaluate, misses_alone
from seatrial.planner.search.fitting import candidates
from tests.planner.conftest import reads

if TYPE_CHECKING:
    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.best_first import Key
    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask

VARIED_TYPES = [
    "ml.g4dn.12xlarge",
    "ml.g5.2xlarge",
    "ml.g5.12xlarge",
    "ml.g6.2xlarge",
    "ml.g6.12xlarge",
    "ml.g6e.2xlarge",
    "ml.g6e.12xlarge",
    "ml.p4d.24xlarge",
]
TIGHT = {"ttft_ms": {"p95": 700}, "tpot_ms": {"p90": 35}}


def every_feasible(loaded: LoadedSpec, resolved: Resolved) -> list[FeasibleCandidate]:
    """Simulate every deployment, best first: what the search must agree with."""
    demand = resolved.demand
    found = [each for instance in resolved.allowed for each in candidates(demand, instance)]
    fitting = [each for each in found if isinstance(each, Candidate) and misses_alone(demand, each) is None]
    evaluated = [evaluate(demand, estimate(demand, each)) for each in fitting]
    goal = loaded.endpoint.objective.goal

    def order(feasible: FeasibleCandidate) -> Key:
        band = band_for(demand, feasible.candidate)
        chance = chance_of(loaded.endpoint, feasible.candidate, feasible.load, band)
        return ranking_order(feasible.candidate, feasible.score, goal, chance)

    return sorted((each for each in evaluated if isinstance(each, FeasibleCandidate)), key=order)


@pytest.mark.parametrize("objective", ["cost", "cost_per_token", "latency", "throughput"])
@pytest.mark.parametrize("slo", [{}, TIGHT], ids=["loose", "tight"])
def test_the_best_is_the_best_of_all(objective: str, slo: object, ask: Ask) -> None:
    loaded = ask(serving={"instance_types": VARIED_TYPES}, objective=objective, slo=slo, scaling={"max_copies": 4})
    resolved, found = search_for(loaded)
    expected = every_feasible(loaded, resolved)

    assert str(found.ranked[0].candidate) == str(expected[0].candidate)
    assert found.ranked[0].score == expected[0].score


def test_of_two_degrees_at_one_price_the_likelier_to_meet_the_slo_is_chosen(ask: Ask) -> None:
    plan = make_plan(
        ask(
            model={"hub_id": "tiiuae/falcon-40b-instruct"},
            workload={"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
            slo={"ttft_ms": {"p95": 3_000}, "tpot_ms": {"p95": 150}},
            serving={"instance_types": ["ml.g6e.12xlarge"]},
            trial={"start": "together"},
        )
    )
    four = next(rejected for rejected in plan.rejected if rejected.tensor_parallel_degree == 4)

    assert plan.tensor_parallel_degree.value == 2
    assert plan.chance is not None
    assert plan.chance > 0.95
    assert four.because.startswith("Same price, ")
    assert four.because.endswith(f"% to meet the SLO, against {100 * plan.chance:.0f} % for the chosen one.")


def test_chances_within_a_twentieth_are_as_good() -> None:
    assert chance_step(0.98) == chance_step(0.99) == chance_step(None) == 1
    assert chance_step(0.81) == pytest.approx(0.8)


def test_few_deployments_are_all_simulated(ask: Ask) -> None:
    loaded = ask(serving={"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"]})

    assert [str(feasible.candidate) for feasible in search_for(loaded)[1].ranked] == [
        str(feasible.candidate) for feasible in every_feasible(loaded, resolve(loaded))
    ]


def test_the_front_of_all_is_found(ask: Ask) -> None:
    loaded = ask(serving={"instance_types": VARIED_TYPES}, scaling={"max_copies": 4})
    resolved, found = search_for(loaded)
    expected = every_feasible(loaded, resolved)

    def names(feasible: list[FeasibleCandidate]) -> set[str]:
        return {str(feasible[place].candidate) for place in front([feasible.score for feasible in feasible])}

    assert names(list(found.ranked)) == names(expected)


def test_the_front_of_the_whole_catalog_is_found(ask: Ask) -> None:
    workload = {"input_tokens": 1_000, "output_tokens": 128, "concurrency": 200}
    loaded = ask(serving={}, workload=workload, scaling={"max_copies": 8}, objective="cost_per_token")
    resolved, found = search_for(loaded)
    scores = [feasible.score for feasible in every_feasible(loaded, resolved)]

    assert {scores[place] for place in front(scores)} <= {feasible.score for feasible in found.ranked}


def test_a_tight_time_to_first_token_hides_no_deployment_whose_requests_move_in_step(ask: Ask) -> None:
    loaded = ask(
        model={"hub_id": "tiiuae/falcon-7b"},
        workload={"input_tokens": 16, "output_tokens": 300, "concurrency": 14},
        slo={"ttft_ms": {"p95": 300}},
        serving={"engine": "tgi", "instance_types": ["ml.g6.xlarge", "ml.g6e.xlarge"]},
        trial={"start": "together"},
    )

    assert search_for(loaded)[1].ranked[0].candidate.instance.instance_type == "ml.g6.xlarge"


@pytest.mark.parametrize("concurrency", [16, 100, 108])
def test_the_highest_throughput_is_not_below_that_of_the_planned_load(concurrency: int, ask: Ask) -> None:
    workload = {"input_tokens": 256, "output_tokens": 256, "concurrency": concurrency}
    slo = {"ttft_ms": {"p95": 2_000}, "tpot_ms": {"p95": 100}}
    loaded = ask(workload=workload, slo=slo, serving={"instance_types": ["ml.g6e.xlarge"]}, scaling={"max_copies": 4})
    score = search_for(loaded)[1].ranked[0].score

    assert score.highest_tok_s >= score.output_tok_s


def test_more_prompt_tokens_are_tried_where_a_prefill_stops_decoding(ask: Ask) -> None:
    slo = {"ttft_ms": {"p95": 3000}, "tpot_ms": {"p95": 100}}
    tgi = {"engine": "tgi", "engine_version": "1.1.0", "instance_types": ["ml.p4d.24xlarge"]}
    loaded = ask(serving=tgi, slo=slo, objective="throughput")
    plan = make_plan(loaded)

    assert plan.max_num_batched_tokens.value in {8_192, 16_384}
    assert reads(
        plan.max_num_batched_tokens.because,
        f"{plan.max_num_batched_tokens.value:,} instead of 4,096: # output tokens per second, not #.",
    )
    fixed = ask(serving={**tgi, "overrides": {"max_num_batched_tokens": 4_096}}, slo=slo, objective="throughput")
    assert make_plan(fixed).max_num_batched_tokens.because == "The spec fixes it."


def test_chunks_of_prompts_need_no_more_of_them(ask: Ask) -> None:
    assert make_plan(ask(objective="throughput")).max_num_batched_tokens.value == 2_048
