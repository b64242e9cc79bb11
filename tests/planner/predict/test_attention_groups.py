"""Attention data parallelism: groups of accelerators that attend to sequences of their own and share the experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.predict.iteration_cost import costs_of
from seatrial.planner.predict.memory import experts_bytes, kv_bytes_per_token, weights_bytes, weights_on_accelerator
from seatrial.planner.predict.regime import arithmetic_intensity
from seatrial_base.catalog.engines import find_engine
from tests.planner.predict.conftest import placed

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy

SGLANG = find_engine("sglang", "")
H200 = "ml.p5en.48xlarge"
LATENT = "deepseek-ai/DeepSeek-V3"
HEADS = "Qwen/Qwen3-235B-A22B"  # 4 KV heads


def eight(hub_id: str, groups: int) -> Copy:
    return placed(
        hub_id,
        H200,
        degree=8,
        engine=SGLANG,
        quantization="fp8",
        input_tokens=1_000,
        output_tokens=1_000,
        attention_data_parallel_degree=groups,
    )


class TestMemory:
    def test_each_group_has_all_weights_but_the_experts(self) -> None:
        shape = eight(LATENT, 1).architecture
        every, experts = weights_bytes(shape, "fp8"), experts_bytes(shape, "fp8")

        alone = weights_on_accelerator(shape, "fp8", 8, attention_data_parallel_degree=8)

        assert weights_on_accelerator(shape, "fp8", 8) == every // 8
        assert alone == pytest.approx(experts / 8 + (every - experts), rel=1e-9)

    def test_a_latent_is_held_once_in_each_group_and_heads_over_its_accelerators(self) -> None:
        assert [eight(LATENT, groups).kv_bytes_per_token for groups in (1, 8)] == [61 * 576 * 2] * 2
        assert eight(HEADS, 4).kv_bytes_per_token == kv_bytes_per_token(eight(HEADS, 4).architecture, 2)

    def test_the_copy_holds_the_sequences_of_all_groups(self) -> None:
        whole, grouped = eight(LATENT, 1), eight(LATENT, 2)

        assert grouped.kv_limited_batch % 2 == 0
        assert grouped.kv_limited_batch > 1.5 * whole.kv_limited_batch


class TestDecodeStep:
    def test_each_accelerator_reads_the_weights_of_a_smaller_degree(self) -> None:
        whole, grouped = costs_of(eight(LATENT, 1)), costs_of(eight(LATENT, 4))

        assert grouped.weights == pytest.approx(4 * whole.weights)
        assert grouped.expert_weights == whole.expert_weights
        assert (grouped.head_token, grouped.expert_token) == (whole.head_token, whole.expert_token)

    def test_the_latents_of_a_batch_are_divided_among_the_groups(self) -> None:
        whole, grouped = costs_of(eight(LATENT, 1)), costs_of(eight(LATENT, 8))

        assert grouped.attention(64) == pytest.approx(whole.attention(64) / 8)

    def test_fewer_sequences_than_groups_leave_groups_idle(self) -> None:
        whole, grouped = costs_of(eight(LATENT, 1)), costs_of(eight(LATENT, 8))

        assert grouped.attention(1) == pytest.approx(whole.attention(1))

    def test_heads_that_every_group_has_gain_nothing_by_groups(self) -> None:
        halves, single = costs_of(eight(HEADS, 2)), costs_of(eight(HEADS, 8))

        assert single.attention(512) == pytest.approx(halves.attention(512))

    def test_only_the_way_to_the_experts_and_back_crosses_the_groups(self) -> None:
        whole, grouped = costs_of(eight(LATENT, 1)), costs_of(eight(LATENT, 8))

        assert grouped.link(64) == pytest.approx(whole.link(64) / 2)
        assert grouped.ranks == pytest.approx(whole.ranks / 2)


class TestPrompts:
    def test_one_prompt_is_computed_by_one_group(self) -> None:
        whole, grouped = costs_of(eight(LATENT, 1)), costs_of(eight(LATENT, 8))

        assert grouped.prompt_attention(1_000) == pytest.approx(8 * whole.prompt_attention(1_000))

    def test_as_many_prompts_as_groups_are_computed_side_by_side(self) -> None:
        whole, grouped = costs_of(eight(LATENT, 1)), costs_of(eight(LATENT, 8))

        assert grouped.prompt_attention(8_000) == pytest.approx(whole.prompt_attention(8_000))

    def test_without_groups_every_accelerator_computes_every_prompt(self) -> None:
        assert costs_of(eight(LATENT, 1)).share_of_group(1_234) == 1_234


def test_groups_read_less_cache_for_the_same_arithmetic() -> None:
    assert arithmetic_intensity(eight(LATENT, 4), 512) > arithmetic_intensity(eight(LATENT, 1), 512)
