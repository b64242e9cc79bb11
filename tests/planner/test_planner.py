from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.engines.render import model_source, plan_config
from seatrial.planner.decisions.batching import settle_max_model_len
from seatrial.planner.engine import choose_engine
from seatrial.planner.planner import make_plan
from seatrial.planner.predict.simulation import Level, outcome
from seatrial.planner.resolve import resolve
from seatrial.planner.search import capacity as levels
from seatrial_base.errors import PlanError
from seatrial_base.frozen_model import canonical_json
from tests.planner.conftest import reads

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Protocol
    from tests.planner.conftest import Ask

LLAMA_2, QWEN = "meta-llama/Llama-2-7b-chat-hf", "Qwen/Qwen2.5-1.5B"
CHAT_WORKLOAD = {"input_tokens": 256, "output_tokens": 256, "concurrency": 16}
TGI_IS_NOT_THE_CHOICE = (
    "SEA353: serving.engine fixes TGI; Seatrial would take LMI with vLLM. TGI has been in maintenance mode since "
    "2025-12-11: it gets small fixes only."
)
TGI_1 = {"engine": "tgi", "engine_version": "1.1.0"}
RATE = {"input_tokens": 256, "output_tokens": 256, "requests_per_second": 900.0}
MOST_SIMULATIONS = 400
"""Of one plan: a search that looks at every level of every deployment takes thousands."""
PUBLISHED_TYPES = ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"]


def of_plan(plan: Plan) -> tuple[str, ...]:
    """Return a plan's warnings but that the repository is gated, as most that are asked for here are."""
    return tuple(text for text in plan.warnings if not text.startswith("SEA256"))


def workload(concurrency: int = 16) -> dict[str, object]:
    return {"input_tokens": 256, "output_tokens": 256, "concurrency": concurrency}


def test_equal_input_gives_an_equal_plan(ask: Ask) -> None:
    loaded = ask(serving={})

    assert canonical_json(make_plan(loaded)) == canonical_json(make_plan(loaded))


@pytest.mark.parametrize("router", [True, False])
def test_the_plan_says_what_does_not_fit_through_the_router(ask: Ask, router: bool) -> None:  # noqa: FBT001 (a case)
    shares = [{"spec": "chat", "weight": 1}, {"spec": "b", "weight": 1}]
    hosting = {"router": router, "more_models": ["b"], "traffic": shares}
    long = {"input_tokens": 256, "output_tokens": 2500, "concurrency": 2}
    warnings = make_plan(ask(hosting=hosting, workload=long, trial={"request_timeout_s": 200})).warnings
    assert any(each.startswith("SEA147: p95 is predicted") for each in warnings) is router


