from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.catalog import engines, instances, models
from seatrial.plan.latency import Copy, decode_seconds, predict, prefill_seconds
from seatrial.plan.memory import fit_memory, weights_bytes

PUBLISHED = Path(__file__).parent / "data" / "llama_2_7b_tgi.csv"


def copy_of(
    hub_id: str = "meta-llama/Llama-2-7b-hf",
    instance_type: str = "ml.g5.2xlarge",
    *,
    degree: int = 1,
    input_tokens: int = 256,
    output_tokens: int = 256,
) -> Copy:
    architecture, instance, engine = models.find(hub_id), instances.find(instance_type), engines.find("tgi", "1.1.0")
    assert architecture is not None
    assert instance is not None
    memory = fit_memory(
        architecture, instance, engine, degree=degree, quantization=None, tokens=input_tokens + output_tokens
    )
    return Copy(
        architecture=architecture,
        engine=engine,
        link=instance.link,
        degree=degree,
        flops=float(instance.flops_16bit or 0),
        memory_bandwidth_bytes_s=float(instance.memory_bandwidth_bytes_s or 0),
        weights_bytes=weights_bytes(architecture, None),
        kv_bytes_per_token=memory.kv_bytes_per_token,
        kv_limited_batch=memory.kv_limited_batch,
        max_num_seqs=1_000,
        batched_tokens=4_096,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )


def published_rows() -> list[dict[str, str]]:
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def error_of(predicted: float, measured: str) -> float:
    return abs(predicted / float(measured) - 1)


def test_the_published_throughput_is_met_within_the_stated_uncertainty() -> None:
    throughput, latency = [], []
    for row in published_rows():
        copy = copy_of(
            instance_type=row["instance_type"],
            degree=int(row["tp_degree"]),
            input_tokens=int(row["input_tokens"]),
            output_tokens=int(row["output_tokens"]),
        )
        point = predict(copy, int(row["concurrency"]))
        throughput.append(error_of(point.output_tok_s, row["throughput_tok_s"]))
        latency.append(error_of(point.ms_per_token, row["latency_ms_per_token"]))

    stated = engines.find("tgi", "1.1.0").performance.uncertainty
    assert len(throughput) == 52
    assert round(sum(throughput) / 52, 3) == 0.127 < stated
    assert round(sum(latency) / 52, 3) == 0.143 < stated


def test_a_decode_step_reads_the_weights_and_the_cache() -> None:
    step = decode_seconds(copy_of(), 8)

    bandwidth = 600e9 * 0.72
    assert step.memory == pytest.approx((6_738_415_616 * 2 + 8 * 384 * 524_288) / bandwidth)
    assert step.host == pytest.approx(8 * 115e-6)
    assert (step.compute, step.link) == (0.0, 0.0)


def test_a_decode_step_never_beats_the_host() -> None:
    step = decode_seconds(copy_of(instance_type="ml.p4d.24xlarge", degree=8), 1)

    assert step.memory == 0.0
    assert step.host == pytest.approx(32 * 404e-6 + 115e-6)


def test_a_large_batch_is_bound_by_arithmetic() -> None:
    step = decode_seconds(replace(copy_of(), kv_limited_batch=1_000), 500)

    assert step.compute == pytest.approx(2 * 6_738_415_616 * 500 / (70e12 * 0.63))


def test_an_all_reduce_crosses_the_link_twice_a_layer_and_once_in_falcon() -> None:
    llama = decode_seconds(copy_of(instance_type="ml.g5.12xlarge", degree=4), 1).link
    falcon = decode_seconds(copy_of("tiiuae/falcon-40b", "ml.g5.12xlarge", degree=4), 1).link

    assert llama == pytest.approx(2 * 32 * (3 * 20e-6 + 2 * 3 / 4 * 2 * 4_096 / 6.6e9))
    assert falcon == pytest.approx(60 * (3 * 20e-6 + 2 * 3 / 4 * 2 * 8_192 / 6.6e9))


