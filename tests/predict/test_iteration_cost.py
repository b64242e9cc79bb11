from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.catalog import accelerators, engines, instances
from seatrial.predict.copy_model import Calibration, Speculation
from seatrial.predict.iteration_cost import costs_of

if TYPE_CHECKING:
    from seatrial.predict.copy_model import Copy
    from tests.predict.conftest import PlaceCopy

FITTED = engines.find("tgi", "1.1.0").performance
WEIGHTS = 2 * (6_738_415_616 - 32_000 * 4_096)  # the input embedding is looked up, not read
BANDWIDTH = 600e9 * FITTED.memory_efficiency


def with_bandwidth(copy: Copy, bytes_s: float) -> Copy:
    return replace(copy, hardware=replace(copy.hardware, memory_bandwidth_bytes_s=bytes_s))


def test_a_step_of_a_small_batch_reads_the_weights(copy_of: PlaceCopy) -> None:
    costs = costs_of(copy_of())

    assert costs.weights == pytest.approx(WEIGHTS / BANDWIDTH)
    assert costs.step(1) == pytest.approx(costs.weights + FITTED.sequence_s)


def test_a_step_never_beats_the_host_that_launches_its_kernels(copy_of: PlaceCopy) -> None:
    costs = costs_of(copy_of(instance_type="ml.p4d.24xlarge", degree=8))

    launches = 32 * (FITTED.kernels + 2)  # two all-reduces a layer
    slowdown = FITTED.slowdown("ml.p4d.24xlarge")
    assert slowdown > 1
    assert costs.host == pytest.approx(launches * FITTED.kernel_launch_s * slowdown)
    assert costs.step(1) == pytest.approx(costs.host + FITTED.sequence_s * slowdown)


def test_a_large_batch_is_bound_by_arithmetic(copy_of: PlaceCopy) -> None:
    costs = costs_of(copy_of())

    assert costs.device(500) == pytest.approx(2 * 6_738_415_616 * 500 / (70e12 * FITTED.compute_efficiency))


def test_the_cache_is_read_at_the_bandwidth_once_the_batch_fills_the_accelerator(copy_of: PlaceCopy) -> None:
    costs = costs_of(copy_of())

    assert costs.attention(100) == pytest.approx(524_288 / BANDWIDTH)
    assert costs.attention(1) == pytest.approx(32 * FITTED.attention_token_s)
    assert costs.attention(1) > costs.attention(100)


def test_a_head_is_read_at_the_bandwidth_of_one_multiprocessor(copy_of: PlaceCopy) -> None:
    a10g = costs_of(copy_of()).attention_latency
    a100 = costs_of(copy_of(instance_type="ml.p4d.24xlarge", degree=8)).attention_latency

    assert a10g / a100 == pytest.approx((1_555e9 / 108) / (600e9 / 80))


def test_an_all_reduce_crosses_the_link_twice_a_layer_and_once_in_falcon(copy_of: PlaceCopy) -> None:
    llama = costs_of(copy_of(instance_type="ml.g5.12xlarge", degree=4)).link(1)
    falcon = costs_of(copy_of("tiiuae/falcon-40b", "ml.g5.12xlarge", degree=4)).link(1)

    hops, share = 3 * FITTED.hop_s, 2 * 3 / 4
    assert llama == pytest.approx(2 * 32 * (hops + share * 2 * 4_096 / FITTED.pcie_bytes_s))
    assert falcon == pytest.approx(60 * (hops + share * 2 * 8_192 / FITTED.pcie_bytes_s))


def test_pcie_is_shared_past_four_accelerators(copy_of: PlaceCopy) -> None:
    eight = costs_of(copy_of(instance_type="ml.g5.48xlarge", degree=8))

    assert eight.all_reduce_token == pytest.approx(2 * 32 * 2 * 7 / 8 * 2 * 4_096 / (FITTED.pcie_bytes_s / 2))


def test_a_single_accelerator_reduces_nothing(copy_of: PlaceCopy) -> None:
    assert costs_of(copy_of()).link(1_000) == 0.0


def test_a_prefill_is_arithmetic_and_the_servers_work_per_token(copy_of: PlaceCopy) -> None:
    costs = costs_of(copy_of())

    attention = 2 * 32 * 32 * 128 * 256 * 256
    arithmetic = (2 * 6_738_415_616 * 256 + attention) / (70e12 * FITTED.compute_efficiency)
    assert costs.prefill(1, 256) == pytest.approx(arithmetic + 256 * FITTED.input_token_s + FITTED.sequence_s)


def test_a_prefill_of_one_token_still_reads_the_weights(copy_of: PlaceCopy) -> None:
    costs = costs_of(copy_of(input_tokens=1))

    assert costs.prefill(1, 1) > costs.weights


def test_a_mixture_reads_more_of_its_experts_as_the_batch_grows(copy_of: PlaceCopy) -> None:
    engine = engines.find("lmi", "0.36.0")
    costs = costs_of(copy_of("mistralai/Mixtral-8x7B-v0.1", "ml.p4de.24xlarge", degree=2, engine=engine))

    active, total = 12_879_925_248, 46_702_792_704
    experts = (total - active) / (1 - 2 / 8)
    assert costs.expert_weights / (costs.weights + costs.expert_weights) == pytest.approx(experts / total)
    assert costs.read(1) == pytest.approx(costs.weights + costs.expert_weights * 2 / 8)
    assert costs.read(2) == pytest.approx(costs.weights + costs.expert_weights * (1 - 0.75**2))


def test_tgi_computes_every_expert_of_a_small_batch(copy_of: PlaceCopy) -> None:
    costs = costs_of(copy_of("mistralai/Mixtral-8x7B-v0.1", "ml.p4d.24xlarge", degree=8))

    assert costs.read(1) == costs.weights + costs.expert_weights
    assert costs.arithmetic(256) == pytest.approx(256 * costs.token * 8 / 2)
    assert costs.arithmetic(257) == pytest.approx(257 * costs.token)


def test_drafted_tokens_are_verified_in_one_step_and_cost_a_share_of_it(copy_of: PlaceCopy) -> None:
    plain = copy_of()
    drafted = replace(plain, speculation=Speculation(draft_tokens=3, acceptance_rate=0.5, draft_cost=0.1))

    assert drafted.tokens_per_step == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    assert drafted.decode_steps == 136  # 255 / 1.875
    step, drafting = costs_of(plain).step(1), costs_of(drafted).step(1)
    assert drafting - FITTED.sequence_s == pytest.approx(1.3 * (step - FITTED.sequence_s))


def test_a_calibration_scales_what_is_fixed_and_what_each_token_adds(copy_of: PlaceCopy) -> None:
    plain = copy_of(instance_type="ml.g5.12xlarge", degree=4)
    measured = replace(plain, calibration=Calibration(fixed=2.0, marginal=3.0))
    before, after = costs_of(plain), costs_of(measured)

    for name in ("host", "weights", "attention_latency", "all_reduce"):
        assert getattr(after, name) == pytest.approx(2 * getattr(before, name))
    for name in ("token", "prompt_token", "attention_token", "all_reduce_token", "sequence", "input_token"):
        assert getattr(after, name) == pytest.approx(3 * getattr(before, name))


def test_every_nvidia_accelerator_of_the_instances_is_known() -> None:
    known = {accelerator.name for accelerator in accelerators.every()}

    assert {found.accelerator for found in instances.every() if found.link != "neuron"} <= known
