from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.predict.closed_form import mean_step, predict_at, running_batch
from seatrial_base.catalog.engines import find_engine
from tests.planner.predict.conftest import placed

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from tests.planner.predict.conftest import PlaceCopy

LMI = find_engine("lmi", "0.36.0")


def roomy(copy: Copy) -> Copy:
    return replace(copy, kv_room_tokens=10**6)


@pytest.mark.parametrize(
    ("concurrency", "limit"),
    [(1, "memory"), (28, "memory"), (64, "kv")],
)
def test_a_point_names_what_bounds_it(concurrency: int, limit: str, copy_of: PlaceCopy) -> None:
    assert predict_at(copy_of(), concurrency).limit == limit


def test_a_batch_limit_is_named(copy_of: PlaceCopy) -> None:
    assert predict_at(replace(copy_of(), max_num_seqs=8), 16).limit == "batch limit"


def test_tgi_admits_one_prefill_every_twenty_steps(copy_of: PlaceCopy) -> None:
    batch, bound = running_batch(roomy(copy_of()), 512)

    assert bound == "admission"
    assert batch == pytest.approx(16 * (255 / 20 + 1))  # 4,096 tokens of a prefill are 16 prompts


def test_vllm_admits_what_its_token_budget_leaves(copy_of: PlaceCopy) -> None:
    batch, bound = running_batch(roomy(copy_of(engine=LMI)), 2_000)

    assert bound == "batch limit"
    assert batch == 1_000
    wide = replace(roomy(copy_of(engine=LMI)), max_num_seqs=10**6)
    batch, bound = running_batch(wide, 2_000)
    assert bound == "admission"
    assert batch == pytest.approx(2_048 * 255 / (255 + 256))


def test_the_host_bounds_many_fast_accelerators(copy_of: PlaceCopy) -> None:
    assert predict_at(copy_of(instance_type="ml.p4d.24xlarge", degree=8), 1).limit == "host"


def test_slow_arithmetic_bounds(copy_of: PlaceCopy) -> None:
    copy = roomy(copy_of())
    slow = replace(copy, hardware=replace(copy.hardware, flops=7e12))

    assert predict_at(slow, 200).limit == "compute"


def test_what_does_not_fit_the_batch_waits_in_line(copy_of: PlaceCopy) -> None:
    copy = replace(copy_of(), max_num_seqs=8)
    full, twice = predict_at(copy, 16), predict_at(copy, 32)

    assert twice.output_tok_s == full.output_tok_s
    assert twice.tpot_ms == pytest.approx(full.tpot_ms)
    assert twice.e2e_latency_ms == pytest.approx(2 * full.e2e_latency_ms)


def test_a_step_of_chunks_carries_prompt_tokens(copy_of: PlaceCopy) -> None:
    short, long = (mean_step(copy_of(engine=LMI, input_tokens=tokens), 8) for tokens in (16, 2_000))

    assert long.total > short.total
    assert long.prefill > short.prefill


def test_a_single_output_token_has_no_decode_step(copy_of: PlaceCopy) -> None:
    point = predict_at(copy_of(output_tokens=1), 1)

    assert point.ttft_ms == pytest.approx(point.e2e_latency_ms)
    assert point.tpot_ms == pytest.approx(0)


@given(
    concurrency=st.integers(1, 2_000),
    input_tokens=st.integers(1, 4_000),
    output_tokens=st.integers(1, 2_000),
    degree=st.sampled_from([1, 2, 4, 8]),
    family=st.sampled_from(["tgi", "lmi"]),
)
def test_load_never_makes_a_request_faster(
    concurrency: int, input_tokens: int, output_tokens: int, degree: int, family: str
) -> None:
    copy = placed(
        instance_type="ml.p4d.24xlarge",
        degree=degree,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        engine=LMI if family == "lmi" else find_engine("tgi", "1.1.0"),
    )
    alone, loaded, more = (
        predict_at(copy, 1),
        predict_at(copy, concurrency),
        predict_at(copy, concurrency + 1),
    )

    assert loaded.e2e_latency_ms >= alone.e2e_latency_ms * (1 - 1e-9)
    assert more.e2e_latency_ms >= loaded.e2e_latency_ms * (1 - 1e-9)
    assert loaded.ttft_ms + loaded.tpot_ms * max(1, output_tokens - 1) == pytest.approx(loaded.e2e_latency_ms)