@pytest.mark.parametrize(("bound", "seconds"), [(1.5, True), (0.001, False), (20, False)])
def test_a_bound_that_reads_as_seconds_is_told_in_milliseconds(bound: float, seconds: bool, ask: Ask) -> None:  # noqa: FBT001 (a case)
    with pytest.raises(PlanError) as caught:
        make_plan(ask(slo={"ttft_ms": {"p95": bound}}))
    assert ("bounds are in ms: 1.5 s is 1,500" in caught.value.problems[0].hint) is seconds


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the concurrency of each simulation, one after the other."""
    concurrencies: list[int] = []

    def counted(copy: Copy, concurrency: int, protocol: Protocol, timeout_s: float) -> Level:
        concurrencies.append(concurrency)
        return outcome(copy, concurrency, protocol, timeout_s)

    monkeypatch.setattr(levels, "outcome", counted)
    return concurrencies


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"workload": workload(1_000_000)}, "scaling.max_copies: SEA205: "),
        (
            {"slo": {"output_tok_s": 1e9}, "scaling": {"max_copies": 1000}, "workload": workload(100_000)},
            "slo.output_tok_s: SEA205: ",
        ),
        (
            {"slo": {"output_tok_s": 1e9}, "scaling": {"max_copies": 1000}, "workload": RATE},
            "slo.output_tok_s: SEA205: ",
        ),
    ],
    ids=["crowd", "output rate", "output rate of a request rate"],
)
def test_absurd_numbers_are_refused_and_not_searched_for_ever(
    fields: dict[str, object], told: str, ask: Ask, simulated: list[int]
) -> None:
    with pytest.raises(PlanError) as refused:
        make_plan(ask(serving={}, **fields))
    assert told in str(refused.value)
    assert 0 < len(simulated) < MOST_SIMULATIONS


def test_a_crowd_that_asks_for_single_tokens_is_planned_with_few_simulations(ask: Ask, simulated: list[int]) -> None:
    crowd = {"input_tokens": 4_000, "output_tokens": 1, "concurrency": 1_000}
    plan = make_plan(ask(serving={}, workload=crowd, scaling={"max_copies": 9}))
    assert plan.copy_count.value <= 9
    assert 0 < len(simulated) < MOST_SIMULATIONS


def test_cost_takes_the_cheapest(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": PUBLISHED_TYPES}))

    assert plan.instance_type.value == "ml.g5.2xlarge"
    assert plan.cost.usd_per_hour == 1.515
    assert plan.instance_type.because.startswith("Cheapest of 8 candidates")
    assert "$1.515 per hour" in plan.instance_type.because


def test_the_objectives_are_said_with_the_percentiles_that_they_bound(ask: Ask) -> None:
    slo = {"ttft_ms": {"p95": 3000}, "tpot_ms": {"p50": 90, "p99": 100}}
    plan = make_plan(ask(slo=slo))

    assert reads(
        plan.instance_type.because.partition("per copy: ")[2],
        "slo.ttft_ms.p95 # ms (bound 3,000 ms), slo.tpot_ms.p50 # ms (bound 90 ms), slo.tpot_ms.p99 # ms (bound "
        "100 ms), longest request # s.",
    )


def test_latency_takes_the_fastest_for_a_single_request(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": PUBLISHED_TYPES}, objective="latency"))

    assert plan.instance_type.value == "ml.p4d.24xlarge"
    assert reads(plan.rejected[0].because, "# ms per token for a single request, against # ms for the chosen one.")


def test_cost_per_token_fills_the_instances(ask: Ask) -> None:
    one_each = {"instance_types": ["ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 1}}
    cost, per_token = (
        make_plan(ask(serving=one_each, objective=objective, scaling={"max_copies": 8}))
        for objective in ("cost", "cost_per_token")
    )

    assert (cost.copy_count.value, per_token.copy_count.value) == (1, 4)
    assert cost.cost.usd_per_hour == per_token.cost.usd_per_hour
    assert (per_token.cost.usd_per_million_output_tokens or 0) < (cost.cost.usd_per_million_output_tokens or 0)
    assert per_token.instance_type.because.startswith("Cheapest token of ")
    assert per_token.copy_count.because.endswith("; 4 fill the instances at the same price.")


def test_every_price_has_the_discount_and_says_so(ask: Ask) -> None:
    plan = make_plan(ask(budget={"discount": 0.2}))

    assert (plan.cost.usd_per_hour, plan.cost.usd_per_hour_per_copy, plan.cost.discount) == (1.212, 1.212, 0.2)
    assert plan.pareto[0].usd_per_hour == 1.212
    assert "$1.212 per hour (20% off the list price)" in plan.instance_type.because
    assert "$1.212 per hour (20% off the list price)" in plan.instance_count.because


def test_the_front_has_the_chosen_deployment_and_none_that_another_beats(ask: Ask) -> None:
    plan = make_plan(ask(serving={}, slo={"tpot_ms": {"p95": 100}}))
    front = [(each.usd_per_hour, each.ms_per_token_alone, -each.highest_tok_s) for each in plan.pareto]

    assert [each.instance_type for each in plan.pareto if each.chosen] == [plan.instance_type.value]
    assert not any(
        other != each and all(a is not None and b is not None and a <= b for a, b in zip(other, each, strict=True))
        for each in front
        for other in front
    )


def test_throughput_takes_as_many_copies_as_the_budget_pays(ask: Ask) -> None:
    plan = make_plan(
        ask(
            serving={"instance_types": ["ml.g5.2xlarge"]},
            objective="throughput",
            scaling={"max_copies": 8},
            budget={"usd_per_hour": 7.0},
        )
    )

    assert plan.copy_count.value == 4  # 4 x $1.515
    assert plan.cost.usd_per_hour == 6.06


def test_losers_are_named_with_a_full_sentence(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.g7.2xlarge"]}))

    assert [(rejected.instance_type, rejected.because) for rejected in plan.rejected[:2]] == [
        ("ml.g5.12xlarge", "Meets the SLO at $7.09/h, $5.575/h above the chosen one."),
        ("ml.g7.2xlarge", "FLOPS and memory bandwidth of the NVIDIA RTX PRO 4500 Blackwell Server are unknown."),
    ]


def test_at_most_twelve_losers_are_named(ask: Ask) -> None:
    assert len(make_plan(ask(serving={})).rejected) == 12


def test_several_copies_share_an_instance(ask: Ask) -> None:
    plan = make_plan(
        ask(
            serving={"instance_types": ["ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 1}},
            scaling={"min_copies": 5, "max_copies": 9},
        )
    )

    assert plan.copies_per_instance.value == 4
    assert (plan.copy_count.value, plan.instance_count.value) == (5, 2)
    assert plan.max_instances == 3
    assert plan.cost.usd_per_hour_per_copy == round(7.09 / 4, 4)


def test_an_update_of_single_copies_doubles_them_for_a_while(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"min_copies": 1, "max_copies": 2}))

    assert plan.copies_replaced_at_once is None
    assert (plan.max_instances, plan.surge_instances.value) == (2, 2)
    assert "4 instances instead of 2" in plan.surge_instances.because
    assert "$3.03 per hour more" in plan.surge_instances.because


def test_an_update_of_several_copies_needs_room_for_one_more(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"min_copies": 2, "max_copies": 4}))

    assert plan.copies_replaced_at_once == 1
    assert (plan.max_instances, plan.surge_instances.value) == (4, 1)
    assert "5 instances instead of 4" in plan.surge_instances.because
    assert "$1.515 per hour more" in plan.surge_instances.because


def test_room_that_an_instance_has_left_is_no_surge(ask: Ask) -> None:
    plan = make_plan(
        ask(
            serving={"instance_types": ["ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 1}},
            scaling={"min_copies": 2, "max_copies": 3},
        )
    )

    assert (plan.copies_per_instance.value, plan.max_instances, plan.surge_instances.value) == (4, 1, 0)
    assert plan.surge_instances.because.endswith("up to 1 new copy and 3 old copies run: no further instances.")


def test_a_request_rate_becomes_a_concurrency_by_littles_law(ask: Ask) -> None:
    traffic = {"input_tokens": 256, "output_tokens": 256, "requests_per_second": 1.0}
    plan = make_plan(ask(workload=traffic, serving={"instance_types": ["ml.g5.2xlarge"], **TGI_1}))

    gate = plan.gate_concurrency_per_copy.value
    point = next(point for point in plan.curve if point.concurrency == gate)
    assert point.output_tok_s / 256 >= 1.0
    assert math.isclose(gate, 1.0 * point.e2e_latency_ms / 1000, abs_tol=1)
    assert plan.gate_concurrency_per_copy.because.startswith("1 requests per second over 1 copy")


def test_the_slo_decides_how_many_copies(ask: Ask) -> None:
    loose = make_plan(ask(workload=workload(16), scaling={"max_copies": 4}))
    at_8, at_16 = (point.tpot_p95_ms for point in loose.curve if point.concurrency in {8, 16})
    strict = {"tpot_ms": {"p95": (at_8 + at_16) / 2}}
    tight = make_plan(ask(slo=strict, workload=workload(16), scaling={"max_copies": 4}))

    assert (loose.copy_count.value, tight.copy_count.value) == (1, 2)
    assert all(point.tpot_p95_ms <= strict["tpot_ms"]["p95"] for point in tight.curve if point.concurrency <= 8)


def test_each_percentile_counts_against_its_own_bound(ask: Ask) -> None:
    levels = make_plan(ask(workload=workload(12))).curve
    point = next(point for point in levels if point.concurrency == 12)
    between = (point.ttft_ms + point.ttft_p95_ms) / 2

    lax, strict = (
        make_plan(ask(slo={"ttft_ms": {name: between}}, workload=workload(12), scaling={"max_copies": 4}))
        for name in ("p50", "p95")
    )
    assert point.ttft_ms < point.ttft_p95_ms
    assert (lax.copy_count.value, strict.copy_count.value) == (1, 2)


def test_an_output_rate_adds_copies_until_it_is_met(ask: Ask) -> None:
    plan = make_plan(ask(slo={"output_tok_s": 700}, workload=workload(32), scaling={"max_copies": 4}))

    gate = plan.gate_concurrency_per_copy.value
    point = next(point for point in plan.curve if point.concurrency == gate)
    assert plan.copy_count.value == 2
    assert plan.copy_count.value * point.output_tok_s >= 700


def test_a_fitted_engine_states_its_measured_error(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge"], **TGI_1}))

    assert plan.band.measured
    assert plan.band.because == "80 % of the rows held out of the fit of tgi-1.x were predicted within this band."
    assert of_plan(plan) == (TGI_IS_NOT_THE_CHOICE,)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"serving": {**TGI_1, "instance_types": ["ml.g6.2xlarge"]}}, "NVIDIA L4"),
        (
            {
                "serving": {**TGI_1, "instance_types": ["ml.g5.2xlarge"]},
                "model": {"hub_id": "TheBloke/Llama-2-7B-Chat-GPTQ"},
            },
            "gptq weights",
        ),
        (
            {
                "serving": {**TGI_1, "instance_types": ["ml.p4d.24xlarge"]},
                "model": {"hub_id": "mistralai/Mixtral-8x7B-v0.1"},
            },
            "mixture of experts",
        ),
    ],
)
def test_outside_the_fit_the_error_is_an_assumption_and_said_to_be_one(
    fields: dict[str, object], reason: str, ask: Ask
) -> None:
    plan = make_plan(ask(**fields))

    assert (plan.band.throughput, plan.band.latency, plan.band.measured) == (0.5, 0.5, False)
    assert plan.warnings[0] == TGI_IS_NOT_THE_CHOICE
    assert plan.band.because == plan.warnings[1]
    assert plan.warnings[1] == (
        f"Constants of tgi-1.x, not fitted for: {reason}; ±50% is an assumption until a trial runs."
    )


def test_lmi_has_the_band_of_the_engine_whose_constants_it_borrows(ask: Ask) -> None:
    plan = make_plan(ask())

    assert plan.band.measured
    assert "vllm" in plan.band.because
    assert of_plan(plan) == ()


def test_speculative_decoding_is_faster_for_a_single_request_and_its_assumptions_are_said(ask: Ask) -> None:
    drafted = {"draft_tokens": 3, "acceptance_rate": 0.7}
    plain, faster = (
        make_plan(ask(serving={**TGI_1, "instance_types": ["ml.g5.2xlarge"], "overrides": overrides}))
        for overrides in ({}, {"speculative_decoding": drafted})
    )

    assert faster.curve[0].ms_per_token < plain.curve[0].ms_per_token
    assert "speculative decoding" in of_plan(faster)[1]
    assert of_plan(faster)[2] == (
        "Speculative decoding is assumed: 3 drafted tokens per step, acceptance 70%, draft cost 5% of a step per "
        "token. The memory of a draft model is not counted."
    )


def test_the_batch_limit_is_the_kv_room(ask: Ask) -> None:
    plan = make_plan(ask())

    held = plan.memory.kv_limited_batch
    assert plan.max_num_seqs.value == held
    assert plan.max_num_seqs.because == f"The KV cache holds {held} sequences of the workload's length."
    assert plan.concurrency_levels.value == (1, 2, 4, 8, 16, 32)
    assert plan.max_queued_requests.value >= plan.max_num_seqs.value


def test_the_objectives_lower_the_batch_limit_but_leave_room_for_the_error(ask: Ask) -> None:
    plan = make_plan(ask(slo={"tpot_ms": {"p95": 36}}, workload=workload(4)))
    found = re.match(r"One copy sustains (\d+) concurrent requests", plan.copy_count.because)

    assert found is not None
    assert plan.max_num_seqs.value == math.ceil(int(found[1]) * (1 + plan.band.latency))
    assert plan.max_num_seqs.because.startswith(
        f"One copy sustains {found[1]} concurrent requests, plus {plan.band.latency:.0%} "
    )


def test_no_request_at_the_gate_passes_the_timeout(ask: Ask) -> None:
    plan = make_plan(ask(workload=workload(200), scaling={"max_copies": 4}))
    gate = next(point for point in plan.curve if point.concurrency == plan.gate_concurrency_per_copy.value)

    assert plan.copy_count.value > 1
    assert gate.late == 0


def test_the_copies_say_what_the_peak_needs_and_how_far_autoscaling_goes(ask: Ask) -> None:
    plan = make_plan(ask(workload=workload(200), scaling={"min_copies": 2, "max_copies": 6}))

    assert reads(
        plan.copy_count.because,
        "One copy sustains # concurrent requests; peak is 200: at least 2 copies. Autoscaling runs 2 to 6.",
    )


def test_a_batch_limit_that_the_memory_cant_hold_is_taken_and_warned_of(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_num_seqs": 64}}))

    assert plan.max_num_seqs.value == 64
    held = plan.memory.kv_limited_batch
    assert (
        f"max_num_seqs is set to 64, but the KV cache holds {held} sequences of the workload's length." in plan.warnings
    )


@pytest.mark.parametrize(
    ("model", "tokens", "max_model_len", "because"),
    [
        (LLAMA_2, (256, 256), 4_096, "Twice the typical request of 512 tokens, at least 4,096. "),
        (LLAMA_2, (3_900, 100), 4_096, "Twice the typical request of 4,000 tokens, at least 4,096, bounded by "),
        (QWEN, (250, 7), 4_096, "Twice the typical request of 257 tokens, at least 4,096. "),
        (QWEN, (3_000, 1_000), 8_192, "Twice the typical request of 4,000 tokens, at least 4,096. "),
    ],
)
def test_the_longest_request_is_above_the_typical_one(
    model: str, tokens: tuple[int, int], max_model_len: int, because: str, ask: Ask
) -> None:
    """It was the workload's sum rounded up, so that a longer real request got a 400."""
    traffic = {"input_tokens": tokens[0], "output_tokens": tokens[1], "concurrency": 1}
    plan = make_plan(ask(workload=traffic, model={"hub_id": model}))

    assert plan.max_model_len.value == max_model_len
    assert plan.max_model_len.because.startswith(because)
    assert plan.max_model_len.because.endswith(" MiB each per accelerator).")
    assert plan.max_num_batched_tokens.value == 2_048


