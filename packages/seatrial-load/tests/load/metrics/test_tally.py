from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.errors import BenchError
from seatrial_load.decode.response import RequestRecord
from seatrial_load.documents.request import Objective
from seatrial_load.documents.result import ClientEvidence
from seatrial_load.metrics.aggregate import LevelTally, merge, tally_of
from seatrial_load.metrics.level import level_of, level_of_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_load.documents.distribution import Distribution

    MakeRecord = Callable[..., RequestRecord]

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=250.0, sense="at_most")
FAILED: dict[str, object] = {"last_token_s": None, "output_tokens": None, "output_tokens_from": None}
EVIDENCE = ClientEvidence(
    workers=1, streams=4, receive_lag_p99_ms=2.0, delivered_concurrency=3.9, cpu_share=0.4, send_lag_p99_ms=None
)


@st.composite
def requests(draw: st.DrawFn) -> RequestRecord:
    """A request somewhere within ten seconds: streamed or not, answered or not."""
    sent_s = draw(st.floats(0.0, 10.0))
    gaps_s = draw(st.lists(st.floats(0.001, 2.0), max_size=5))
    times_s = tuple(sent_s + sum(gaps_s[: number + 1]) for number in range(len(gaps_s)))
    last_s = times_s[-1] if times_s else sent_s + draw(st.floats(0.001, 2.0))
    answered = draw(st.booleans())
    return RequestRecord(
        sent_s=sent_s,
        first_token_s=times_s[0] if times_s else None,
        token_times_s=times_s,
        last_token_s=last_s if answered else None,
        ended_s=last_s + draw(st.floats(0.0, 1.0)),
        input_tokens=draw(st.integers(1, 50)),
        output_tokens=draw(st.integers(1, 50)),
        output_tokens_from="reported",
        error=None if answered else draw(st.sampled_from(["timeout", "throttled"])),
        status=200,
        detail="",
        parts=draw(st.one_of(st.none(), st.integers(1, 50))),
        retried=tuple(draw(st.lists(st.sampled_from(["throttled", "not_ready"]), max_size=2))),
    )


def tally(records: Sequence[RequestRecord], **changes: object) -> LevelTally:
    options: dict[str, object] = {"concurrency": 4, "objectives": [TTFT], **changes}
    return tally_of(records, **options)  # type: ignore[arg-type]  # a maker for tests: keywords of any type


def test_round_trip(record: MakeRecord) -> None:
    made = tally([record(retried=("throttled",)), record(error="timeout", **FAILED)], client=EVIDENCE)
    assert LevelTally.from_json(made.to_json()) == made


def test_an_unknown_key_is_refused(record: MakeRecord) -> None:
    text = json.dumps({**json.loads(tally([record()]).to_json()), "more": 1})
    with pytest.raises(BenchError, match=r"^level tally: more: SEA501: unknown key; known are concurrency, arrival"):
        LevelTally.from_json(text)


def test_the_ramp_is_loaded_but_not_measured(record: MakeRecord) -> None:
    ramp = record(index=0, sent_s=9.0, first_token_s=9.9, ended_s=10.0, last_token_s=10.0, token_times_s=(9.9, 10.0))
    failed = record(index=1, error="throttled", detail="slow down", retried=("throttled",), **FAILED)
    made = tally([record(index=3), ramp, failed, record(index=2)], ramp=2)
    assert (made.counts.requests, made.counts.succeeded, made.counts.ramp_requests) == (2, 2, 2)
    assert (made.counts.errors, made.counts.ramp_errors) == ({}, {"throttled": 1})
    assert made.counts.first_errors == {"throttled": "throttled: slow down"}
    assert made.counts.retried == {"throttled": 1}
    assert made.counts.duration_s == pytest.approx(2.0)  # 9 to 11
    assert made.latencies.ttft_ms is not None
    assert made.latencies.ttft_ms.max_ms == pytest.approx(200.0)  # not the ramp's 900
    assert made.throughput.answered == 3


def test_tokens_and_parts(record: MakeRecord) -> None:
    records = [
        record(parts=2),
        record(parts=None, output_tokens=6),
        record(output_tokens=None, input_tokens=None, parts=9),
        record(error="timeout", **FAILED),
    ]
    tokens = tally(records).tokens
    assert (tokens.read, tokens.prompts) == (32, 2)
    assert (tokens.written, tokens.answers) == (10, 2)
    assert (tokens.parts, tokens.written_in_parts) == (2, 4)  # of the answer that told both


