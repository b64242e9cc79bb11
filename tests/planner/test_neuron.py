from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.comparisons import compare_instance_types
from seatrial.planner.planner import make_plan
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

LLAMA = {"hub_id": "meta-llama/Llama-3.1-8B"}


@pytest.mark.parametrize(
    ("where", "degree", "chips", "per_instance", "on_instance"),
    [("ml.inf2.xlarge", 2, 1, 1, 1), ("ml.inf2.48xlarge", 8, 4, 3, 12), ("ml.trn1.32xlarge", 16, 8, 2, 16)],
)
def test_a_degree_counts_cores_and_a_component_chips(
    where: str, degree: int, chips: int, per_instance: int, on_instance: int, ask: Ask
) -> None:
    serving = {"instance_types": [where], "overrides": {"tensor_parallel_degree": degree}}
    plan = make_plan(ask(model=LLAMA, serving=serving))

    assert (plan.engine.value, plan.instance_type.value) == ("vllm", where)
    assert (plan.tensor_parallel_degree.value, plan.accelerators_per_copy) == (degree, chips)
    assert (plan.copies_per_instance.value, plan.accelerators_per_instance) == (per_instance, on_instance)


def test_shapes_are_compiled_and_the_start_may_compile(ask: Ask) -> None:
    plan = make_plan(ask(model=LLAMA, serving={"instance_types": ["ml.inf2.xlarge"]}))

    assert plan.max_model_len.value == plan.max_num_batched_tokens.value == 1024  # 512 tokens, at least 1,024
    assert plan.max_num_seqs.value in {1, 2, 4, 8, 16, 32}
    assert plan.startup_timeout_s.value == 3600
    assert plan.volume_size_gb is not None
    assert plan.band.measured is False
    assert any("not calibrated for AWS Neuron" in warning for warning in plan.warnings)


def test_the_cache_holds_the_whole_batch_at_its_whole_length(ask: Ask) -> None:
    workload = {"input_tokens": 256, "output_tokens": 256, "concurrency": 64, "max_model_len": 8192}
    asked = ask(
        model=LLAMA, workload=workload, serving={"instance_types": ["ml.inf2.xlarge"]}, scaling={"max_copies": 8}
    )
    plan = make_plan(asked)
    memory = plan.memory

    assert plan.max_model_len.value == 8192
    assert plan.max_num_seqs.value * 8192 * memory.kv_bytes_per_token <= memory.kv_room_bytes


@pytest.mark.parametrize(
    ("serving", "rails"),
    [
        ({}, {"instance_types": ["ml.g5.2xlarge", "ml.inf2.xlarge"]}),  # the environment allows it, the spec names none
        ({"instance_types": ["ml.g5.2xlarge", "ml.inf2.xlarge"]}, {}),  # the image is for GPUs
    ],
)
def test_beside_gpus_neuron_is_never_chosen(serving: dict[str, object], rails: dict[str, object], ask: Ask) -> None:
    plan = make_plan(ask(model=LLAMA, serving=serving, rails=rails))

    assert plan.instance_type.value == "ml.g5.2xlarge"
    assert [each.instance_type for each in plan.rejected] == ["ml.inf2.xlarge"]


def test_lmi_serves_what_the_newer_image_has_no_code_for_and_says_so(ask: Ask) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(ask(model={"hub_id": "mistralai/Mistral-7B-v0.1"}, serving={"instance_types": ["ml.inf2.8xlarge"]}))

    (problem,) = caught.value.problems
    assert (problem.rule, problem.hint) == ("SEA225", "serve with serving.backend: neuronx")
    plan = make_plan(
        ask(
            model={"hub_id": "mistralai/Mistral-7B-v0.1"},
            serving={"instance_types": ["ml.inf2.8xlarge"], "backend": "neuronx"},
        )
    )
    assert (plan.engine.value, plan.engine_version.value) == ("lmi", "0.29.0-neuronx-sdk2.19.1")


def test_a_model_that_is_too_large_names_larger_neuron_types(ask: Ask) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(ask(model={"hub_id": "meta-llama/Llama-3.1-70B"}, serving={"instance_types": ["ml.inf2.xlarge"]}))

    (problem,) = caught.value.problems
    assert problem.rule in {"SEA202", "SEA203"}
    assert "ml.inf2.48xlarge" in problem.hint
    assert "fp8" not in problem.hint
    assert "ml.g5" not in problem.hint


def test_a_comparison_counts_chips(ask: Ask) -> None:
    (row,) = compare_instance_types(ask(model=LLAMA, serving={"instance_types": ["ml.inf2.48xlarge"]}))

    assert (row.accelerators, row.fits) == (12, True)
    assert row.tensor_parallel_degree in {2, 4, 8, 24}
