from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.simulation import TRIAL, Level
from seatrial.planner.search.capacity import (
    MOST_IN_FLIGHT,
    Levels,
    answered_in_time,
    capacity,
    copies_needed,
    spread,
    trial_protocol,
)
from seatrial.planner.search.demand import LatencyBound
from seatrial.specs.endpoint import TrialSpec, WorkloadSpec
from seatrial.specs.scaling import copies_replaced_at_once
from tests.planner.predict.conftest import placed

TIMEOUT = LatencyBound(("trial", "request_timeout_s"), "e2e_latency_ms", "max", 60_000)
LLAMA_ON_A10G = replace(placed(), max_num_seqs=256)


def levels(timeout_s: float = 60.0) -> Levels:
    return Levels(LLAMA_ON_A10G, TRIAL, timeout_s)


def tpot(bound_ms: float, statistic: str = "p95") -> LatencyBound:
    return LatencyBound(("slo", "tpot_ms", statistic), "tpot_ms", statistic, bound_ms)


def test_a_level_is_simulated_once() -> None:
    copy = levels()

    assert copy.at(4) is copy.at(4)


def test_the_trials_requests_are_simulated_up_to_ten_for_each_in_flight() -> None:
    assert trial_protocol(TrialSpec(requests_per_concurrency=5)).requests_per_concurrency == 5
    assert trial_protocol(TrialSpec(requests_per_concurrency=50)).requests_per_concurrency == 10


def test_each_objective_is_compared_with_its_own_percentile() -> None:
    outcome = levels().at(64)

    assert [tpot(100, name).predicted(outcome) for name in ("p50", "p99")] == [outcome.tpot_ms.p50, outcome.tpot_ms.p99]
    assert TIMEOUT.ratio(outcome) == outcome.e2e_latency_ms.max / 60_000


@settings(max_examples=30, deadline=None)
@given(bound_ms=st.floats(20, 80), guess=st.integers(1, 400))
def test_every_level_up_to_the_capacity_that_was_simulated_keeps_the_objectives(bound_ms: float, guess: int) -> None:
    copy, objectives = levels(), (tpot(bound_ms), TIMEOUT)
    highest = capacity(copy, objectives, guess)

    def holds(concurrency: int) -> bool:
        return all(objective.ratio(copy.at(concurrency)) <= 1 for objective in objectives)

    assert all(holds(concurrency) for concurrency in copy.seen if concurrency <= highest)
    assert highest == MOST_IN_FLIGHT or any(not holds(concurrency) for concurrency in copy.seen)
    assert not highest or highest in copy.seen


def test_a_capacity_stays_below_a_level_that_missed_on_the_way() -> None:
    copy, missed = levels(), [levels().at(concurrency) for concurrency in (6, 40)]

    class Bumpy(LatencyBound):
        def ratio(self, outcome: Level) -> float:
            return 2.0 if outcome in missed else 0.5

    copy.at(6)

    assert capacity(copy, (Bumpy(TIMEOUT.path, "e2e_latency_ms", "max", 1.0),), guess=20) == 1


def test_the_published_cut_lies_between_64_and_128() -> None:
    # ml.g5.2xlarge, 256/256: 64 requests in flight were the last before 60 s ran out, 128 the next that was tried
    assert 64 <= capacity(levels(), (TIMEOUT,), guess=100) < 128
    assert 50 <= answered_in_time(levels(), TIMEOUT) < 128


def test_no_capacity_when_a_single_request_misses() -> None:
    assert capacity(levels(), (tpot(5),), guess=10) == 0
    assert answered_in_time(levels(), replace(TIMEOUT, bound_ms=10.0)) == 0


def test_copies_take_the_concurrency_between_them() -> None:
    workload = WorkloadSpec(input_tokens=256, output_tokens=256, concurrency=65)
    load = spread(LLAMA_ON_A10G, workload, 3, {21: 300.0, 22: 310.0}.__getitem__)

    assert copies_needed(LLAMA_ON_A10G, workload, 32) == 3
    assert (load.concurrency_per_copy, load.output_tok_s) == (22, 2 * 310.0 + 300.0)  # 22 + 22 + 21 in flight


def test_more_copies_than_requests_idle() -> None:
    workload = WorkloadSpec(input_tokens=256, output_tokens=256, concurrency=2)

    assert spread(LLAMA_ON_A10G, workload, 5, {1: 30.0}.__getitem__).output_tok_s == 60.0


@given(concurrency=st.integers(1, 300), copies=st.integers(1, 12))
def test_throughput_never_falls_when_a_copy_is_added(concurrency: int, copies: int) -> None:
    workload = WorkloadSpec(input_tokens=256, output_tokens=256, concurrency=concurrency)

    def total(count: int) -> float:
        return spread(LLAMA_ON_A10G, workload, count, _closed_tok_s).output_tok_s

    assert total(copies + 1) >= total(copies) * (1 - 1e-9)


def _closed_tok_s(concurrency: int) -> float:
    return predict_at(LLAMA_ON_A10G, concurrency).output_tok_s


@settings(max_examples=30, deadline=None)
@given(concurrency=st.integers(1, 128))
def test_more_load_never_lowers_latency_below_that_of_a_single_request(concurrency: int) -> None:
    copy = levels()

    assert copy.at(concurrency).e2e_latency_ms.mean >= copy.at(1).e2e_latency_ms.mean * (1 - 1e-9)
    assert predict_at(LLAMA_ON_A10G, concurrency).e2e_latency_ms >= predict_at(LLAMA_ON_A10G, 1).e2e_latency_ms


@given(rate=st.floats(0.01, 20))
def test_a_rate_is_served_by_the_copies_that_it_needs(rate: float) -> None:
    workload = WorkloadSpec(input_tokens=256, output_tokens=256, requests_per_second=rate)
    needed = copies_needed(LLAMA_ON_A10G, workload, 28)
    load = spread(LLAMA_ON_A10G, workload, needed, _closed_tok_s)

    assert load.output_tok_s == rate * 256
    assert needed * _closed_tok_s(load.concurrency_per_copy) >= rate * 256 * (1 - 1e-6)
    assert 1 <= load.concurrency_per_copy <= 28


@pytest.mark.parametrize(
    ("min_copies", "max_copies", "batch"),
    [(1, 1, None), (1, 4, None), (2, 2, 1), (2, 20, 1), (3, 21, None), (4, 21, 2), (20, 140, 7), (13, 140, None)],
)
def test_a_batch_of_an_update_is_5_to_50_percent_of_however_many_copies_run(
    min_copies: int, max_copies: int, batch: int | None
) -> None:
    assert copies_replaced_at_once(min_copies, max_copies) == batch