def test_shares_add_up(record: MakeRecord) -> None:
    here = tally([record(), record(error="timeout", detail="a", **FAILED)], client=EVIDENCE, offered_requests_per_s=2.0)
    other = replace(EVIDENCE, receive_lag_p99_ms=5.0, cpu_share=0.2, run_delay_share=0.1)
    there = tally([record(error="timeout", detail="b", **FAILED)] * 2, client=other, offered_requests_per_s=1.0)
    both = merge([here, there])
    assert (both.counts.requests, both.counts.succeeded, both.counts.errors) == (4, 1, {"timeout": 3})
    assert both.counts.first_errors == {"timeout": "timeout: a"}
    assert both.throughput.output_tok_s == pytest.approx(4.0)  # 4 tokens in 1 s here; nothing was answered there
    assert both.throughput.output_tok_s_slices == here.throughput.output_tok_s_slices
    assert both.throughput.in_flight == pytest.approx(4.0)
    assert both.offered_requests_per_s == pytest.approx(3.0)
    assert both.client == ClientEvidence(
        workers=2,
        streams=8,
        receive_lag_p99_ms=5.0,
        delivered_concurrency=7.8,
        cpu_share=0.4,
        run_delay_share=0.1,
        send_lag_p99_ms=None,
    )


def test_a_sum_with_a_hole_is_no_sum(record: MakeRecord) -> None:
    both = merge([tally([record()]), tally([record(output_tokens=None)], client=EVIDENCE)])
    assert (both.throughput.output_tok_s, both.throughput.output_tok_s_slices) == (None, ())
    assert both.throughput.requests_per_s == pytest.approx(2.0)
    assert both.client is not None
    assert both.client.delivered_concurrency is None  # of the other nobody knows


def test_one_share_is_the_whole(record: MakeRecord) -> None:
    made = tally([record(), record(error="timeout", **FAILED)], client=EVIDENCE, enough_because="precise enough")
    assert merge([made]) == made


@given(st.lists(st.tuples(requests(), st.integers(0, 3)), min_size=1, max_size=24))
def test_merging_any_split_gives_what_the_whole_gives(dealt: list[tuple[RequestRecord, int]]) -> None:
    hands = [[record for record, hand in dealt if hand == number] for number in range(4)]
    whole = level_of_records(4, [record for hand in hands for record in hand], [TTFT])
    shares = [tally(hand) for hand in hands if hand]
    merged = level_of(merge(shares), [TTFT])
    assert (merged.requests, merged.succeeded, merged.error_rate) == (whole.requests, whole.succeeded, whole.error_rate)
    assert (merged.errors, merged.retried) == (whole.errors, whole.retried)
    assert merged.output_tokens_mean == whole.output_tokens_mean
    assert merged.parts_per_token == whole.parts_per_token
    for ours, theirs in (
        (merged.ttft_ms, whole.ttft_ms),
        (merged.tpot_ms, whole.tpot_ms),
        (merged.itl_ms, whole.itl_ms),
        (merged.e2e_latency_ms, whole.e2e_latency_ms),
    ):
        assert rounded(ours) == rounded(theirs)
    rates = [share.throughput.requests_per_s or 0.0 for share in shares]
    assert merged.requests_per_s == pytest.approx(sum(rates), rel=1e-12)


def rounded(values: Distribution | None) -> object:
    """What must be the same whatever the order of adding: sums differ in the last digit."""
    if values is None:
        return None
    bounds = [(bound.low, bound.high) for name, bound in values.intervals.items() if name != "mean"]
    percentiles = (values.p50, values.p90, values.p95, values.p99, values.max)
    return values.count, pytest.approx(values.mean), percentiles, bounds, values.histogram


def test_workers_side_by_side_yield_what_one_worker_yields(record: MakeRecord) -> None:
    """Four streams in lock step, a round of 1 s, 4 tokens each: by one worker, and by two with two streams each."""

    def streams(numbers: Sequence[int]) -> list[RequestRecord]:
        return [
            record(
                index=4 * turn + stream,
                sent_s=float(turn),
                first_token_s=turn + 0.25,
                token_times_s=(turn + 0.25, turn + 0.5, turn + 0.75, turn + 1.0),
                last_token_s=turn + 1.0,
                ended_s=turn + 1.0,
            )
            for turn in range(4)
            for stream in numbers
        ]

    one = level_of(tally(streams([0, 1, 2, 3]), ramp=4), [TTFT])
    two = level_of(merge([tally(streams([0, 2]), ramp=2), tally(streams([1, 3]), ramp=2)]), [TTFT])
    assert (one.window, one.window_s, one.output_tok_s, one.requests_per_s) == ("steady", 2.0, 16.0, 4.0)
    assert (two.output_tok_s, two.requests_per_s) == (16.0, 4.0)
    assert rounded(two.ttft_ms) == rounded(one.ttft_ms)
    assert two.output_tok_s_interval is not None  # every slice has the same throughput
    assert (two.output_tok_s_interval.low, two.output_tok_s_interval.high) == pytest.approx((16.0, 16.0))
    assert (two.ramp_requests, two.requests) == (one.ramp_requests, one.requests) == (4, 12)
