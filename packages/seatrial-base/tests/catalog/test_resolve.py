"""Ids as they are published, quantized repositories included: which shape, and in which precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.catalog.models import MODELS, find_model, resolve_model, unsupported_format
from seatrial_base.catalog.precision import find_precision

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture


@pytest.mark.parametrize(
    ("name", "base", "quantization"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B", None),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B", "awq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B", "gptq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "Qwen/Qwen2.5-7B", "w8a16"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-8B", "awq"),
        ("TheBloke/Llama-2-7B-Chat-GPTQ", "meta-llama/Llama-2-7b-hf", "gptq"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "meta-llama/Llama-3.1-8B", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B", "gptq"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "meta-llama/Llama-3.1-8B", "int8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a16", "meta-llama/Llama-3.1-8B", "w8a16"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-NVFP4", "meta-llama/Llama-3.1-8B", "nvfp4"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B", "fp8"),
        ("Qwen/Qwen3-32B-FP8-Static-PerTensor", "Qwen/Qwen3-32B", "fp8"),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "meta-llama/Llama-3.1-70B", "fp8"),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "meta-llama/Llama-3.3-70B-Instruct", "nvfp4"),
        ("amd/Llama-3.1-405B-Instruct-MXFP4-Preview", "meta-llama/Llama-3.1-405B", "mxfp4"),
        ("amd/Llama-3.1-70B-Instruct-FP8-KV", "meta-llama/Llama-3.1-70B", "fp8"),
        ("openai/gpt-oss-20b", "openai/gpt-oss-20b", "mxfp4"),
        ("unsloth/gpt-oss-20b-BF16", "openai/gpt-oss-20b", None),
        ("unsloth/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", None),
        ("Llama 3.1 70B (FP8)", "meta-llama/Llama-3.1-70B", "fp8"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "fp8"),
        ("mistralai/Ministral-3-14B-Instruct-2512", "mistralai/Ministral-3-14B-Instruct-2512", "fp8"),
        ("mistralai/Ministral-3-14B-Reasoning-2512", "mistralai/Ministral-3-14B-Base-2512", None),
        ("mistralai/Mistral-Nemo-Base-2407", "mistralai/Mistral-Nemo-Instruct-2407", None),
        ("ByteDance-Seed/Seed-OSS-36B-Base", "ByteDance-Seed/Seed-OSS-36B-Instruct", None),
        ("openai/gpt-oss-safeguard-20b", "openai/gpt-oss-20b", "mxfp4"),
        ("Qwen/Qwen2.5-VL-72B-Instruct-AWQ", "Qwen/Qwen2.5-VL-72B-Instruct", "awq"),
        ("Llama 3.1 70B fp8", "meta-llama/Llama-3.1-70B", "fp8"),
    ],
)
def test_a_published_id_names_shape_and_precision(name: str, base: str, quantization: str | None) -> None:
    found = resolve_model(name)

    assert found is not None
    assert (found[0].id, found[1]) == (base, quantization)
    assert found[0].checkpoint_quantization == quantization


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", 36),
        ("Qwen/Qwen2.5-VL-3B-Instruct", 3),
        ("Qwen/Qwen2.5-VL-72B-Instruct", 72),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 7.6),  # as Qwen2.5-7B
        ("mistralai/Devstral-Small-2-24B-Instruct-2512", 23.6),
        ("mistralai/Ministral-3-14B-Base-2512", 13.5),  # with 0.4 of the vision encoder, 14
        ("mistralai/Mistral-Nemo-Instruct-2407", 12.2),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.6),
        ("zai-org/GLM-4.7-Flash", 30),
    ],
)
def test_the_counted_parameters_are_the_published_ones(name: str, billions: float) -> None:
    found = resolve_model(name)

    assert found is not None
    assert found[0].params_total == pytest.approx(billions * 1e9, rel=0.03)
    assert found[0].unknown_family is None


@pytest.mark.parametrize("name", ["someone/unheard-of-7B-AWQ", "AWQ", "-FP8", "", "(fp8)", "someone/Llama-3.1-8B"])
def test_another_name_means_nothing(name: str) -> None:
    assert resolve_model(name) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unsloth/Llama-3.3-70B-Instruct-bnb-4bit", "bitsandbytes"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-unsloth-bnb-4bit", "bitsandbytes"),
        ("unsloth/Qwen3-8B-GGUF", "GGUF"),
        ("mlx-community/Qwen3-8B-4bit", "4bit"),
        ("turboderp/Llama-3.1-8B-Instruct-exl2", "EXL2"),
    ],
)
def test_a_format_that_no_plan_knows_is_no_16_bit_model(name: str, said: str) -> None:
    assert resolve_model(name) is None
    assert unsupported_format(name) == said


@pytest.mark.parametrize("model", MODELS.rows, ids=lambda model: model.id)
def test_every_model_resolves_to_itself_in_its_own_precision(model: Architecture) -> None:
    assert resolve_model(model.id) == (model, model.checkpoint_quantization)


@given(st.sampled_from(MODELS.rows), st.sampled_from(["FP8", "AWQ", "GPTQ-Int4", "NVFP4", "MXFP4", "quantized.w8a8"]))
def test_a_suffix_changes_the_precision_and_nothing_else(model: Architecture, suffix: str) -> None:
    found = resolve_model(f"{model.id}-{suffix}")

    assert found is not None
    assert (found[0].id, found[0].params_total) == (model.id, model.params_total)
    assert find_precision(found[1]) is not None


@given(st.text(max_size=300))
def test_any_text_is_read(name: str) -> None:
    found = resolve_model(name)

    assert found is None or find_model(found[0].id) is not None
