"""Engines, versions, precisions and accelerators in the spellings that people publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.tables.published_names import (
    engine_within,
    is_precision,
    is_tag,
    precision_within,
    read_engine_name,
    read_engine_version,
    read_kv_precision,
    read_place,
    read_precision,
)
from seatrial_base.catalog.models import resolve_model

if TYPE_CHECKING:
    from seatrial_base.catalog.engines import Family


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("vLLM", ("vllm", "")),
        ("vLLM V1", ("vllm", "")),
        ("vllm/vllm-openai:v0.17.0", ("vllm", "v0.17.0")),
        ("SGLang", ("sglang", "")),
        ("TensorRT-LLM", ("trtllm", "")),
        ("TRT-LLM 1.0.0rc3", ("trtllm", "1.0.0rc3")),
        ("trt", ("trtllm", "")),
        ("text-generation-inference", ("tgi", "")),
        ("huggingface-tgi", ("tgi", "")),
        ("tgi-1.1", ("tgi", "1.1")),
        ("djl-lmi", ("lmi", "")),
        ("LMI V15", ("lmi", "v15")),
        ("triton-2.0", None),
        ("llama.cpp", None),
        ("", None),
        ("8", None),
    ],
)
def test_an_engine_in_any_spelling(text: str, named: tuple[str, str] | None) -> None:
    assert read_engine_name(text) == named


@pytest.mark.parametrize(
    ("family", "text", "version"),
    [
        ("vllm", "0.17.0", "0.17.0"),
        ("vllm", "v0.11", "0.11"),
        ("vllm", "nightly-5b8c30d6", ""),
        ("vllm", "nightly-dev-20260402-d7256eb6", ""),
        ("vllm", "", ""),
        ("vllm", "vllm/vllm-openai:v0.17.0-cu12", "0.17.0-cu12"),
        ("sglang", "0.5.6.post2", "0.5.6.post2"),
        ("trtllm", "1.2.0rc2.post2", "1.2.0rc2.post2"),
        ("tgi", "1", "1.0"),
        ("lmi", "0.33.0-lmi15.0.0", "15"),
        ("lmi", "v15", "15"),
        ("sglang", "0.5.9 (cu130)", "0.5.9"),
        ("vllm", "n/a", ""),
    ],
)
def test_a_version_as_people_write_it(family: str, text: str, version: str) -> None:
    named = read_engine_name(family)
    assert named is not None
    found = read_engine_version(named[0], text)

    assert found is not None
    assert (found.facts.family, found.version) == (family, version)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("dynamo-trtllm 1.2.0rc2", ("trtllm", "1.2.0rc2")),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2", ("trtllm", "1.2")),
        ("vLLM (nightly)", ("vllm", "")),
        ("vllm or sglang", None),
        ("vllminference", None),
        ("", None),
    ],
)
def test_one_engine_among_other_words(text: str, named: tuple[str, str] | None) -> None:
    assert engine_within(text) == named


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("w4a8_mxfp4_fp8", "mxfp4"),
        ("modelopt_fp4", "fp4"),
        ("bf16+fp8", "fp8"),
        ("w4afp8", "int4"),
        ("mxfp8", "fp8"),
        ("int3", None),
    ],
)
def test_the_narrowest_precision_among_other_words(text: str, precision: str | None) -> None:
    assert precision_within(text) == precision


@pytest.mark.parametrize("text", ["x", "nan", "new", "+"])
def test_what_names_no_version(text: str) -> None:
    assert read_engine_version("vllm", text) is None


@pytest.mark.parametrize(
    ("model", "text", "quantization"),
    [
        ("meta-llama/Llama-3.1-8B", "", None),
        ("meta-llama/Llama-3.1-8B", "float16", None),
        ("meta-llama/Llama-3.1-8B", "FP8-dynamic", "fp8"),
        ("meta-llama/Llama-3.1-8B", "w8a8", "int8"),
        ("meta-llama/Llama-3.1-8B", "w8a16", "w8a16"),
        ("meta-llama/Llama-3.1-8B", "int8_wo", "w8a16"),
        ("meta-llama/Llama-3.1-8B", "gptq-int8", "w8a16"),
        ("meta-llama/Llama-3.1-8B", "int4", "gptq"),
        ("meta-llama/Llama-3.1-8B", "w4a16", "gptq"),
        ("meta-llama/Llama-3.1-8B", "AWQ", "awq"),
        ("meta-llama/Llama-3.1-8B", "fp4", "nvfp4"),
        ("openai/gpt-oss-20b", "fp4", "mxfp4"),
        ("openai/gpt-oss-20b", "", "mxfp4"),
        ("openai/gpt-oss-20b", "bf16", None),
        ("Qwen/Qwen3-32B-FP8", "", "fp8"),
    ],
)
def test_a_precision_in_any_spelling(model: str, text: str, quantization: str | None) -> None:
    found = resolve_model(model)
    assert found is not None

    assert is_precision(text)
    assert read_precision(text, *found) == quantization


@pytest.mark.parametrize("text", ["int3", "fp32", "nf4", "best"])
def test_what_is_no_precision(text: str) -> None:
    assert not is_precision(text)
    assert read_kv_precision(text, "vllm", None) is None


@pytest.mark.parametrize(
    ("text", "family", "quantization", "stored"),
    [
        ("", "vllm", "fp8", "16bit"),
        ("auto", "trtllm", "fp8", "fp8"),
        ("", "trtllm", None, "16bit"),
        ("BF16", "trtllm", "nvfp4", "16bit"),
        ("fp8_e4m3", "sglang", None, "fp8"),
    ],
)
def test_the_kv_cache_is_what_the_cell_or_the_engine_says(
    text: str, family: Family, quantization: str | None, stored: str
) -> None:
    assert read_kv_precision(text, family, quantization) == stored


@pytest.mark.parametrize(
    ("text", "accelerators", "instance_type"),
    [
        ("ml.g6e.12xlarge", 1, "ml.g6e.12xlarge"),
        ("G6e.12xlarge", 4, "ml.g6e.12xlarge"),
        ("L40S", 1, "ml.g6e.xlarge"),
        ("L40S", 2, "ml.g6e.12xlarge"),
        ("4x L40S", 1, "ml.g6e.12xlarge"),
        ("A100 SXM4 80GB", 2, "ml.p4de.24xlarge"),
        ("NVIDIA A100-SXM4-40GB", 8, "ml.p4d.24xlarge"),
        ("H100", 1, "ml.p5.4xlarge"),
        ("NVIDIA H100 80GB HBM3", 2, "ml.p5.48xlarge"),
        ("Tesla T4", 1, "ml.g4dn.xlarge"),
        ("H100 SXM", 8, "ml.p5.48xlarge"),
        ("8xH100", 1, "ml.p5.48xlarge"),
        ("B200 180GB", 8, "ml.p6-b200.48xlarge"),
        ("A10G", 1, "ml.g5.xlarge"),
        ("L4", 1, "ml.g6.xlarge"),
        ("RTX PRO 6000", 1, "ml.g7e.2xlarge"),
        ("p5en", 8, "ml.p5en.48xlarge"),
        ("ml.p6-b200", 8, "ml.p6-b200.48xlarge"),
        ("p5", 1, "ml.p5.4xlarge"),
        ("DGX H100", 8, "ml.p5.48xlarge"),
        ("NVIDIA B300 SXM6 AC", 8, "ml.p6-b300.48xlarge"),
    ],
)
def test_an_accelerator_is_the_smallest_instance_type_that_has_enough(
    text: str, accelerators: int, instance_type: str
) -> None:
    (place,) = read_place(text)
    found = place.smallest(accelerators)

    assert found is not None
    assert found.instance_type == instance_type


@pytest.mark.parametrize(
    "text", ["A100 PCIe 80GB", "H100 PCIe", "H100 NVL", "H100 96GB", "GH200", "A10", "L40", "6000", "rtx pro", "", "gb"]
)
def test_an_accelerator_that_no_instance_type_has(text: str) -> None:
    assert read_place(text) == ()


def test_a_name_that_means_two_accelerators_is_not_guessed() -> None:
    assert {place.accelerator for place in read_place("A100")} == {"NVIDIA A100 40GB SXM4", "NVIDIA A100 80GB SXM4"}
    assert {place.accelerator for place in read_place("p6")} == {"NVIDIA B200 SXM", "NVIDIA B300 SXM"}


@given(st.text(max_size=40))
def test_any_text_is_read_or_is_not(text: str) -> None:
    read_place(text)
    read_kv_precision(text, "vllm", None)
    named = read_engine_name(text)
    assert named is None or read_engine_version(named[0], "") is not None


@pytest.mark.parametrize("tag", ["gpt-oss-dev", "glm5-hopper", "deepseek-preview"])
def test_a_containers_tag_is_the_newest_version(tag: str) -> None:
    found = read_engine_version("vllm", tag)

    assert is_tag(tag)
    assert found == read_engine_version("vllm", "latest")


@pytest.mark.parametrize("text", ["", "0.11.0", "v0.17.0", "nightly-5b8c30d6", "new", "?"])
def test_a_release_a_nightly_build_and_a_word_are_no_tags(text: str) -> None:
    assert not is_tag(text)