def test_the_longest_request_costs_no_capacity_for_the_typical_one(ask: Ask) -> None:
    usual, tight = make_plan(ask()), make_plan(ask(workload={**CHAT_WORKLOAD, "max_model_len": 512}))

    assert (usual.max_model_len.value, tight.max_model_len.value) == (4_096, 512)
    assert (usual.memory, usual.curve, usual.max_num_seqs) == (tight.memory, tight.curve, tight.max_num_seqs)
    assert tight.max_model_len.because.startswith("The spec fixes it. The KV cache holds ")


def test_the_longest_request_stays_within_the_kv_room(ask: Ask) -> None:
    reading = resolve(ask(model={"hub_id": QWEN}, workload={**CHAT_WORKLOAD, "input_tokens": 1_000}))
    per_token = 2**20
    memory = make_plan(ask()).memory.model_copy(
        update={"kv_room_bytes": 1_800 * per_token, "kv_bytes_per_token": per_token, "kv_limited_batch": 1}
    )
    settled = settle_max_model_len(reading.max_model_len, reading.demand, memory, 2_048)
    assert settled.value == 1_792
    assert "bounded by the KV cache. The KV cache holds 1 typical request, or 1 of 1,792 tokens" in settled.because


def test_tgi_computes_the_longest_prompt_in_one_iteration(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "engine": "tgi"}
    traffic = {"input_tokens": 3_000, "output_tokens": 1_000, "concurrency": 1}
    usual = make_plan(ask(model={"hub_id": QWEN}, workload=traffic, serving=serving))
    fixed = make_plan(ask(model={"hub_id": QWEN}, workload={**traffic, "max_model_len": 9_000}, serving=serving))

    assert usual.max_model_len.value - 1_000 == usual.max_num_batched_tokens.value == 4_096
    assert "bounded by one prompt per iteration" in usual.max_model_len.because
    assert (fixed.max_model_len.value, fixed.max_num_batched_tokens.value) == (9_000, 8_192)


