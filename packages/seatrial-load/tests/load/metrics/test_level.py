from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.request import Gate, Load, Objective
from seatrial_load.metrics.level import level_of_records, level_size, with_queue_share
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]
    MakeRecord = Callable[..., RequestRecord]

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=150.0, sense="at_most")
FAILED: dict[str, object] = {"last_token_s": None, "output_tokens": None, "output_tokens_from": None}


def test_a_level_sums_up_its_records(record: MakeRecord) -> None:
    records = [record(), record(first_token_s=10.4), record(error="timeout", detail="no answer", **FAILED)]
    level = level_of_records(3, records, [TTFT])
    assert (level.concurrency, level.requests, level.succeeded) == (3, 3, 2)
    assert (level.errors, level.first_errors) == ({"timeout": 1}, ("timeout: no answer",))
    assert level.ttft_ms is not None
    assert level.ttft_ms.mean == pytest.approx(300.0)  # (200 + 400) / 2
    assert level.itl_ms is not None
    assert level.itl_ms.count == 6  # 3 gaps of 2 successes; the failure's gaps are not measurements
    assert level.output_tok_s == pytest.approx(8.0)  # (4 + 4) tokens / (11 - 10) s
    assert (level.input_tokens_mean, level.output_tokens_mean) == (16.0, 4.0)
    assert level.misses == ("ttft_ms p95 390.0 ms exceeds 150.0 ms at concurrency 3 per copy",)  # 200 + .95 x 200


def test_a_level_of_failures_has_no_numbers(record: MakeRecord) -> None:
    level = level_of_records(1, [record(error="throttled", detail="slow down", **FAILED)] * 2, [TTFT])
    assert (level.ttft_ms, level.tpot_ms, level.itl_ms, level.e2e_latency_ms, level.ms_per_token) == (None,) * 5
    assert (level.output_tok_s, level.output_tokens_mean) == (None, None)
    assert level.requests_per_s == 0.0  # nothing succeeded in a window that was measured: this zero is one
    assert level.misses == ("0 of 2 requests succeeded at concurrency 1 per copy: throttled 2 (throttled: slow down)",)


def test_one_sample_of_each_error_class_most_frequent_class_first(record: MakeRecord) -> None:
    errors = ["timeout", "throttled", "throttled"]
    records = [record(error=error, detail=f"{index}", **FAILED) for index, error in enumerate(errors)]
    level = level_of_records(1, records, [])
    assert list(level.errors.items()) == [("throttled", 2), ("timeout", 1)]
    assert level.first_errors == ("timeout: 0", "throttled: 1")


def test_what_is_sure_of_a_level(record: MakeRecord) -> None:
    records = [record(index=index, parts=2, retried=("throttled",)) for index in range(9)]
    level = level_of_records(3, [*records, record(index=9, error="timeout", detail="no answer", **FAILED)], [])
    assert level.retried == {"throttled": 9}
    assert level.parts_per_token == pytest.approx(0.5)  # 2 pieces for 4 tokens
    assert level.total_tok_s == pytest.approx(180.0)  # 9 x (16 + 4) tokens in 1 s
    assert level.error_rate_interval is not None
    assert level.error_rate_interval.high == pytest.approx(0.4042, abs=1e-4)  # Wilson, 1 of 10
    assert level.output_tok_s_interval is not None
    # nine requests bring 4 tokens in 1 s, one none: 1/9 above and 1 below the mean of 3.6, s = 0.351
    # 36 tok/s ± 2.262 x 36 x 0.351 / sqrt(10)
    assert (level.output_tok_s_interval.low, level.output_tok_s_interval.high) == pytest.approx(
        (26.95, 45.05), abs=0.01
    )
    assert level.ttft_ms is not None
    assert level.ttft_ms.intervals["p50"].low == pytest.approx(200.0)
    assert level.itl_ms is not None
    assert level.itl_ms.intervals == {}


def test_a_ramp_and_what_is_known_of_the_client_stand_in_the_level(record: MakeRecord) -> None:
    records = [record(index=0), record(index=1, sent_s=10.1)]
    level = level_of_records(2, records, [], ramp=1, void=lagging("slow"), enough_because="sure")
    assert (level.requests, level.ramp_requests, level.window, level.duration_s) == (1, 1, "whole", 1.0)
    assert (level.valid, level.invalid_because, level.enough_because) == (False, "slow", "sure")


def test_the_concurrency_of_an_open_loop_is_what_was_in_flight_per_copy(record: MakeRecord) -> None:
    records = [record(), record(), record(sent_s=10.1, ended_s=11.1)]  # (1 + 1 + 1) s over 1.1 s: 2.7 in flight
    open_loop = level_of_records(0, records, [], arrival="poisson", offered_requests_per_s=2.0, copy_count=3)
    assert (open_loop.concurrency, open_loop.arrival, open_loop.offered_requests_per_s) == (1, "poisson", 2.0)
    assert open_loop.window == "whole"


def test_queue_share_as_against_the_lowest_valid_level(level: MakeLevel) -> None:
    levels = with_queue_share(
        [
            level(1, ttft_ms=50.0, void=lagging("the client was busy")),
            level(2, ttft_ms=100.0),
            level(8, ttft_ms=400.0),
            level(16, ttft_ms=None),
        ]
    )
    assert [one.queue_share for one in levels] == [None, 0.0, 0.75, None]  # 1 - 100 / 400
    assert with_queue_share([level(1, ttft_ms=None)])[0].queue_share is None


def test_the_lowest_rate_of_an_open_loop_is_the_unloaded_one(level: MakeLevel) -> None:
    rates = [level(1, ttft_ms=100.0 * rate, offered_requests_per_s=rate) for rate in (4.0, 1.0, 2.0)]
    assert [one.queue_share for one in with_queue_share(rates)] == [0.75, 0.0, 0.5]


def test_a_level_tells_which_share_of_its_prompts_came_from_a_cache(record: MakeRecord) -> None:
    told = [record(input_tokens=100, cached_tokens=cached) for cached in (0, 50, 100)]
    untold = record(input_tokens=1_000)
    assert level_of_records(4, [*told, untold], ()).cached_share == 0.5
    assert level_of_records(4, [untold], ()).cached_share is None


@pytest.mark.parametrize(("confidence", "least"), [(0.9, 22), (0.95, 29), (0.0, 3)])
def test_a_gate_of_one_request_at_a_time_measures_enough_to_see_failures(
    trial_request: Callable[..., TrialRequest], confidence: float, least: int
) -> None:
    """Three requests were enough for a spec without bounds on latency: a deployment that fails every third passed."""
    load = Load(
        concurrency_levels=(1,), requests_per_concurrency=3, warmup_requests=0, budget_s=60, request_timeout_s=9
    )
    errors = Objective(metric="error_rate", statistic="value", bound=0.01, sense="at_most")
    request = trial_request(load=load, objectives=(errors,), gate_concurrency=1, gate=Gate(confidence=confidence))
    assert (level_size(request, 1).least, level_size(request, 2).least) == (least, 6)
    assert level_size(replace(request, load=replace(load, requests=5)), 1).least == 5