def test_pcie_is_shared_past_four_accelerators() -> None:
    eight = decode_seconds(copy_of(instance_type="ml.g5.48xlarge", degree=8), 1).link

    assert eight == pytest.approx(2 * 32 * (7 * 20e-6 + 2 * 7 / 8 * 2 * 4_096 / (6.6e9 / 2)))


def test_a_prefill_is_arithmetic_and_the_servers_work_per_token() -> None:
    spent = prefill_seconds(copy_of(), 1)

    attention = 2 * 32 * 32 * 128 * 256 * 256
    assert spent.compute == pytest.approx((2 * 6_738_415_616 * 256 + attention) / (70e12 * 0.63))
    assert spent.host == pytest.approx(70e-6 * 256 + 115e-6)


def test_a_mixture_of_experts_reads_more_of_its_weights_as_the_batch_grows() -> None:
    fast = copy_of("mistralai/Mixtral-8x7B-v0.1", "ml.p4de.24xlarge", degree=2)
    copy = replace(fast, memory_bandwidth_bytes_s=500e9)  # slow enough to be above the host's floor
    read = [decode_seconds(copy, batch).memory * 2 * 500e9 * 0.72 for batch in (1, 2)]

    in_experts = (46_702_792_704 - 12_879_925_248) / (1 - 2 / 8)
    cache = 384 * 65_536 * 2  # the context of one sequence, on both accelerators
    assert read[0] == pytest.approx(12_879_925_248 * 2 + cache)
    assert read[1] == pytest.approx((46_702_792_704 - in_experts * 0.75**2) * 2 + 2 * cache)


@pytest.mark.parametrize(
    ("changes", "concurrency", "limit"),
    [
        ({}, 1, "memory"),
        ({}, 64, "kv"),
        ({"max_num_seqs": 8}, 16, "batch limit"),
        ({"kv_limited_batch": 1_000}, 512, "admission"),
        ({"kv_limited_batch": 1_000, "flops": 7e12}, 200, "compute"),
        ({"memory_bandwidth_bytes_s": 8e12}, 1, "host"),
    ],
)
def test_a_point_names_what_bounds_it(changes: dict[str, float], concurrency: int, limit: str) -> None:
    assert predict(replace(copy_of(), **changes), concurrency).limit == limit  # type: ignore[arg-type] # (a table of changes)


def test_what_does_not_fit_the_batch_waits_in_line() -> None:
    copy = replace(copy_of(), max_num_seqs=8)
    full, twice = predict(copy, 8), predict(copy, 16)

    assert twice.output_tok_s == full.output_tok_s
    assert twice.tpot_ms == full.tpot_ms
    assert twice.ttft_ms == pytest.approx(full.ttft_ms + full.e2e_latency_ms)
    assert twice.e2e_latency_ms == pytest.approx(2 * full.e2e_latency_ms)


@given(
    concurrency=st.integers(1, 2_000),
    input_tokens=st.integers(1, 4_000),
    output_tokens=st.integers(1, 2_000),
    degree=st.sampled_from([1, 2, 4, 8]),
)
def test_load_never_makes_a_request_faster(
    concurrency: int, input_tokens: int, output_tokens: int, degree: int
) -> None:
    copy = copy_of(
        instance_type="ml.p4d.24xlarge", degree=degree, input_tokens=input_tokens, output_tokens=output_tokens
    )
    alone, loaded, more = predict(copy, 1), predict(copy, concurrency), predict(copy, concurrency + 1)

    assert loaded.e2e_latency_ms >= alone.e2e_latency_ms * (1 - 1e-9)
    assert more.e2e_latency_ms >= loaded.e2e_latency_ms * (1 - 1e-9)
    assert loaded.ttft_ms + loaded.tpot_ms * max(1, output_tokens - 1) == pytest.approx(loaded.e2e_latency_ms)
