from __future__ import annotations

from dataclasses import replace

import pytest

from seatrial_load.client.event_loop import Wave, WaveResult
from seatrial_load.decode.exchange import Exchange, Inbox
from seatrial_load.health.client_health import LagMeter, ThreadSample, UsageMeter, evidence_of, together

CLOSED = Wave(streams=2, requests=6, timeout_s=9, deadline_s=99)


def exchange(taken_s: float, ended_s: float, *, sent_s: float | None = None, due_s: float | None = None) -> Exchange:
    return Exchange(taken_s if sent_s is None else sent_s, ended_s, Inbox(), None, due_s=due_s, taken_s=taken_s)


def result(*exchanges: Exchange, reads: int = 100) -> WaveResult:
    lag = LagMeter()
    lag.note(10.0, 10.002, reads, waited=True)
    ended_s = max(exchange.ended_s for exchange in exchanges)
    usage = UsageMeter([ThreadSample(10.0, 1.0, 0.0), ThreadSample(ended_s, 1.0 + (ended_s - 10.0) / 2, 0.1)])
    return WaveResult(exchanges=exchanges, cut=False, started_s=10.0, ended_s=ended_s, lag=lag, usage=usage)


def test_delivered_concurrency_is_the_mean_in_flight_until_the_last_request_is_taken_up() -> None:
    """Two streams, three rounds of a second each; every hand-over costs the second stream 0.1 s; drain excluded."""
    evidence = evidence_of(
        CLOSED,
        result(
            exchange(10.0, 11.0), exchange(11.0, 12.0), exchange(12.0, 13.0),
            exchange(10.0, 10.9), exchange(11.0, 11.9), exchange(12.0, 12.9),
        ),
    )  # fmt: skip
    assert evidence.delivered_concurrency == pytest.approx((2.0 + 1.8) / 2.0)
    assert evidence.idle_ms == pytest.approx(200.0 / 6)
    assert (evidence.workers, evidence.streams, evidence.cpu_share) == (1, 2, 0.5)
    assert evidence.receive_lag_p99_ms == pytest.approx(2.0, rel=0.045)
    assert evidence.reads_per_s == pytest.approx(100 / 3)
    assert (evidence.send_lag_p99_ms, evidence.full_share) == (None, None)


def test_connecting_anew_counts_as_in_flight() -> None:
    """A server that closes after each answer costs 0.4 s each time, between taking a request up and sending it."""
    evidence = evidence_of(
        replace(CLOSED, streams=1),
        result(exchange(10.0, 11.0), exchange(11.0, 12.4, sent_s=11.4), exchange(12.4, 13.8, sent_s=12.8)),
    )
    assert evidence.delivered_concurrency == pytest.approx(1.0)
    assert evidence.idle_ms == pytest.approx(0.0)


def test_a_single_round_tells_nothing_of_concurrency() -> None:
    evidence = evidence_of(CLOSED, result(exchange(10.0, 11.0), exchange(10.001, 11.0)))
    assert (evidence.delivered_concurrency, evidence.idle_ms) == (None, None)
    assert evidence.cpu_share == 0.5


def test_few_reads_have_no_p99_and_a_blink_has_no_rate() -> None:
    assert evidence_of(CLOSED, result(exchange(10.0, 12.0), reads=99)).receive_lag_p99_ms is None
    assert evidence_of(CLOSED, result(exchange(10.0, 10.2))).reads_per_s is None


def test_an_open_loops_lag_is_that_of_requests_that_found_a_free_connection() -> None:
    wave = replace(CLOSED, streams=1, due_s=(0.0, 2.0, 2.5))
    evidence = evidence_of(
        wave,
        result(
            exchange(10.0, 11.0, due_s=10.0),
            exchange(12.003, 13.0, due_s=12.0),
            exchange(13.0, 14.0, due_s=12.5),
        ),
    )
    assert evidence.send_lag_p99_ms == pytest.approx(2.97)  # interpolated between 0 and 3 ms
    assert evidence.full_share == pytest.approx(1 / 3)
    assert evidence.idle_ms is None


def test_together_concurrency_adds_up_and_the_worst_of_the_rest_counts() -> None:
    one = evidence_of(CLOSED, result(exchange(10.0, 12.0), exchange(12.0, 13.0), exchange(12.0, 13.0)))
    other = replace(one, receive_lag_p99_ms=7.5, cpu_share=0.2, run_delay_share=None)
    both = together([one, other])
    assert both.delivered_concurrency == pytest.approx(2 * (one.delivered_concurrency or 0.0))
    assert (both.workers, both.streams, both.receive_lag_p99_ms, both.cpu_share) == (2, 4, 7.5, 0.5)
    assert both.run_delay_share == one.run_delay_share
    assert together([one, replace(one, delivered_concurrency=None)]).delivered_concurrency is None
