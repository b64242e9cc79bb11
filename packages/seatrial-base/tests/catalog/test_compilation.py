"""What compiled artifacts are made for, and what makes them useless."""

from __future__ import annotations

import pytest

from seatrial_base.catalog.optimizations import BUILD_BYTES_S, CompilationKey, build_seconds, invalidated

KEY = CompilationKey(
    compiler="neuron",
    model="org/model",
    revision="4f2b1e0",
    batch_size=8,
    sequence_length=4096,
    batched_tokens=4096,
    dtype="bf16",
    quantization=None,
    degree=2,
    accelerator="AWS Inferentia2",
    framework="huggingface-vllm-inference-neuronx:0.11.0-optimum0.4.5",
)


def test_artifacts_of_an_equal_key_are_used_again() -> None:
    assert invalidated(KEY, KEY.model_copy()) == ()
    assert KEY.digest == KEY.model_copy().digest


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("revision", "abc1234", "The revision of the weights changes from 4f2b1e0 to abc1234"),
        ("batch_size", 16, "The batch size changes from 8 to 16"),
        ("sequence_length", 8192, "The sequence length changes from 4,096 to 8,192"),
        ("dtype", "fp16", "The type of the weights changes from bf16 to fp16"),
        ("quantization", "fp8", "The quantization changes from none to fp8"),
        ("degree", 8, "The tensor parallel degree changes from 2 to 8"),
        ("accelerator", "AWS Trainium2", "The accelerator changes from AWS Inferentia2 to AWS Trainium2"),
        ("framework", "other:1", f"The framework and its version changes from {KEY.framework} to other:1"),
    ],
)
def test_each_part_of_the_key_invalidates_and_is_named(field: str, value: object, told: str) -> None:
    other = KEY.model_copy(update={field: value})

    assert invalidated(KEY, other) == (f"{told}: compiled artifacts are made again.",)
    assert other.digest != KEY.digest


def test_nothing_is_compiled_anew_where_nothing_was_or_is() -> None:
    assert invalidated(None, KEY) == invalidated(KEY, None) == ()


def test_a_build_that_quantizes_reads_the_weights_twice() -> None:
    assert (build_seconds(BUILD_BYTES_S, quantizes=False), build_seconds(BUILD_BYTES_S, quantizes=True)) == (1, 2)
