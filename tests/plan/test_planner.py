from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.model import canonical_json
from seatrial.plan.planner import make_plan

if TYPE_CHECKING:
    from tests.plan.conftest import Ask

TGI_1 = {"engine": "tgi", "engine_version": "1.1.0"}
PUBLISHED_TYPES = ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"]


def workload(concurrency: int = 16) -> dict[str, object]:
    return {"input_tokens": 256, "output_tokens": 256, "concurrency": concurrency}


def test_equal_input_gives_an_equal_plan(ask: Ask) -> None:
    loaded = ask(serving={})

    assert canonical_json(make_plan(loaded)) == canonical_json(make_plan(loaded))


def test_the_whole_catalog_takes_less_than_a_second(ask: Ask) -> None:
    loaded = ask(serving={}, model={"hub_id": "mistralai/Mixtral-8x7B-Instruct-v0.1"})

    started = time.perf_counter()
    make_plan(loaded)

    assert time.perf_counter() - started < 1


def test_cost_takes_the_cheapest(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": PUBLISHED_TYPES}))

    assert plan.instance_type.value == "ml.g5.2xlarge"
    assert plan.cost.usd_per_hour == 1.515
    assert plan.instance_type.because == (
        "It has the lowest cost, $1.515 per hour, of 8 deployments predicted to keep every objective: at 16 requests "
        "in flight per copy mean TTFT is 97 ms, mean TPOT 46.3 ms and mean end-to-end latency 11.9 s (means are "
        "compared with the bounds at percentiles)."
    )


def test_latency_takes_the_fastest_for_a_single_request(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": PUBLISHED_TYPES}, objective="latency"))

    assert (plan.instance_type.value, plan.tensor_parallel_degree.value) == ("ml.p4d.24xlarge", 1)
    assert plan.rejected[0].because == ("A single request is predicted to take 17.3 ms per token, the chosen one 13.2.")


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
        ("ml.g5.12xlarge", "It keeps every objective and costs $7.09 per hour, $5.575 more than the chosen one."),
        ("ml.g7.2xlarge", "FLOPS and memory bandwidth of its NVIDIA RTX PRO 4500 Blackwell Server are unknown."),
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
    assert plan.surge_instances.because == (
        "An update replaces the copies at once, up to 2 new copies beside 2 old ones: 4 instances instead of 2 while "
        "it updates, $3.03 per hour more."
    )


def test_an_update_of_several_copies_needs_room_for_one_more(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"min_copies": 2, "max_copies": 4}))

    assert plan.copies_replaced_at_once == 1
    assert (plan.max_instances, plan.surge_instances.value) == (4, 1)
    assert plan.surge_instances.because == (
        "An update replaces the copies 1 at a time, up to 1 new copy beside 4 old ones: 5 instances instead of 4 while "
        "it updates, $1.515 per hour more."
    )


