from __future__ import annotations

import pytest

from seatrial.catalog.models import quantized_base


@pytest.mark.parametrize(
    ("name", "base", "method"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B", "awq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B", "gptq"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-8B", "awq"),
        ("TheBloke/Llama-2-7B-Chat-GPTQ", "meta-llama/Llama-2-7b-hf", "gptq"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "meta-llama/Llama-3.1-8B", "fp8"),
    ],
)
def test_a_quantized_repository_names_its_base(name: str, base: str, method: str) -> None:
    found = quantized_base(name)
    assert found is not None
    assert (found[0].id, found[1]) == (base, method)


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-7B-Instruct", "someone/unheard-of-7B-AWQ", "AWQ"])
def test_another_name_has_no_base(name: str) -> None:
    assert quantized_base(name) is None
