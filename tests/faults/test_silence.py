"""Streams that stop for ever: the level ends all the same, and says why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.faults.order import Order
from tests.faults.trials import LOAD, miss_of

if TYPE_CHECKING:
    from tests.faults.trials import Trials


def test_a_stream_that_stops_is_stalled(trials: Trials) -> None:
    request = trials.request(load=replace(LOAD, stall_timeout_s=0.5))
    result = trials.run(twice("stall"), request=request)
    level = result.levels[-1]
    assert (trials.hit, level.requests, level.succeeded, dict(level.errors)) == (2, 40, 38, {"stalled": 2})
    (said,) = level.first_errors
    assert said.startswith("stalled: ")
    assert said.endswith(" (after 2 token events)")
    assert miss_of(result) == "error_rate 5.00 % exceeds 1.00 % at concurrency 4 per copy"
    assert result.duration_s < LOAD.request_timeout_s


def test_without_a_bound_on_silence_it_is_a_timeout(trials: Trials) -> None:
    request = trials.request(load=replace(LOAD, request_timeout_s=1.0))
    level = trials.run(twice("stall"), request=request).levels[-1]
    assert (trials.hit, level.succeeded, dict(level.errors)) == (2, 38, {"timeout": 2})
    assert level.first_errors == ("timeout: no complete answer within 1 s (after 2 token events)",)


@pytest.mark.parametrize("stall_timeout_s", [None, 0.3])
def test_a_request_that_is_never_answered_is_a_timeout(trials: Trials, stall_timeout_s: float | None) -> None:
    """A queue may be long: silence before the first byte is no stall."""
    request = trials.request(load=replace(LOAD, request_timeout_s=1.0, stall_timeout_s=stall_timeout_s))
    level = trials.run(twice("silence"), request=request).levels[-1]
    assert (trials.hit, level.succeeded, dict(level.errors)) == (2, 38, {"timeout": 2})
    assert level.first_errors == ("timeout: no complete answer within 1 s",)


def test_where_every_stream_stops_nothing_is_measured(trials: Trials) -> None:
    request = trials.request(load=replace(LOAD, stall_timeout_s=0.3, requests_per_concurrency=2))
    result = trials.run(Order(fault="stall"), request=request)
    level = result.levels[-1]
    assert (trials.hit, level.succeeded, dict(level.errors)) == (8, 0, {"stalled": 8})
    assert (level.ttft_ms, level.tpot_ms, level.itl_ms, level.e2e_latency_ms) == (None, None, None, None)
    assert miss_of(result).startswith("0 of 8 requests succeeded at concurrency 4 per copy: stalled 8 ")


def test_a_level_that_the_budget_cuts_keeps_its_numbers_and_decides_nothing(trials: Trials) -> None:
    request = trials.request(load=replace(LOAD, budget_s=3.0))
    result = trials.run(twice("stall"), request=request)
    assert [(level.concurrency, bool(level.cut)) for level in result.levels] == [(1, False), (4, True)]
    assert result.stopped.because.startswith("the budget of 3 s ended at concurrency 4 per copy")
    assert result.verdict.status == "inconclusive"


def twice(fault: str) -> Order:
    """Order a fault for the requests 6 and 7 of a level."""
    return Order(fault=fault, skip=6, most=2)