def test_room_that_an_instance_has_left_is_no_surge(ask: Ask) -> None:
    plan = make_plan(
        ask(
            serving={"instance_types": ["ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 1}},
            scaling={"min_copies": 2, "max_copies": 3},
        )
    )

    assert (plan.copies_per_instance.value, plan.max_instances, plan.surge_instances.value) == (4, 1, 0)
    assert plan.surge_instances.because == (
        "An update replaces the copies 1 at a time, up to 1 new copy beside 3 old ones: they fit on the same instance."
    )


def test_a_request_rate_becomes_a_concurrency_by_littles_law(ask: Ask) -> None:
    traffic = {"input_tokens": 256, "output_tokens": 256, "requests_per_second": 1.0}
    plan = make_plan(ask(workload=traffic, serving={"instance_types": ["ml.g5.2xlarge"], **TGI_1}))

    gate = plan.gate_concurrency_per_copy.value
    point = next(point for point in plan.curve if point.concurrency == gate)
    assert point.output_tok_s / 256 >= 1.0
    assert math.isclose(gate, 1.0 * point.e2e_latency_ms / 1000, abs_tol=1)
    assert plan.gate_concurrency_per_copy.because == "The workload's 1 requests per second over 1 copy, rounded up."


def test_the_slo_decides_how_many_copies(ask: Ask) -> None:
    strict = {"tpot_ms": {"p95": 40}}
    loose, tight = (make_plan(ask(slo=slo, workload=workload(16), scaling={"max_copies": 4})) for slo in ({}, strict))

    assert loose.copy_count.value == 1
    assert tight.copy_count.value == 2
    assert all(point.tpot_ms <= 40 for point in tight.curve if point.concurrency <= 8)


def test_the_tightest_percentile_counts(ask: Ask) -> None:
    several, one = (
        make_plan(ask(slo={"tpot_ms": bounds}, scaling={"max_copies": 4}))
        for bounds in ({"p50": 40, "p99": 200}, {"p99": 40})
    )

    assert several.copy_count.value == one.copy_count.value == 2


def test_an_output_rate_adds_copies_until_it_is_met(ask: Ask) -> None:
    plan = make_plan(ask(slo={"output_tok_s": 500}, workload=workload(32), scaling={"max_copies": 4}))

    gate = plan.gate_concurrency_per_copy.value
    point = next(point for point in plan.curve if point.concurrency == gate)
    assert plan.copy_count.value == 2
    assert plan.copy_count.value * point.output_tok_s >= 500


def test_a_fitted_engine_states_its_measured_error(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge"], **TGI_1}))

    assert plan.uncertainty == 0.15
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "no performance constants are fitted for lmi 0.36.0-lmi27.0.0"),
        ({"serving": {**TGI_1, "instance_types": ["ml.g6.2xlarge"]}}, "none are fitted on NVIDIA L4"),
        (
            {"serving": {**TGI_1, "instance_types": ["ml.g5.2xlarge"], "overrides": {"quantization": "awq"}}},
            "none are fitted for awq weights",
        ),
        (
            {
                "serving": {**TGI_1, "instance_types": ["ml.p4d.24xlarge"]},
                "model": {"hub_id": "mistralai/Mixtral-8x7B-v0.1"},
            },
            "the kernels of a mixture of experts are not modelled",
        ),
    ],
)
def test_outside_the_fit_the_error_is_an_assumption_and_said_to_be_one(
    fields: dict[str, object], reason: str, ask: Ask
) -> None:
    plan = make_plan(ask(**fields))

    assert plan.uncertainty == 0.5
    assert plan.warnings == (
        f"Predictions use the constants of tgi-1.x, because {reason}; ±50% is an assumption until a trial runs.",
    )


def test_the_batch_limit_is_the_kv_room(ask: Ask) -> None:
    plan = make_plan(ask())

    assert plan.memory.kv_limited_batch == plan.max_num_seqs.value == 28
    assert plan.max_num_seqs.because == "The KV room holds 28 sequences of the workload's length."
    assert plan.concurrency_levels.value == (1, 2, 4, 8, 16, 32)
    assert plan.max_queued_requests.value >= plan.max_num_seqs.value


def test_the_objectives_lower_the_batch_limit_but_leave_room_for_the_error(ask: Ask) -> None:
    plan = make_plan(ask(slo={"tpot_ms": {"p95": 40}}, workload=workload(8)))

    assert plan.copy_count.because.startswith("A copy is predicted to keep the objectives up to 9 requests in flight")
    assert plan.max_num_seqs.value == 14  # 9 x 1.5, rounded up


def test_a_batch_limit_that_the_memory_cant_hold_is_taken_and_warned_of(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_num_seqs": 64}}))

    assert plan.max_num_seqs.value == 64
    assert "max_num_seqs is fixed at 64, but the KV room holds 28 sequences of the workload's length." in plan.warnings


@pytest.mark.parametrize(
    ("tokens", "max_model_len", "batched"),
    [((256, 256), 512, 2_048), ((250, 7), 512, 2_048), ((3_800, 200), 4_096, 3_840), ((3_900, 100), 4_096, 4_096)],
)
def test_lengths_are_rounded_up_within_the_context(
    tokens: tuple[int, int], max_model_len: int, batched: int, ask: Ask
) -> None:
    traffic = {"input_tokens": tokens[0], "output_tokens": tokens[1], "concurrency": 1}
    plan = make_plan(ask(workload=traffic))

    assert plan.max_model_len.value == max_model_len
    assert plan.max_num_batched_tokens.value == batched


def test_the_gate_is_among_the_levels_that_the_spec_gives(ask: Ask) -> None:
    plan = make_plan(ask(trial={"concurrency_levels": [1, 4]}, workload=workload(6)))

    assert plan.concurrency_levels.value == (1, 4, 6)


def test_the_target_is_a_share_of_the_knee(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"target_utilization": 0.5, "max_copies": 3}))

    assert plan.target_concurrency_per_copy.value == 14.0
    assert plan.target_concurrency_per_copy.because.startswith("50% of the predicted knee of 28")


