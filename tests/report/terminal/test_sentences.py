"""The sentences of the plan's view, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.report.terminal.plan import legend, memory_sentence, price_sentence, rule_of_thumb
from seatrial.report.terminal.tables import narrow_usd
from tests.sample_plan import COST, MEMORY

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan

LLAMA_2_7B_ON_A10G = MEMORY.model_copy(
    update={"accelerator_memory_bytes": 24_000_000_000, "weights_bytes": 13_500_000_000, "kv_limited_batch": 3}
)


def test_the_rule_of_thumb_gives_the_articles_worked_example() -> None:
    # Llama 2 7B on one A10G at 4,096 tokens: (24 GB - 13.5 GB) / (0.5 MiB × 4,096) = 4.9
    assert rule_of_thumb(LLAMA_2_7B_ON_A10G, 4096) == 4


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        (
            1,
            "The KV cache holds 1 sequence of 4,096 tokens. {rule} 4: it ignores activations and the engine's reserve.",
        ),
        (4, "The KV cache holds 4 sequences of 4,096 tokens. {rule} the same."),
        (
            9,
            "The KV cache holds 9 sequences of 4,096 tokens. {rule} 4: it ignores a sliding window, a shared prefix, "
            "or attention by groups, which keep fewer tokens in each cache.",
        ),
    ],
)
def test_where_the_rule_of_thumb_differs_the_reason_is_told(batch: int, sentence: str) -> None:
    fit = LLAMA_2_7B_ON_A10G.model_copy(update={"kv_limited_batch": batch})
    rule = "The rule of thumb, (memory - weights) / (KV per token x tokens), gives"
    assert memory_sentence(fit, 4096) == sentence.format(rule=rule)


def test_a_model_too_large_gives_no_sequences_by_the_rule_of_thumb() -> None:
    assert rule_of_thumb(MEMORY.model_copy(update={"weights_bytes": 10**12}), 512) == 0


def test_the_cost_names_price_discount_and_source() -> None:
    cost = COST.model_copy(update={"discount": 0.25})
    assert price_sentence(cost) == (
        "Cost $1.515 per hour, $1.20 per million output tokens at the planned load, $0.30 per million tokens blended "
        "3:1. List price of 2026-11-21 less the spec's discount of 25 %, by hand."
    )


def test_the_legend_tells_that_the_gate_is_none_of_the_levels_and_which_knee_is_predicted(plan: Plan) -> None:
    gate = plan.gate_concurrency_per_copy.model_copy(update={"value": 12})
    between = plan.model_copy(update={"gate_concurrency_per_copy": gate})
    assert legend(between) == (
        "The gate, 12, is not among the levels; the predicted knee is K, 16 (slo: the highest load predicted to "
        "meet the SLO)."
    )


@pytest.mark.parametrize(
    ("amount", "written"), [(None, "?"), (0.0051, "$0.0051"), (9.994, "$9.994"), (10, "$10.00"), (102.437, "$102.44")]
)
def test_prices_of_a_column_are_short(amount: float | None, written: str) -> None:
    assert narrow_usd(amount) == written
