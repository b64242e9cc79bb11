from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.documents.request import PredictedLevel, Prior
from seatrial_load.measure.functions import (
    MOST_WORKERS,
    predicted_parts_per_s,
    workers_at,
)
from tests.constructs.conftest import request_of_dev


def predicted(*levels: tuple[int, float]) -> Prior:
    return Prior(
        levels=tuple(
            PredictedLevel(concurrency=concurrency, output_tok_s=tok_s, ttft_p95_ms=100.0, e2e_mean_ms=1000.0)
            for concurrency, tok_s in levels
        )
    )


@pytest.mark.parametrize(
    ("concurrency", "copies", "workers"),
    [
        (900, 1, 1),
        (901, 1, 2),
        (450, 2, 1),
        (451, 2, 2),
        (128, 32, 5),  # 4,096 streams / 900
    ],
)
def test_a_function_holds_nine_hundred_sockets(concurrency: int, copies: int, workers: int) -> None:
    assert workers_at(replace(request_of_dev(), copy_count=copies), concurrency) == workers


@pytest.mark.parametrize(
    ("tok_s", "copies", "workers"),
    [
        (20_000.0, 1, 1),
        (20_001.0, 1, 2),
        (5_000.0, 4, 1),
        (5_000.0, 16, 4),  # 80,000 tok/s at 20,000 a function
    ],
)
def test_a_function_takes_in_twenty_thousand_tokens_a_second(tok_s: float, copies: int, workers: int) -> None:
    request = replace(request_of_dev(), copy_count=copies, prior=predicted((64, tok_s)))
    assert workers_at(request, 64) == workers


@pytest.mark.parametrize(
    ("concurrency", "parts_per_s"),
    [
        (1, 2 * 50.0),  # half of the lowest level's 2
        (2, 2 * 100.0),
        (5, 2 * 250.0),  # half way from 2 to 8
        (8, 2 * 400.0),
        (512, 2 * 400.0),  # past the last level throughput has levelled off
    ],
)
def test_throughput_is_interpolated_between_predicted_levels(concurrency: int, parts_per_s: float) -> None:
    request = replace(request_of_dev(), copy_count=2, prior=predicted((2, 100.0), (8, 400.0)))
    assert predicted_parts_per_s(request, concurrency) == parts_per_s


def test_what_is_not_streamed_comes_in_one_part() -> None:
    request = request_of_dev()
    whole = replace(request, workload=replace(request.workload, stream=False), prior=predicted((8, 1e6)))
    assert predicted_parts_per_s(whole, 8) == 0.0


def test_an_open_loop_opens_at_most_its_connections() -> None:
    request = request_of_dev()
    load = replace(request.load, arrival="poisson", rates_per_s=(10.0,), max_connections=1801)
    assert workers_at(replace(request, load=load), 1) == 3


def test_no_function_is_without_a_stream() -> None:
    request = replace(request_of_dev(), prior=predicted((2, 1e6)))
    assert workers_at(request, 2) == 2


@given(concurrency=st.integers(1, 10**6), copies=st.integers(1, 100), tok_s=st.floats(0.1, 1e9))
def test_there_is_always_a_function_and_never_more_than_an_account_may_run(
    concurrency: int, copies: int, tok_s: float
) -> None:
    request = replace(request_of_dev(), copy_count=copies, prior=predicted((concurrency, tok_s)))
    assert 1 <= workers_at(request, concurrency) <= min(MOST_WORKERS, concurrency * copies)
