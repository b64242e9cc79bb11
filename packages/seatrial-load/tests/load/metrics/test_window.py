from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.decode.response import RequestRecord
from seatrial_load.metrics import request_metrics as metrics
from seatrial_load.metrics.request_metrics import has_steady_window, measured_time, record_share_by, split

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import Arrival, PreparedBy

    MakeRecord = Callable[..., RequestRecord]


def request(index: int, sent_s: float, ended_s: float, *, tokens: int = 4) -> RequestRecord:
    """An answer whose tokens come at even distances, the last one at its end."""
    gap_s = (ended_s - sent_s) / tokens
    times_s = (*(sent_s + gap_s * number for number in range(1, tokens)), ended_s)
    return RequestRecord(
        sent_s=sent_s,
        first_token_s=times_s[0],
        token_times_s=times_s,
        last_token_s=ended_s,
        ended_s=ended_s,
        input_tokens=8,
        output_tokens=tokens,
        output_tokens_from="events",
        error=None,
        status=200,
        detail="",
        index=index,
    )


def bursts(streams: int, rounds: int, *, jitter_s: float = 0.0) -> list[RequestRecord]:
    """Requests of 1 s in lock step, a round a second; stream s is `jitter_s` x s behind the first."""
    return [
        request(streams * number + stream, number + jitter_s * stream, number + 1 + jitter_s * stream)
        for number in range(rounds)
        for stream in range(streams)
    ]


def staggered(streams: int, rounds: int) -> list[RequestRecord]:
    """The same, but the streams are spread evenly over a second, as varied lengths spread them in the end."""
    return bursts(streams, rounds, jitter_s=1 / streams)


def test_the_steady_window_opens_with_the_first_measured_request_and_closes_with_the_last_sending() -> None:
    time = measured_time(bursts(4, 4), ramp=4, steady=True)
    assert (time.kind, time.opened_s, time.closed_s) == ("steady", 1.0, 3.0)


@pytest.mark.parametrize("jitter_s", [0.0, 0.001, 0.02, 0.1])
def test_bursts_in_lock_step_count_as_what_they_are(jitter_s: float) -> None:
    # 4 streams, each 1 answer of 4 tokens a second: 4 answers/s, 16 tokens/s
    records = bursts(4, 4, jitter_s=jitter_s)
    time = measured_time(records, ramp=4, steady=True)
    assert time.length_s == pytest.approx(2.0 + 3 * jitter_s)
    assert metrics.requests_per_s(records, time) == pytest.approx(4.0)
    assert metrics.output_tok_s(records, time) == pytest.approx(16.0)


def test_counted_by_ends_the_same_window_would_hold_three_answers_too_many() -> None:
    records = bursts(4, 4, jitter_s=0.001)
    time = measured_time(records, ramp=4, steady=True)
    ends = sum(time.opened_s < record.ended_s <= time.closed_s for record in records)
    assert ends / time.length_s == pytest.approx(11 / 2.003)  # 5.5/s instead of 4/s: why answers are counted by shares


def test_staggered_streams_yield_the_same() -> None:
    records = staggered(4, 4)
    time = measured_time(records, ramp=4, steady=True)
    assert (time.kind, time.opened_s, time.closed_s) == ("steady", 1.0, 3.75)
    assert metrics.requests_per_s(records, time) == pytest.approx(4.0)
    assert metrics.output_tok_s(records, time) == pytest.approx(16.0)
    assert metrics.in_flight(records, time) == pytest.approx(4.0)


def test_the_whole_level_would_yield_less_for_its_slow_end() -> None:
    records = staggered(4, 4)
    time = measured_time(records, ramp=4, steady=False)
    assert (time.kind, time.opened_s, time.closed_s) == ("whole", 0.0, 4.75)
    assert metrics.output_tok_s(records, time) == pytest.approx(64 / 4.75)  # 13.5, not 16: start and end are not full


def test_without_a_ramp_two_rounds_make_a_window() -> None:
    time = measured_time(bursts(4, 2), ramp=0, steady=True)
    assert (time.kind, time.opened_s, time.closed_s) == ("steady", 0.0, 1.0)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(bursts(4, 1), id="one round, all sent at once"),
        pytest.param([request(0, 0.0, 1.0), request(1, 0.5, 1.5)], id="closed within a request"),
        pytest.param([request(0, 0.0, 1.0)], id="one request"),
    ],
)
def test_a_window_shorter_than_a_request_is_none(records: list[RequestRecord]) -> None:
    assert measured_time(records, ramp=0, steady=True).kind == "whole"


def test_a_round_that_ends_a_little_early_is_a_round() -> None:
    records = [request(0, 0.0, 1.0), request(1, 0.95, 1.95)]
    assert measured_time(records, ramp=0, steady=True).kind == "steady"  # 0.95 s >= 0.9 x 1 s


def test_a_level_without_success_is_taken_whole(record: MakeRecord) -> None:
    dead = [record(index=index, sent_s=float(index), error="timeout", last_token_s=None) for index in range(4)]
    time = measured_time(dead, ramp=1, steady=True)
    assert (time.kind, time.opened_s, time.closed_s) == ("whole", 0.0, 11.0)


def test_an_open_loop_begins_when_its_first_request_is_due(record: MakeRecord) -> None:
    assert measured_time([record(due_s=9.5)], ramp=0, steady=False).opened_s == pytest.approx(9.5)


def test_the_ramp_is_the_first_requests_by_number(record: MakeRecord) -> None:
    records = [record(index=index) for index in (7, 5, 6)]
    first, measured = split(records, 1)
    assert ([one.index for one in first], [one.index for one in measured]) == ([5], [6, 7])


@pytest.mark.parametrize(
    ("arrival", "protocol", "steady"),
    [
        ("closed", "seatrial", True),
        ("closed", "jumpstart-2024", False),
        ("poisson", "seatrial", False),
        ("replay", "seatrial", False),
    ],
)
def test_only_our_closed_loop_has_a_steady_window(arrival: Arrival, protocol: PreparedBy, steady: bool) -> None:  # noqa: FBT001 (a column of the table)
    assert has_steady_window(arrival, protocol) is steady


@given(st.floats(0.0, 5.0), st.floats(0.001, 5.0), st.lists(st.floats(-1.0, 11.0), max_size=6).map(sorted))
def test_shares_add_up_to_the_whole_request(sent_s: float, lasts_s: float, edges_s: list[float]) -> None:
    record = request(0, sent_s, sent_s + lasts_s)
    shares = [record_share_by(record, edge_s) for edge_s in (-1.0, *edges_s, 11.0)]
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert all(after >= before for before, after in pairwise(shares))
