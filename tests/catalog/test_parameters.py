"""The counts of the catalog against what the makers published for the same weights."""

from __future__ import annotations

import pytest

from seatrial.catalog import models

# Totals of the published tensors, as the hub shows them; GPT-NeoX: the model card of EleutherAI/gpt-neox-20b.
PUBLISHED = {
    "meta-llama/Llama-2-7b-hf": 6_738_415_616,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "EleutherAI/gpt-neox-20b": 20_554_567_680,
    "google/gemma-2-9b": 9_241_705_984,
    "microsoft/phi-2": 2_779_683_840,
}
# What a name calls the size, in billions: the count must round to it, embeddings included.
NAMED = {
    "codellama/CodeLlama-34b-hf": 34,
    "mistralai/Mixtral-8x22B-v0.1": 141,
    "EleutherAI/pythia-12b": 12,
    "google/gemma-2-27b": 27,
    "google/gemma-3-1b-it": 1,
    "Qwen/Qwen1.5-4B": 4,
    "Qwen/Qwen1.5-14B": 14,
    "Qwen/Qwen1.5-72B": 72,
    "01-ai/Yi-6B": 6,
    "01-ai/Yi-34B": 34,
}


@pytest.mark.parametrize(("model_id", "published"), PUBLISHED.items())
def test_the_count_is_the_published_one(model_id: str, published: int) -> None:
    found = models.find(model_id)

    assert found is not None
    assert found.params_total == published


@pytest.mark.parametrize(("model_id", "billions"), NAMED.items())
def test_the_count_is_the_size_of_the_name(model_id: str, billions: int) -> None:
    found = models.find(model_id)

    assert found is not None
    assert round(found.params_total / 1e9) == billions
