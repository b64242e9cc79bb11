"""Requests at a rate: the queue, what tends to what, and what both simulations must agree on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.planner.predict.request_simulation import simulate_closed, simulate_open
from seatrial.planner.predict.simulation import (
    AT_RANDOM,
    SEED,
    TRIAL,
    OpenLevel,
    open_level,
    outcome,
    saturation_per_s,
    simulate,
)
from seatrial_base.catalog.engines import find_engine
from seatrial_load.documents.arrivals import Constant, Gamma, Recorded
from seatrial_load.measure.lengths import normal_lengths, paired_lengths
from tests.planner.predict.conftest import TGI, placed

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_load.documents.arrivals import Arrivals

VLLM = find_engine("vllm", "0.15.1")
CHUNKED = replace(placed("meta-llama/Llama-3.1-8B-Instruct", engine=VLLM), max_num_seqs=256)
SEPARATE = replace(placed(engine=TGI), max_num_seqs=64)
BOTH = pytest.mark.parametrize("copy", [CHUNKED, SEPARATE], ids=["chunked", "separate"])
VARIED = replace(
    CHUNKED,
    lengths=normal_lengths(input_tokens=256, output_tokens=256, input_tokens_stddev=100, output_tokens_stddev=100),
)


def level(copy: Copy, utilization: float, arrivals: Arrivals = AT_RANDOM, requests: int = 400) -> OpenLevel:
    rate = utilization * saturation_per_s(copy)
    return open_level(copy, arrivals, rate, requests=requests, round_trip_s=TRIAL.round_trip_s)


@BOTH
def test_a_rate_near_zero_is_a_single_request_of_a_closed_loop(copy: Copy) -> None:
    alone, rare = outcome(copy, 1, TRIAL), level(copy, 0.001, Constant(), requests=20)

    assert rare.ttft_ms.p95 == pytest.approx(alone.ttft_ms.p95)
    assert rare.e2e_latency_ms.mean == pytest.approx(alone.e2e_latency_ms.mean, rel=1e-3)
    assert rare.queue_ms.max == pytest.approx(0, abs=1e-6)


@BOTH
@settings(max_examples=15, deadline=None)
@given(low=st.floats(0.05, 0.9), more=st.floats(1.1, 3.0))
def test_more_requests_per_second_are_never_answered_faster(copy: Copy, low: float, more: float) -> None:
    """The same requests in the same order, with shorter gaps; as iterations are whole, percentiles jitter a little."""
    slow, fast = level(copy, low), level(copy, min(0.98, low * more))

    assert fast.ttft_ms.p95 >= slow.ttft_ms.p95 * 0.95
    assert fast.e2e_latency_ms.mean >= slow.e2e_latency_ms.mean * 0.99
    assert fast.in_flight >= slow.in_flight


@BOTH
def test_beyond_saturation_the_queue_grows_with_every_request(copy: Copy) -> None:
    below, beyond, longer = level(copy, 0.6), level(copy, 1.5, requests=600), level(copy, 1.5, requests=1_200)

    assert beyond.ttft_ms.p95 > 5 * below.ttft_ms.p95
    assert longer.ttft_ms.p95 > 1.2 * beyond.ttft_ms.p95


def test_a_server_of_one_request_at_a_time_waits_as_queueing_theory_says() -> None:
    """Lindley's recursion: a request waits as long as the one before it did, and its service, less the gap."""
    copy = replace(CHUNKED, max_num_seqs=1, output_tokens=8, engine=replace(VLLM, steps_ahead=0))
    (alone,) = simulate_open(copy, [0.0], 0)[0]
    service_s, waits_s = alone.last_token_s, [0.0]
    due_s = AT_RANDOM.due_s(0.7 / service_s, 3_000 / (0.7 / service_s), SEED)
    waits_s += (0.0 for _ in due_s[1:])
    for row in range(1, len(due_s)):
        waits_s[row] = max(0.0, waits_s[row - 1] + service_s - (due_s[row] - due_s[row - 1]))
    done, _ = simulate_open(copy, due_s, len(due_s) - 1)

    assert [each.started_s - each.due_s for each in done] == pytest.approx(waits_s, abs=1e-6)


