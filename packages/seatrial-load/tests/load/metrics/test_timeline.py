"""What happened within a level: bins of tokens, requests in flight and TTFT, and how those of workers add up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.decode.response import RequestRecord
from seatrial_load.documents.result import LevelResult, Timeline
from seatrial_load.metrics.aggregate import MOST_BINS, LevelTally, added_timelines, merge, tally_of, timeline_of


def request(
    sent_s: float, first_s: float | None, ended_s: float, *, tokens: int = 10, failed: bool = False
) -> RequestRecord:
    return RequestRecord(
        sent_s=sent_s,
        first_token_s=first_s,
        token_times_s=(),
        last_token_s=None if failed else ended_s,
        ended_s=ended_s,
        input_tokens=5,
        output_tokens=None if failed else tokens,
        output_tokens_from=None if failed else "reported",
        error="timeout" if failed else None,
        status=200,
        detail="",
    )


def test_tokens_are_spread_from_the_first_to_the_last() -> None:
    found = timeline_of([request(100.0, 100.5, 101.0, tokens=8)])
    assert found.bin_s == 1 / 16
    assert found.output_tokens == (0.0,) * 8 + (1.0,) * 8


def test_tokens_of_an_answer_that_was_not_streamed_come_at_its_end() -> None:
    found = timeline_of([request(0.0, None, 0.25, tokens=8)])
    assert found.output_tokens == (0.0, 0.0, 0.0, 8.0)
    assert found.ttft_ms == (None,) * 4


def test_requests_in_flight_are_averaged_over_each_bin() -> None:
    found = timeline_of([request(0.0, 0.1, 0.125), request(0.0, 0.1, 0.09375, failed=True)])
    assert found.in_flight == (2.0, 1.5)


def test_ttft_stands_where_the_request_was_sent() -> None:
    found = timeline_of([request(0.0, 0.1, 0.125), request(0.01, 0.04, 0.125), request(0.07, 0.1, 0.12)])
    assert found.first_tokens == (2, 1)
    assert found.ttft_ms == (65.0, 30.0)


def test_a_failed_request_yields_neither_tokens_nor_ttft() -> None:
    found = timeline_of([request(0.0, 0.01, 0.0625, failed=True)])
    assert (found.output_tokens, found.first_tokens, found.ttft_ms) == ((0.0,), (0,), (None,))


@pytest.mark.parametrize(
    ("length_s", "bin_s", "bins"),
    [(0.0, 1 / 16, 1), (3.75, 1 / 16, 60), (3.8, 0.125, 31), (60.0, 1.0, 60), (61, 2.0, 31)],
)
def test_a_level_has_at_most_sixty_bins(length_s: float, bin_s: float, bins: int) -> None:
    found = timeline_of([request(0.0, None, length_s)])
    assert (found.bin_s, len(found.in_flight)) == (bin_s, bins)


SENDINGS = st.tuples(st.floats(0.0, 500.0), st.floats(0.0, 50.0), st.floats(0.0, 50.0), st.integers(1, 500))


@given(st.lists(SENDINGS, min_size=1, max_size=30))
def test_nothing_is_lost_between_the_bins(sendings: list[tuple[float, float, float, int]]) -> None:
    records = [
        request(sent_s, sent_s + first_s, sent_s + first_s + rest_s, tokens=tokens)
        for sent_s, first_s, rest_s, tokens in sendings
    ]
    found = timeline_of(records)
    assert len(found.in_flight) <= MOST_BINS
    assert math.fsum(found.output_tokens) == pytest.approx(sum(tokens for *_, tokens in sendings), abs=0.05)
    busy_s = sum(first_s + rest_s for _, first_s, rest_s, _ in sendings)
    assert math.fsum(found.in_flight) * found.bin_s == pytest.approx(busy_s, rel=1e-3, abs=0.001 * 60 * found.bin_s)
    assert sum(found.first_tokens) == len(records)


def test_workers_that_loaded_side_by_side_add_up() -> None:
    one = Timeline(
        bin_s=1.0, output_tokens=(10.0, 4.0), in_flight=(2.0, 1.0), first_tokens=(3, 0), ttft_ms=(10.0, None)
    )
    other = Timeline(bin_s=1.0, output_tokens=(5.0,), in_flight=(1.0,), first_tokens=(1,), ttft_ms=(30.0,))
    assert added_timelines([one, other]) == Timeline(
        bin_s=1.0, output_tokens=(15.0, 4.0), in_flight=(3.0, 1.0), first_tokens=(4, 0), ttft_ms=(15.0, None)
    )


def test_the_finer_bins_of_a_shorter_share_become_wider() -> None:
    fine = Timeline(
        bin_s=0.5,
        output_tokens=(1.0, 2.0, 4.0),
        in_flight=(2.0, 1.0, 3.0),
        first_tokens=(1, 3, 0),
        ttft_ms=(8.0, 4.0, None),
    )
    wide = Timeline(
        bin_s=1.0, output_tokens=(10.0, 0.0), in_flight=(1.0, 0.0), first_tokens=(0, 0), ttft_ms=(None, None)
    )
    assert added_timelines([fine, wide]) == Timeline(
        bin_s=1.0, output_tokens=(13.0, 4.0), in_flight=(2.5, 1.5), first_tokens=(4, 0), ttft_ms=(5.0, None)
    )


def test_a_sum_with_a_share_that_kept_none_is_unknown() -> None:
    kept = timeline_of([request(0.0, 0.1, 0.2)])
    assert added_timelines([kept, None]) is None
    assert added_timelines([]) is None


def test_a_tally_carries_its_timeline_and_merges_it() -> None:
    records = [request(0.0, 0.1, 0.2), request(0.1, 0.15, 0.4)]
    tally = tally_of(records, concurrency=2, objectives=[])
    assert LevelTally.from_json(tally.to_json()).timeline == timeline_of(records)
    assert merge([tally, tally]).timeline == added_timelines([timeline_of(records)] * 2)


def test_an_older_result_has_no_timeline() -> None:
    assert LevelResult.__dataclass_fields__["timeline"].default is None