def test_the_gate_is_among_the_levels_that_the_spec_gives(ask: Ask) -> None:
    plan = make_plan(ask(trial={"concurrency_levels": [1, 4]}, workload=workload(6)))

    assert plan.concurrency_levels.value == (1, 4, 6)


def test_the_target_is_a_share_of_the_knee(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"target_utilization": 0.7, "max_copies": 3}))

    knee = plan.max_num_seqs.value
    assert (plan.knee.concurrency, plan.knee.detector) == (knee, "saturation")
    assert plan.target_concurrency_per_copy.value == pytest.approx(knee * 0.7)
    assert plan.target_concurrency_per_copy.because.startswith(
        f"70% of the predicted knee, {knee} concurrent requests (saturation); slo would give "
    )


def test_where_saturation_would_give_less_the_target_is_the_gate(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"target_utilization": 0.5, "max_copies": 3}))

    gate = plan.gate_concurrency_per_copy.value
    assert (plan.knee.concurrency, plan.knee.detector) == (gate, "gate")
    assert plan.target_concurrency_per_copy.value == gate
    assert plan.target_concurrency_per_copy.because.startswith(f"The gate, {gate} concurrent requests (gate); ")


def test_with_the_slo_alone_saturation_does_not_count(ask: Ask) -> None:
    plan = make_plan(ask(trial={"target": "slo"}))

    assert plan.knee.detector == "slo"


