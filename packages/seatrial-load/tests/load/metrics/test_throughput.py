from __future__ import annotations

import heapq
import random
from typing import TYPE_CHECKING

import pytest

from seatrial_load.decode.response import RequestRecord
from seatrial_load.measure.interval import MeasuredTime
from seatrial_load.metrics.aggregate import added, output_tok_s_interval, throughput_of
from seatrial_load.metrics.level import level_of_records

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeRecord = Callable[..., RequestRecord]


def closed_loop(streams: int, rounds: int, *, seed: int, spread: float) -> list[RequestRecord]:
    """Simulated streams that don't disturb one another; lengths and paces are random, 50 ms to the first token."""
    drawn = random.Random(seed)  # noqa: S311 (a simulation, not a secret)
    free, records = [0.0] * streams, []
    for index in range(streams * rounds):
        sent_s = heapq.heappop(free)
        tokens = max(4, round(drawn.gauss(64, 64 * spread)))
        ended_s = sent_s + 0.05 + 0.01 * drawn.lognormvariate(0, spread) * (tokens - 1)
        heapq.heappush(free, ended_s)
        records.append(
            RequestRecord(
                sent_s=sent_s,
                first_token_s=sent_s + 0.05,
                token_times_s=(),
                last_token_s=ended_s,
                ended_s=ended_s,
                input_tokens=8,
                output_tokens=tokens,
                output_tokens_from="reported",
                error=None,
                status=200,
                detail="",
                index=index,
            )
        )
    return records


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_the_steady_window_is_unbiased_and_its_interval_holds(spread: float) -> None:
    truth = level_of_records(16, closed_loop(16, 1_000, seed=0, spread=spread), [], ramp=16).output_tok_s or 0.0
    levels = [level_of_records(16, closed_loop(16, 4, seed=seed, spread=spread), [], ramp=16) for seed in range(1, 201)]
    assert {level.window for level in levels} == {"steady"}
    mean = sum(level.output_tok_s or 0.0 for level in levels) / len(levels)
    assert mean == pytest.approx(truth, rel=0.01)
    bounds = [level.output_tok_s_interval for level in levels]
    holds = [bound is not None and (bound.low or 0.0) <= truth <= (bound.high or 0.0) for bound in bounds]
    assert sum(holds) / len(holds) >= 0.9  # of 95 %: the window begins with a sending, not just anywhere


def test_the_whole_level_understates_a_steady_one() -> None:
    records = closed_loop(16, 4, seed=1, spread=0.3)
    steady = level_of_records(16, records, [], ramp=16)
    whole = level_of_records(16, records, [], ramp=16, protocol="jumpstart-2024")
    assert (steady.window, whole.window) == ("steady", "whole")
    assert (whole.output_tok_s or 0.0) < 0.9 * (steady.output_tok_s or 0.0)


def over(closed_s: float) -> MeasuredTime:
    return MeasuredTime(kind="steady", opened_s=0.0, closed_s=closed_s)


def rows(record: MakeRecord, *lengths_s: float) -> list[RequestRecord]:
    """One stream: requests of 4 tokens, one after the other."""
    made, at_s = [], 0.0
    for length_s in lengths_s:
        made.append(record(sent_s=at_s, ended_s=at_s + length_s))
        at_s += length_s
    return made


def test_where_slices_are_as_long_as_a_request_the_wider_interval_counts(record: MakeRecord) -> None:
    # nearly equal requests, but slower and slower: from request to request little differs, from slice to slice as well
    records = rows(record, *(1.0 + number / 100 for number in range(20)))
    share = throughput_of(records, over(records[-1].ended_s), [])
    closed = output_tok_s_interval(share, request_ms=1_100.0, arrival="closed")
    batches = output_tok_s_interval(share, request_ms=1_100.0, arrival="poisson")
    paces = output_tok_s_interval(share, request_ms=9_000.0, arrival="closed")  # too long for any slice
    assert closed is not None
    assert batches is not None
    assert paces is not None
    assert closed in {batches, paces}
    assert (closed.high or 0.0) == max(batches.high or 0.0, paces.high or 0.0)


def test_ten_slices_become_five_pairs_before_they_are_too_short(record: MakeRecord) -> None:
    records = rows(record, *[1.0] * 6)
    share = throughput_of(records, over(6.0), [])
    five = output_tok_s_interval(share, request_ms=1_200.0, arrival="poisson")  # 6 s / 1.2 s
    assert five is not None
    assert (five.low, five.high) == pytest.approx((4.0, 4.0))
    assert output_tok_s_interval(share, request_ms=1_201.0, arrival="poisson") is None


def test_nothing_known_has_no_interval(record: MakeRecord) -> None:
    share = throughput_of([record(output_tokens=None)], over(20.0), [])
    assert output_tok_s_interval(share, request_ms=1_000.0, arrival="closed") is None
    one = throughput_of([record()], over(20.0), [])
    assert output_tok_s_interval(one, request_ms=None, arrival="closed") is None
    assert output_tok_s_interval(one, request_ms=9_000.0, arrival="closed") is None  # one request doesn't differ


def test_shares_add_up_in_every_number(record: MakeRecord) -> None:
    records = rows(record, 1.0, 2.0, 3.0, 1.5)
    whole = throughput_of(records, over(7.5), [])
    halves = added([throughput_of(records[::2], over(7.5), []), throughput_of(records[1::2], over(7.5), [])])
    assert halves.output_tok_s == pytest.approx(whole.output_tok_s)
    assert halves.output_tok_s_slices == pytest.approx(whole.output_tok_s_slices)
    assert halves.pace.tokens_by_seconds == pytest.approx(whole.pace.tokens_by_seconds)
    assert halves.pace.in_window == pytest.approx(4.0)
    bounds = output_tok_s_interval(halves, request_ms=1_750.0, arrival="closed")
    expected = output_tok_s_interval(whole, request_ms=1_750.0, arrival="closed")
    assert bounds is not None
    assert expected is not None
    assert (bounds.low, bounds.high) == pytest.approx((expected.low, expected.high))
