"""What the catalog knows of drafts: rates with their provenance, and heads built from the model's shape."""

from __future__ import annotations

from typing import get_args

import pytest

from seatrial_base.bounds import DEFAULT_DRAFT_COST
from seatrial_base.catalog.models import find_model
from seatrial_base.catalog.speculation import Method, assumed, draft_of

QWEN = "Qwen/Qwen3-32B"
METHODS: tuple[Method, ...] = get_args(Method)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_default_that_says_that_it_is_assumed(method: Method) -> None:
    facts = assumed(method, "nobody/knows-it", "nobody/knows-the-draft")

    assert facts.provenance == "assumed"
    assert facts.source
    assert facts.draft_tokens >= 1
    assert 0 < facts.acceptance_rate < 1
    assert facts.draft_cost == (0.0 if method == "ngram" else DEFAULT_DRAFT_COST)


@pytest.mark.parametrize(
    ("method", "model", "provenance"),
    [
        ("eagle3", QWEN, "fitted"),
        ("eagle3", "meta-llama/Llama-3.1-8B-Instruct", "published"),
        ("eagle3", "openai/gpt-oss-20b", "published"),
        ("eagle3", "openai/gpt-oss-120b", "published"),
        ("eagle3", "Qwen/Qwen3-30B-A3B", "assumed"),
        ("draft_model", QWEN, "assumed"),
    ],
)
def test_a_rate_counts_as_measured_on_its_own_model_only(method: Method, model: str, provenance: str) -> None:
    assert assumed(method, model).provenance == provenance


@pytest.mark.parametrize(
    ("model", "drafted", "mean_length"),
    [
        ("openai/gpt-oss-120b", 7, 2.76),
        ("openai/gpt-oss-20b", 7, 2.63),
        ("meta-llama/Llama-3.1-8B", 7, 3.53),
        ("MiniMaxAI/MiniMax-M3", 4, 3.11),
    ],
)
def test_a_published_rate_gives_the_published_length(model: str, drafted: int, mean_length: float) -> None:
    rate = assumed("eagle3", model).acceptance_rate

    assert sum(rate**accepted for accepted in range(drafted + 1)) == pytest.approx(mean_length, abs=0.01)


def test_a_draft_model_costs_its_share_of_the_bytes() -> None:
    small, target = find_model("Qwen/Qwen3-0.6B"), find_model(QWEN)

    assert small is not None
    assert target is not None
    facts = assumed("draft_model", QWEN, "Qwen/Qwen3-0.6B")
    assert facts.draft_cost == pytest.approx(small.params_active / target.params_active)
    draft = draft_of("draft_model", target, "Qwen/Qwen3-0.6B")
    assert draft is not None
    assert draft.weights_bytes == 2 * small.params_total


def test_an_eagle3_head_has_one_layer_and_a_small_vocabulary() -> None:
    target = find_model(QWEN)

    assert target is not None
    head = draft_of("eagle3", target)
    assert head is not None
    assert (head.shape.layers, head.shape.vocab) == (1, 32_000)
    assert head.weights_bytes / 1e9 == pytest.approx(1.57, abs=0.02)  # 0.78 billion parameters at 16 bits
    eagle = draft_of("eagle", target)
    assert eagle is not None
    assert eagle.weights_bytes < 2 * eagle.shape.params_total  # the output embedding is the model's own


@pytest.mark.parametrize("method", ["ngram", "medusa", "draft_model"])
def test_nothing_is_built_where_no_shape_is_known(method: Method) -> None:
    target = find_model(QWEN)

    assert target is not None
    assert draft_of(method, target, "nobody/knows-it") is None
