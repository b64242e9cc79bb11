from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.catalog import engines, models
from seatrial.plan.copies import capacity, copies_needed, copies_replaced_at_once, spread
from seatrial.plan.demand import Objective
from seatrial.plan.latency import Copy, predict
from seatrial.spec.endpoint import WorkloadSpec

TIMEOUT = Objective(("trial", "request_timeout_s"), "e2e_latency_ms", 60_000)


def llama_on_a10g() -> Copy:
    architecture = models.find("meta-llama/Llama-2-7b-hf")
    assert architecture is not None
    return Copy(
        architecture=architecture,
        engine=engines.find("tgi", "1.1.0"),
        link="single",
        degree=1,
        flops=70e12,
        memory_bandwidth_bytes_s=600e9,
        weights_bytes=2 * 6_738_415_616,
        kv_bytes_per_token=524_288,
        kv_limited_batch=28,
        max_num_seqs=256,
        batched_tokens=4_096,
        input_tokens=256,
        output_tokens=256,
    )


def tpot(bound_ms: float) -> Objective:
    return Objective(("slo", "tpot_ms", "p95"), "tpot_ms", bound_ms)


@given(bound_ms=st.floats(10, 200))
def test_the_capacity_is_the_last_concurrency_that_keeps_the_objectives(bound_ms: float) -> None:
    copy, objectives = llama_on_a10g(), (tpot(bound_ms), TIMEOUT)
    highest = capacity(copy, objectives)

    assert all(objective.ratio(predict(copy, highest)) <= 1 for objective in objectives if highest)
    assert any(objective.ratio(predict(copy, highest + 1)) > 1 for objective in objectives)


def test_the_published_cut_lies_between_64_and_128() -> None:
    # ml.g5.2xlarge, 256/256: 64 requests in flight were the last before 60 s ran out, 128 the next that was tried
    assert 64 <= capacity(llama_on_a10g(), (TIMEOUT,)) < 128


def test_copies_take_the_concurrency_between_them() -> None:
    workload = WorkloadSpec(input_tokens=256, output_tokens=256, concurrency=65)

    assert copies_needed(llama_on_a10g(), workload, 32) == 3
    assert spread(llama_on_a10g(), workload, 3).concurrency_per_copy == 22


@given(rate=st.floats(0.01, 20))
def test_a_rate_is_served_by_the_copies_that_it_needs(rate: float) -> None:
    copy, workload = llama_on_a10g(), WorkloadSpec(input_tokens=256, output_tokens=256, requests_per_second=rate)
    needed = copies_needed(copy, workload, 28)
    load = spread(copy, workload, needed)

    assert load.output_tok_s >= rate * 256 * (1 - 1e-6)
    assert 1 <= load.concurrency_per_copy <= 28


@pytest.mark.parametrize(
    ("min_copies", "max_copies", "batch"),
    [(1, 1, None), (1, 4, None), (2, 2, 1), (2, 20, 1), (3, 21, None), (4, 21, 2), (20, 140, 7), (13, 140, None)],
)
def test_a_batch_of_an_update_is_5_to_50_percent_of_however_many_copies_run(
    min_copies: int, max_copies: int, batch: int | None
) -> None:
    assert copies_replaced_at_once(min_copies, max_copies) == batch