def test_overrides_are_taken_as_given(ask: Ask) -> None:
    fixed = {"max_model_len": 1_024, "max_num_batched_tokens": 4_096, "max_queued_requests": 7, "dtype": "bf16"}
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge"], "overrides": fixed}))

    decided = (plan.max_model_len, plan.max_num_batched_tokens, plan.max_queued_requests, plan.dtype)
    assert [decision.value for decision in decided] == [1_024, 4_096, 7, "bf16"]
    assert {decision.because.partition(". ")[0].rstrip(".") for decision in decided} == {"The spec fixes it"}


VLLM_30 = {"instance_types": ["ml.g5.2xlarge"], "engine": "vllm", "engine_version": "0.30.0"}
REFUSING = [
    ({"engine": "vllm", "engine_version": "0.30.0"}, 503),
    ({"engine": "vllm", "engine_version": "0.28.0"}, None),
    ({"engine": "sglang"}, 503),
    ({"engine": "tgi"}, 429),
    ({"engine": "lmi", "backend": "vllm-rolling"}, 503),
    ({"engine": "lmi"}, None),  # its asynchronous handler hands every request to vLLM at once
]


@pytest.mark.parametrize(("serving", "status"), REFUSING)
def test_a_copy_that_refuses_queues_what_keeps_the_time_to_first_token(
    ask: Ask, serving: dict[str, object], status: int | None
) -> None:
    served = {"instance_types": ["ml.g5.2xlarge"], **serving}
    spec = {"slo": {"ttft_ms": {"p95": 2_500}}, "workload": workload(4)}
    queues, refuses = (
        make_plan(ask(serving=served | {"overload": overload}, **spec)) for overload in ("queue", "refuse")
    )

    queued, at_knee = refuses.max_queued_requests, f"at the knee of {refuses.knee.concurrency}, 2500 ms at most"
    assert 1 <= queued.value < queues.max_queued_requests.value
    assert at_knee in queued.because
    assert [warning for warning in refuses.warnings if warning.startswith("SEA149")] == [
        warning for warning in refuses.warnings if "refuses no request" in warning
    ]
    assert any(warning.startswith("SEA149") for warning in refuses.warnings) is (status is None)
    assert (f"Further ones are answered {status}." in queued.because) is (status is not None)
    bounds_tokens = serving.get("engine_version") == "0.30.0"
    assert (refuses.max_queued_tokens is not None) is bounds_tokens
    if refuses.max_queued_tokens is not None:
        assert refuses.max_queued_tokens.value // 256 == queued.value  # prompts of 256 tokens
    if status is not None:
        assert max(refuses.concurrency_levels.value) <= refuses.max_num_seqs.value + queued.value


