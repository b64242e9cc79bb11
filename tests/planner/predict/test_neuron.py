"""The assumed costs of AWS Neuron beside public runs of optimum-neuron (benchmark/vllm, v0.4.5 and 213224e6).

The runs are guidellm's: 1,500 + 250 tokens, on EC2: one request at a time
(`synchronous`), and as many as they take (`throughput`). The assumptions were chosen near them; they are no data of
SageMaker, so the band stays an assumption.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from seatrial.documents.prediction import Limit
from seatrial.planner.predict.band import ON_NEURON, band_of
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.copy_model import Copy, hardware_of, place_copy
from seatrial.planner.predict.iteration_cost import costs_of
from seatrial.planner.predict.memory import fit_memory
from seatrial.planner.predict.regime import launches
from seatrial_base.catalog import neuron
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

ENGINE = find_engine("neuron", "0.4.5")


def copy_of(model: str, where: str, degree: int, batch: int, length: int = 4096) -> Copy:
    architecture, instance = find_model(model), find_instance(where)
    assert architecture is not None
    assert instance is not None
    cores = neuron.in_cores(instance)
    hardware = hardware_of(cores)
    assert hardware is not None
    memory = fit_memory(
        architecture, cores, ENGINE, degree=degree, quantization=None, tokens=length, batched_tokens=length
    )
    return place_copy(
        architecture,
        hardware,
        ENGINE,
        memory,
        degree=degree,
        quantization=None,
        input_tokens=1500,
        output_tokens=250,
        batched_tokens=length,
        max_num_seqs=batch,
        prefix_hit_rate=0.5,
        max_model_len=length,
    )


@pytest.mark.parametrize(
    ("model", "where", "degree", "batch", "users", "tpot_ms", "ttft_ms", "output_tok_s"),
    [
        ("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", 8, 32, 32, 24.5, 322, 426),  # chunked-prefill/std-ods.csv
        ("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", 8, 32, 43, 26.6, 475, 409),  # dp3: one of 3 servers
        ("meta-llama/Llama-3.1-8B", "ml.trn2.48xlarge", 4, 32, 128, 22.1, 197, 579),
        ("Qwen/Qwen3-32B", "ml.trn2.48xlarge", 4, 2, 8, 32.1, 771, 28.3),
        ("Qwen/Qwen3-30B-A3B", "ml.trn2.48xlarge", 4, 16, 64, 56.4, 1547, 89.2),
        ("Qwen/Qwen3-30B-A3B", "ml.trn1.32xlarge", 32, 8, 32, 23.9, 2405, 65.7),
        ("Qwen/Qwen3-235B-A22B", "ml.trn2.48xlarge", 64, 4, 16, 32.2, 4587, 27.9),
    ],
)
def test_public_runs_are_within_the_band(
    model: str,
    where: str,
    degree: int,
    batch: int,
    users: int,
    tpot_ms: float,
    ttft_ms: float,
    output_tok_s: float,
) -> None:
    copy = copy_of(model, where, degree, batch)
    alone, full = predict_at(copy, 1), predict_at(copy, users)
    ratios = (alone.tpot_ms / tpot_ms, alone.ttft_ms / ttft_ms, full.output_tok_s / output_tok_s)

    assert all(1 / (1 + ON_NEURON) < ratio < 1 + ON_NEURON for ratio in ratios)


def test_narrow_slices_of_experts_leave_a_core_idle() -> None:
    wide = costs_of(copy_of("Qwen/Qwen3-30B-A3B", "ml.trn1.32xlarge", 8, 4))
    narrow = costs_of(copy_of("Qwen/Qwen3-30B-A3B", "ml.trn1.32xlarge", 32, 4))

    assert narrow.expert_token == pytest.approx(wide.expert_token, rel=0.01)  # four times the cores, a quarter filled


def test_a_step_costs_the_compiled_batch_whatever_runs() -> None:
    costs = costs_of(copy_of("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", 8, 32))
    smaller = costs_of(copy_of("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", 8, 4))

    assert costs.step(1) == costs.step(32) > smaller.step(1) == smaller.step(4)
    assert (costs.attention(1), costs.prefill(1, 10)) == (0.0, costs.prefill(1, 4096))


def test_a_prompt_is_filled_up_and_taken_alone() -> None:
    copy = copy_of("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", 8, 32)
    longer = replace(copy, compiled_length=8192)

    assert (copy.prompts_per_prefill, copy.tokens_reserved, longer.tokens_reserved) == (1, 4096, 8192)
    assert copy.prefix_hit_rate == 0.0  # there is no prefix cache
    assert costs_of(longer).prefill(1, 1500) > 1.9 * costs_of(copy).prefill(1, 1500)


def test_it_is_bound_by_memory_or_arithmetic_not_by_a_host_that_launches() -> None:
    copy = copy_of("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", 8, 32)

    assert predict_at(copy, 1).limit == Limit.MEMORY
    assert predict_at(copy, 64).limit == Limit.BATCH_LIMIT
    assert not launches(copy, 1)


def test_the_band_is_wide_and_says_that_nothing_was_measured() -> None:
    architecture, instance = find_model("meta-llama/Llama-3.1-8B"), find_instance("ml.inf2.xlarge")
    assert architecture is not None
    assert instance is not None
    band = band_of(ENGINE, "0.4.5", architecture, instance)

    assert (band.throughput, band.latency, band.measured) == (ON_NEURON, ON_NEURON, False)
    assert "not calibrated for AWS Neuron" in band.because
