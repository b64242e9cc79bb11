"""What a plan's model is compiled for: read from the plan as it is written, by whichever release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Image
from seatrial.locks.changes import compilation_key, compiled_anew
from seatrial_base.catalog.optimizations import CompilationKey
from tests.sample_plan import decided, sample_plan

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan

NEURON = Image(uri="registry/djl-inference:0.36.0-neuronx-sdk2.26", repository="djl-inference", tag="0.36.0-neuronx")
TENSORRT = Image(uri="registry/djl:0.36.0-tensorrtllm", repository="djl-inference", tag="0.36.0-tensorrtllm0.24")


def written(image: Image, **fields: object) -> dict[str, object]:
    plan: Plan = sample_plan(image=decided(image), **fields)
    return plan.model_dump(mode="json")


@pytest.mark.parametrize(
    ("image", "compiler", "framework"),
    [
        (NEURON, "neuron", "djl-inference:0.36.0-neuronx"),
        (TENSORRT, "trtllm", "djl-inference:0.36.0-tensorrtllm0.24"),
    ],
)
def test_everything_that_an_artifact_is_made_for_is_read(image: Image, compiler: str, framework: str) -> None:
    key = compilation_key(written(image, quantization="fp8", tensor_parallel_degree=decided(2)), "abc")
    assert key == CompilationKey.model_validate(
        {
            "compiler": compiler,
            "model": "Llama-2-7b-chat-hf",
            "revision": "abc",
            "batch_size": 24,
            "sequence_length": 4096,
            "batched_tokens": 4096,
            "dtype": "fp16",
            "quantization": "fp8",
            "degree": 2,
            "accelerator": "NVIDIA A10G",
            "framework": framework,
        }
    )


def test_an_instance_type_that_the_catalog_lacks_is_an_accelerator_of_its_own() -> None:
    key = compilation_key(written(NEURON, instance_type=decided("ml.trn9.48xlarge")))
    assert key is not None
    assert key.accelerator == "ml.trn9.48xlarge"


def test_other_engines_compile_nothing() -> None:
    assert compilation_key(sample_plan().model_dump(mode="json")) is None


@pytest.mark.parametrize("missing", ["image", "max_num_seqs", "dtype", "model_name"])
def test_a_plan_that_says_too_little_has_no_key(missing: str) -> None:
    plan = written(NEURON)
    del plan[missing]
    assert compilation_key(plan) is None


def test_what_changes_is_made_anew_and_what_was_not_compiled_is_not() -> None:
    before, after = written(NEURON), written(NEURON, dtype=decided("bf16"))
    (sentence,) = compiled_anew(before, after)
    assert "type of the weights" in sentence
    assert compiled_anew(before, before) == ()
    assert compiled_anew({}, after) == ()