def test_overrides_are_taken_as_given(ask: Ask) -> None:
    fixed = {"max_model_len": 1_024, "max_num_batched_tokens": 4_096, "max_queued_requests": 7, "dtype": "bf16"}
    plan = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge"], "overrides": fixed}))

    decided = (plan.max_model_len, plan.max_num_batched_tokens, plan.max_queued_requests, plan.dtype)
    assert [decision.value for decision in decided] == [1_024, 4_096, 7, "bf16"]
    assert {decision.because for decision in decided} == {"The spec fixes it."}


def test_an_accelerator_without_bf16_computes_in_fp16(ask: Ask) -> None:
    plan = make_plan(ask(model={"hub_id": "Qwen/Qwen2.5-1.5B"}, serving={"instance_types": ["ml.g4dn.xlarge"]}))

    assert plan.dtype.value == "fp16"
    assert plan.dtype.because == "The weights are published in bf16, which NVIDIA T4 lacks."


def test_an_unknown_price_and_an_unknown_instance_type_are_said(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.g4dn.12xlarge", "ml.g99.xlarge"]}))

    assert plan.cost.usd_per_hour is None
    assert plan.warnings[0] == (
        "SEA110: ml.g99.xlarge is not in the catalog: it can't be planned without its accelerator's numbers, so it is "
        "left out."
    )
    assert plan.warnings[-1] == (
        "SEA207: the price of ml.g4dn.12xlarge in us-east-1 is not in the catalog, so the cost is unknown."
    )


def test_a_known_price_is_preferred(ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.g4dn.12xlarge", "ml.g5.12xlarge"]}))

    assert plan.instance_type.value == "ml.g5.12xlarge"
    assert "It keeps every objective, but its price is unknown, and a known price is preferred." in {
        rejected.because for rejected in plan.rejected
    }


def test_a_price_of_another_region_is_said(ask: Ask) -> None:
    plan = make_plan(ask(region="eu-west-1"))

    assert plan.warnings[-1] == (
        "The price of ml.g5.2xlarge is that of us-east-1 on 2026-04-21; eu-west-1's is not in the catalog."
    )


def test_a_checkpoint_smaller_than_16_bits_is_said(ask: Ask) -> None:
    plan = make_plan(ask(model={"hub_id": "openai/gpt-oss-20b"}, serving={"instance_types": ["ml.g6e.12xlarge"]}))

    assert "openai/gpt-oss-20b is published in mxfp4; its weights are counted at 16 bits, an over-estimate." in (
        plan.warnings
    )


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


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    concurrency=st.integers(1, 300),
    tpot_ms=st.integers(20, 200),
    min_copies=st.integers(1, 3),
    objective=st.sampled_from(["cost", "latency", "throughput"]),
)
def test_a_plan_keeps_what_was_asked(concurrency: int, tpot_ms: int, min_copies: int, objective: str, ask: Ask) -> None:
    loaded = ask(
        workload=workload(concurrency),
        slo={"tpot_ms": {"p95": tpot_ms}},
        objective=objective,
        scaling={"min_copies": min_copies, "max_copies": 40},
        budget={"usd_per_hour": 900.0},
        serving={"instance_types": PUBLISHED_TYPES},
    )
    plan = make_plan(loaded)

    gate = plan.gate_concurrency_per_copy.value
    point = next(point for point in plan.curve if point.concurrency == gate)
    assert point.tpot_ms <= tpot_ms + 0.01
    assert point.e2e_latency_ms <= 60_000
    assert min_copies <= plan.copy_count.value <= 40
    assert gate * plan.copy_count.value >= concurrency
    assert plan.instance_count.value * plan.copies_per_instance.value >= plan.copy_count.value
    assert plan.cost.usd_per_hour is not None
    assert plan.cost.usd_per_hour <= 900.0
    assert 1 <= plan.max_num_seqs.value <= min(plan.memory.kv_limited_batch, 256)
