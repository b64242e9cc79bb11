"""The assumed costs of AWS Neuron beside public runs of optimum-neuron (benchmark/vllm, v0.4.5 and 213224e6).

The runs are guidellm's: 1,500 + 250 tokens, one request at a time (`synchronous`), on EC2. They are no data of
SageMaker, so they fit nothing; they say that the assumption is of the right size.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from seatrial.catalog import engines, instances, models, neuron
from seatrial.predict.band import ON_NEURON, band_of
from seatrial.predict.closed_form import Limit, predict
from seatrial.predict.copy_model import Copy, hardware_of, place
from seatrial.predict.iteration_cost import costs_of
from seatrial.predict.memory import fit_memory
from seatrial.predict.regime import launches

ENGINE = engines.find("neuron", "0.4.5")


def copy_of(model: str, where: str, degree: int, batch: int, length: int = 4096) -> Copy:
    architecture, instance = models.find(model), instances.find(where)
    assert architecture is not None
    assert instance is not None
    cores = neuron.in_cores(instance)
    hardware = hardware_of(cores)
    assert hardware is not None
    memory = fit_memory(
        architecture, cores, ENGINE, degree=degree, quantization=None, tokens=length, batched_tokens=length
    )
    return place(
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
    ("model", "where", "degree", "batch", "tpot_ms", "ttft_ms"),
    [
        ("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", 8, 32, 24.5, 322),
        ("meta-llama/Llama-3.1-8B", "ml.trn2.48xlarge", 4, 32, 22.1, 197),
        ("Qwen/Qwen3-32B", "ml.trn2.48xlarge", 4, 2, 32.1, 771),
    ],
)
def test_a_request_alone_is_within_the_band_of_public_runs(
    model: str, where: str, degree: int, batch: int, tpot_ms: float, ttft_ms: float
) -> None:
    found = predict(copy_of(model, where, degree, batch), 1)

    assert 1 / (1 + ON_NEURON) < found.tpot_ms / tpot_ms < 1 + ON_NEURON
    assert 1 / (1 + ON_NEURON) < found.ttft_ms / ttft_ms < 1 + ON_NEURON


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

    assert predict(copy, 1).limit == Limit.MEMORY
    assert predict(copy, 64).limit == Limit.BATCH_LIMIT
    assert not launches(copy, 1)


def test_the_band_is_wide_and_says_that_nothing_was_measured() -> None:
    architecture, instance = models.find("meta-llama/Llama-3.1-8B"), instances.find("ml.inf2.xlarge")
    assert architecture is not None
    assert instance is not None
    band = band_of(ENGINE, "0.4.5", architecture, instance)

    assert (band.throughput, band.latency, band.measured) == (ON_NEURON, ON_NEURON, False)
    assert "not calibrated for AWS Neuron" in band.because
