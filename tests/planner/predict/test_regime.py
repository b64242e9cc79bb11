from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.predict.closed_form import mean_step, predict_at
from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.iteration_cost import costs_of
from seatrial.planner.predict.memory import fit_memory
from seatrial.planner.predict.regime import growth_limit, regime_of
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_base.catalog.operators import find_operator

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy

LLAMA_2_7B = "meta-llama/Llama-2-7b-hf"


def copy_on(
    instance_type: str,
    degree: int,
    *,
    model: str = LLAMA_2_7B,
    quantization: str | None = None,
    input_tokens: int = 256,
    max_num_seqs: int = 1_000,
) -> Copy:
    engine, architecture, instance = find_engine("tgi", "1.1.0"), find_model(model), find_instance(instance_type)
    assert architecture is not None
    assert instance is not None
    hardware = hardware_of(instance, quantization)
    assert hardware is not None
    memory = fit_memory(
        architecture,
        instance,
        engine,
        degree=degree,
        quantization=quantization,
        tokens=input_tokens + 256,
        batched_tokens=4_096,
    )
    return place_copy(
        architecture,
        hardware,
        engine,
        memory,
        degree=degree,
        quantization=quantization,
        input_tokens=input_tokens,
        output_tokens=256,
        batched_tokens=4_096,
        max_num_seqs=max_num_seqs,
    )


class TestNumbers:
    def test_the_critical_batch_size_is_the_article_s(self) -> None:
        # 70 TFLOPS over 600 GB/s: 116.7 operations a byte, and 16-bit weights are two bytes for two operations
        assert regime_of(copy_on("ml.g5.2xlarge", 1), 1, []).critical_batch_size == 116

    def test_a_mixture_of_experts_has_a_larger_one_because_it_reads_all_of_them(self) -> None:
        mixtral = regime_of(copy_on("ml.p4d.24xlarge", 8, model="mistralai/Mixtral-8x7B-v0.1"), 1, [])
        llama = regime_of(copy_on("ml.p4d.24xlarge", 8), 1, [])

        assert mixtral.critical_batch_size == pytest.approx(llama.critical_batch_size * 46.7 / 12.9, rel=0.01)

    def test_quantized_weights_have_a_smaller_one(self) -> None:
        plain, quantized = copy_on("ml.g5.2xlarge", 1), copy_on("ml.g5.2xlarge", 1, quantization="awq")

        assert regime_of(quantized, 1, []).critical_batch_size < regime_of(plain, 1, []).critical_batch_size

    def test_a_single_request_does_about_one_operation_per_byte(self) -> None:
        # two operations for the two bytes of each weight; attention adds two for the four bytes of a key and a value
        assert regime_of(copy_on("ml.g5.2xlarge", 1), 1, []).arithmetic_intensity_flops_per_byte == pytest.approx(
            1, abs=0.05
        )

    def test_the_balance_is_what_the_engine_reaches_of_the_data_sheet(self) -> None:
        copy = copy_on("ml.g5.2xlarge", 1)
        product = find_operator("NVIDIA A10G", "product", None)
        reached = 70e12 * product.compute_efficiency / (600e9 * product.memory_efficiency)

        assert regime_of(copy, 1, []).machine_balance_flops_per_byte == pytest.approx(reached)

    @given(st.integers(1, 500))
    def test_more_in_flight_never_lowers_the_intensity(self, gate: int) -> None:
        copy = copy_on("ml.g5.12xlarge", 4)
        lower, higher = regime_of(copy, gate, []), regime_of(copy, gate + 1, [])

        assert higher.arithmetic_intensity_flops_per_byte >= lower.arithmetic_intensity_flops_per_byte


class TestLevels:
    @given(st.integers(1, 1_000))
    def test_shares_add_up_and_the_limit_is_the_curve_s(self, concurrency: int) -> None:
        copy = copy_on("ml.g5.2xlarge", 1)
        (level,) = regime_of(copy, 1, [concurrency]).per_level

        assert level.concurrency == concurrency
        assert level.bound_by == predict_at(copy, concurrency).limit
        assert sum(share for _, share in level.share_of_step) == pytest.approx(1)

    def test_a_small_instance_is_bound_by_memory_until_its_kv_room_is_full(self) -> None:
        found = regime_of(copy_on("ml.g5.2xlarge", 1), 1, [1, 8, 128])

        assert [level.bound_by for level in found.per_level] == ["memory", "memory", "kv"]


class TestSentences:
    def test_memory_and_a_full_kv_room(self) -> None:
        copy = copy_on("ml.g5.2xlarge", 1)
        found, step = regime_of(copy, 1, []), mean_step(copy, 1)

        assert (found.bound_by, found.growth_limit) == ("memory", "kv")
        assert found.sentence == (
            f"At 1 request in flight a step of {step.total * 1e3:.1f} ms is bound by memory: reading weights and KV "
            f"cache takes {step.memory / step.total:.0%} of it. "
            f"The KV cache holds {copy.kv_limited_batch} sequences; further requests wait."
        )

    def test_the_host_and_its_work_on_every_request(self) -> None:
        copy = copy_on("ml.p4d.24xlarge", 8)
        found, step, full = regime_of(copy, 1, []), mean_step(copy, 1), growth_limit(copy)[1]

        assert (found.bound_by, found.growth_limit) == ("host", "host")
        assert found.sentence == (
            f"At 1 request in flight a step of {step.total * 1e3:.1f} ms is bound by the host: launching kernels takes "
            f"{costs_of(copy).host * 1e3:.1f} ms of every step, at any batch size. "
            f"Beyond {full} requests in flight, a further request mostly adds server work."
        )

    def test_the_server_once_its_work_is_longer_than_the_launches(self) -> None:
        copy = copy_on("ml.p4d.24xlarge", 8)

        assert "bound by the host: server work on sequences and prompts takes " in (regime_of(copy, 220, []).sentence)

    def test_long_prompts_wait_for_their_admission(self) -> None:
        copy = copy_on("ml.p4d.24xlarge", 8, input_tokens=3_840)
        found = regime_of(copy, 64, [])

        assert found.bound_by == found.growth_limit == "admission"
        assert found.sentence.startswith("At 64 requests in flight, of which 14 run at once, a step of ")
        assert found.sentence.endswith(
            " The engine admits 1 prompt every 20 decode steps, so 14 sequences run; further requests wait."
        )

    def test_a_batch_limit_is_told_beside_what_keeps_throughput_from_growing(self) -> None:
        copy = copy_on("ml.g5.12xlarge", 4, max_num_seqs=32)
        found = regime_of(copy, 64, [])

        assert (found.bound_by, found.growth_limit) == ("batch limit", "link")
        assert found.sentence.endswith(
            " The engine batches at most 32 sequences; further requests wait. Beyond 16 requests in flight, a further "
            "request mostly adds all-reduce traffic."
        )

    def test_a_batch_of_one(self) -> None:
        found = regime_of(replace(copy_on("ml.g5.2xlarge", 1), max_num_seqs=1), 1, [])

        assert found.sentence.endswith(" The engine batches at most 1 sequence; further requests wait.")

    def test_an_engine_that_mixes_prompts_into_its_steps(self) -> None:
        plain = copy_on("ml.p4d.24xlarge", 8, input_tokens=3_840)
        copy = replace(plain, engine=find_engine("lmi", "15"), batched_tokens=256)

        assert (
            " The engine takes 256 tokens an iteration, so 16 sequences run; further requests wait."
            in regime_of(copy, 64, []).sentence
        )