def test_a_longer_bound_lets_more_wait_and_none_that_is_left_at_the_knee_lets_one(ask: Ask) -> None:
    def queued(bound: int) -> int:
        spec = ask(serving={**VLLM_30, "overload": "refuse"}, slo={"ttft_ms": {"p95": bound}}, workload=workload(4))
        return make_plan(spec).max_queued_requests.value

    tight, middle, wide = (queued(bound) for bound in (350, 1_500, 4_000))
    assert (tight, middle < wide) == (1, True)


def test_an_accelerator_without_bf16_computes_in_fp16(ask: Ask) -> None:
    plan = make_plan(ask(model={"hub_id": "Qwen/Qwen2.5-1.5B"}, serving={"instance_types": ["ml.g4dn.xlarge"]}))

    assert plan.dtype.value == "fp16"
    assert plan.dtype.because == "The NVIDIA T4 has no bf16, the published type."


def test_an_unknown_price_and_an_unknown_instance_type_are_said(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.p5e.48xlarge", "ml.g99.xlarge"]}))

    assert plan.cost.usd_per_hour is None
    assert plan.warnings[0] == ("SEA110: ml.g99.xlarge is not in the catalog and was ignored.")
    assert "p5e.48xlarge is unknown, so the cost is too. Estimated: $69.62 per hour for an" in plan.warnings[-1]


def test_a_known_price_is_preferred(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.p6-b200.48xlarge", "ml.g5.12xlarge"]}))

    assert plan.instance_type.value == "ml.g5.12xlarge"
    assert "Meets the SLO, but its price is unknown; a known price ranks first." in {
        rejected.because for rejected in plan.rejected
    }


def test_a_quantized_checkpoint_is_planned_at_its_own_size_and_left_to_the_engine(ask: Ask) -> None:
    loaded = ask(model={"hub_id": "openai/gpt-oss-20b"}, serving={"instance_types": ["ml.g6e.12xlarge"]})
    plan = make_plan(loaded)

    assert plan.quantization == "mxfp4"
    assert plan.memory.weights_bytes * plan.tensor_parallel_degree.value < 16 * 2**30
    assert plan_config(loaded, plan, model_source(loaded)).quantization is None


def test_the_encoder_of_a_multimodal_model_is_said_not_to_count(ask: Ask) -> None:
    plan = make_plan(ask(model={"hub_id": "google/gemma-3-4b-it"}, serving={"instance_types": ["ml.g6e.12xlarge"]}))

    assert any("google/gemma-3-4b-it has an encoder" in warning for warning in plan.warnings)


def test_the_guard_rails_narrow_the_instance_types(ask: Ask) -> None:
    rails = {"instance_types": ["ml.g5.12xlarge", "ml.p4d.24xlarge"]}
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"]}, rails=rails))

    assert plan.instance_type.value == "ml.g5.12xlarge"


def test_the_cost_per_token_follows_from_the_load(ask: Ask) -> None:
    plan = make_plan(ask())

    point = next(point for point in plan.curve if point.concurrency == 16)
    per_million = 1.515 / (point.output_tok_s * 3_600) * 1e6
    assert plan.cost.usd_per_million_output_tokens == pytest.approx(per_million, rel=1e-3)
    assert plan.cost.blended_usd_per_million_tokens == pytest.approx(per_million / 4, rel=1e-3)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    concurrency=st.integers(1, 300),
    tpot_ms=st.integers(20, 200),
    ttft_ms=st.integers(500, 20_000),
    min_copies=st.integers(1, 3),
    objective=st.sampled_from(["cost", "cost_per_token", "latency", "throughput"]),
)
def test_a_plan_keeps_what_was_asked(
    concurrency: int, tpot_ms: int, ttft_ms: int, min_copies: int, objective: str, ask: Ask
) -> None:
    loaded = ask(
        workload=workload(concurrency),
        slo={"tpot_ms": {"p95": tpot_ms}, "ttft_ms": {"p95": ttft_ms}},
        objective=objective,
        scaling={"min_copies": min_copies, "max_copies": 40},
        budget={"usd_per_hour": 900.0},
        serving={"instance_types": PUBLISHED_TYPES},
    )
    plan = make_plan(loaded)

    gate = plan.gate_concurrency_per_copy.value
    point = next(point for point in plan.curve if point.concurrency == gate)
    assert point.tpot_p95_ms <= tpot_ms + 0.01
    assert point.ttft_p95_ms <= ttft_ms + 0.01
    assert point.late == 0
    assert min_copies <= plan.copy_count.value <= 40
    assert gate * plan.copy_count.value >= concurrency
    assert plan.instance_count.value * plan.copies_per_instance.value >= plan.copy_count.value
    assert plan.cost.usd_per_hour is not None
    assert plan.cost.usd_per_hour <= 900.0
    assert 1 <= plan.max_num_seqs.value <= min(plan.memory.kv_limited_batch, 256)


def test_a_batch_limit_that_no_memory_holds_makes_no_levels_that_nothing_answers(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_num_seqs": 65_536}}
    plan = make_plan(ask(serving=serving))

    assert plan.max_num_seqs.value == 65_536
    assert max(plan.concurrency_levels.value) <= 2 * plan.memory.kv_limited_batch
    assert plan.max_queued_requests.value >= plan.memory.kv_limited_batch


@pytest.mark.parametrize(
    ("allowed", "engine"), [(["vllm", "tgi"], "vllm"), (["vllm"], "vllm"), (["tgi", "lmi"], "lmi")]
)
def test_the_guard_rails_narrow_the_engines(allowed: list[str], engine: str, ask: Ask) -> None:
    choice = choose_engine(ask(rails={"engines": allowed}))
    assert choice.engine.value == engine
    assert (", ".join(allowed) in choice.engine.because) == (engine != "lmi")


def test_a_model_that_no_allowed_engine_serves_is_refused(ask: Ask) -> None:
    drafts = {"speculative_decoding": {"draft_tokens": 3, "acceptance_rate": 0.7, "method": "eagle3"}}
    with pytest.raises(PlanError) as caught:
        choose_engine(ask(rails={"engines": ["tgi"]}, serving={"overrides": drafts}))
    (problem,) = caught.value.problems
    assert (problem.rule, problem.field) == ("SEA111", "serving.engine")
    assert "environments/dev.yaml:" in problem.message


def test_an_image_of_another_engine_than_the_allowed_ones_is_refused(ask: Ask) -> None:
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/my-tgi:3"
    with pytest.raises(PlanError) as caught:
        choose_engine(ask(rails={"engines": ["lmi", "vllm"], "images": [image]}, serving={"image": image}))
    assert [(each.rule, each.field) for each in caught.value.problems] == [("SEA111", "serving.image")]


def test_a_guard_rail_on_the_price_of_tokens_keeps_dearer_deployments_out(ask: Ask) -> None:
    types = {"instance_types": ["ml.g5.2xlarge", "ml.p4d.24xlarge"]}
    quick = make_plan(ask(serving=types, objective="latency"))
    bound = quick.cost.usd_per_million_output_tokens
    assert bound is not None
    rails = {"usd_per_million_output_tokens": 0.9 * bound}
    cheaper = make_plan(ask(serving=types, objective="latency", rails=rails))
    assert (quick.instance_type.value, cheaper.instance_type.value) == ("ml.p4d.24xlarge", "ml.g5.2xlarge")


def test_a_model_in_a_variant_takes_whole_instances(ask: Ask) -> None:
    single = {"hosting": {"kind": "single_model"}, "trial": {"mode": "off"}}
    types = {"instance_types": ["ml.g5.12xlarge"]}
    shared, whole = make_plan(ask(serving=types)), make_plan(ask(serving=types, **single))
    assert shared.tensor_parallel_degree.value < 4
    assert (whole.tensor_parallel_degree.value, whole.copies_per_instance.value) == (4, 1)
    overrides = {"tensor_parallel_degree": 2}
    with pytest.raises(PlanError) as caught:
        make_plan(ask(serving={**types, "overrides": overrides}, **single))
    assert "4 accelerators, not 2" in str(caught.value)


def test_a_plan_to_zero_starts_with_a_copy_and_tells_the_cost_at_zero(ask: Ask) -> None:
    to_zero = make_plan(ask(scaling={"min_copies": 0, "max_copies": 2}))
    usual = make_plan(ask(scaling={"min_copies": 1, "max_copies": 2}))
    assert to_zero.copy_count.value == usual.copy_count.value == 1
    assert to_zero.cost == usual.cost
    at_zero = "0 to 2; at 0 copies no instance runs: $0.00 per hour, and requests are refused until a copy has started"
    assert at_zero in to_zero.copy_count.because
    queued = {"kind": "single_model", "asynchronous": {"output_s3_uri": "s3://answers/a/"}}
    scaling = {"min_copies": 0, "max_copies": 2}
    waits = make_plan(ask(scaling=scaling, hosting=queued, trial={"mode": "off"})).copy_count.because
    assert at_zero.replace("are refused", "wait") in waits
    assert "no instance runs" not in usual.copy_count.because


def test_adapters_take_room_from_the_cache_and_time_of_every_step(ask: Ask) -> None:
    def plan(**lora: int) -> Plan:
        serving = {"instance_types": ["ml.g6.xlarge"], "overrides": {"lora": lora} if lora else {}}
        return make_plan(ask(model={"hub_id": "NousResearch/Meta-Llama-3.1-8B-Instruct"}, serving=serving))

    plain, adapted = plan(), plan(max_adapters=20, max_rank=32)
    assert plain.memory.adapters_bytes == 0
    assert plain.memory.kv_room_bytes - adapted.memory.kv_room_bytes == adapted.memory.adapters_bytes == 3_355_443_200
    assert any("predicted as one that names an adapter" in text for text in adapted.warnings)
    assert adapted.curve[3].tpot_ms > 1.03 * plain.curve[3].tpot_ms


def test_a_shared_prefix_is_in_the_cache_once_and_a_share_of_the_memory_bounds_it(ask: Ask) -> None:
    def held(share: float = 0.9, **shared: int) -> int:
        workload = {"input_tokens": 3_000, "output_tokens": 200, "concurrency": 8, **shared}
        overrides = {"prefix_caching": True, "extra": {"gpu_memory_utilization": share}}
        serving = {"instance_types": ["ml.g6e.xlarge"], "overrides": overrides}
        return make_plan(ask(workload=workload, serving=serving)).memory.kv_limited_batch

    two, one = (held(shared_prefix_tokens=2_500, prefix_groups=groups) for groups in (2, 1))
    assert 4 * held(0.6) < 4 * held() < two < one


def test_experts_are_dealt_out_where_the_engine_starts_only_so(ask: Ask) -> None:
    coder = {"hub_id": "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8"}
    plan = make_plan(ask(model=coder, serving={"instance_types": ["ml.p4de.24xlarge"]}))

    assert plan.tensor_parallel_degree.value == 8
    assert plan.expert_parallel_degree is not None
    assert plan.expert_parallel_degree.value == 8
    assert "SEA254" in plan.expert_parallel_degree.because


def test_a_stretched_context_is_planned(ask: Ask) -> None:
    rope = {"kind": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}
    long = {"input_tokens": 100_000, "output_tokens": 1_000, "concurrency": 1}
    serving = {"instance_types": ["ml.g7e.2xlarge"], "overrides": {"rope_scaling": rope}}
    fields = {"model": {"hub_id": "Qwen/Qwen3-32B"}, "workload": long, "trial": {"request_timeout_s": 300}}

    assert make_plan(ask(**fields, serving=serving)).max_model_len.value >= 101_000
    with pytest.raises(PlanError, match=r"SEA208.*101,000"):
        make_plan(ask(**fields, serving={"instance_types": ["ml.g7e.2xlarge"]}))