def test_lengths_that_are_all_alike_change_nothing() -> None:
    alike = replace(CHUNKED, lengths=paired_lengths([(256, 256)] * 3))

    assert level(alike, 0.5) == level(CHUNKED, 0.5)


@BOTH
@pytest.mark.parametrize("concurrency", [1, 16, 96])
def test_a_closed_loop_of_requests_that_are_alike_is_what_the_simulation_of_groups_says(
    copy: Copy, concurrency: int
) -> None:
    protocol = replace(TRIAL, requests_per_concurrency=3, start="together")
    groups = simulate(copy, concurrency, protocol)
    each = simulate_closed(copy, [0.0] * concurrency, len(groups), round_trip_s=protocol.round_trip_s)

    def took(sent: list[float], answered: list[float]) -> float:
        return math.fsum(answered) - math.fsum(sent)

    ours = took([request.due_s for request in each], [request.last_token_s for request in each])
    theirs = took([request.sent_s for request in groups], [request.last_token_s for request in groups])
    assert ours / len(each) + protocol.round_trip_s == pytest.approx(theirs / len(groups), rel=2e-3)


def test_an_engine_that_schedules_ahead_lets_a_request_wait_one_iteration_more() -> None:
    plain = replace(CHUNKED, engine=replace(VLLM, steps_ahead=0))
    ahead, at_once = (level(copy, 0.4, Constant()) for copy in (CHUNKED, plain))

    assert ahead.ttft_ms.p50 - at_once.ttft_ms.p50 == pytest.approx(ahead.itl_ms.p50, rel=0.3)


def test_bursts_queue_and_even_gaps_do_not() -> None:
    even, drawn, bursts = (
        level(CHUNKED, 0.6, arrivals).ttft_ms.p95 for arrivals in (Constant(), AT_RANDOM, Gamma(smoothness=0.2))
    )
    assert even < drawn < bursts


def test_recorded_requests_come_with_their_own_lengths() -> None:
    """A short prompt and a long one at once, and a pause, again and again: each pair is one iteration of both."""
    lengths = paired_lengths([(64, 32), (1_500, 32)] * 8)
    copy = replace(CHUNKED, input_tokens=782, output_tokens=32, lengths=lengths)
    times_s = tuple(pair * 10.0 for pair in range(8) for _ in range(2))
    found = open_level(copy, Recorded(times_s=times_s), 0.2, requests=64, round_trip_s=0.0)

    assert found.ttft_ms.max == pytest.approx(found.ttft_ms.p50, rel=0.01)
    assert found.queue_ms.max == pytest.approx(0, abs=1.0)


def test_long_answers_hold_their_place_in_the_batch() -> None:
    alike, varied = level(CHUNKED, 0.7), level(VARIED, 0.7)

    assert varied.e2e_latency_ms.p95 > 1.3 * alike.e2e_latency_ms.p95
    assert varied.e2e_latency_ms.mean == pytest.approx(alike.e2e_latency_ms.mean, rel=0.1)


def test_a_request_that_the_cache_hardly_holds_is_served_alone() -> None:
    lengths = paired_lengths([(256, 256), (4_000, 256)])
    copy = replace(CHUNKED, kv_room_tokens=4_000, lengths=lengths)
    done, _ = simulate_open(copy, [0.0] * 8, 7)

    assert sorted(each.row for each in done) == list(range(8))


def test_more_are_in_flight_at_times_than_on_average() -> None:
    found = level(CHUNKED, 0.5)

    assert found.in_flight == pytest.approx(found.rate_per_s * found.e2e_latency_ms.mean / 1_000)
    assert found.in_flight < found.most_in_flight < 3 * found.in_flight


@settings(max_examples=20, deadline=None)
@given(smoothness=st.floats(0.1, 10), rate=st.floats(0.1, 100), faster=st.floats(1.1, 10))
def test_at_another_rate_the_same_gaps_are_shorter_alike(smoothness: float, rate: float, faster: float) -> None:
    arrivals = Gamma(smoothness=smoothness)
    slow, fast = (arrivals.due_s(per_s, 50 / per_s, SEED) for per_s in (rate, rate * faster))

    assert fast == pytest.approx([due_s / faster for due_s in slow])
