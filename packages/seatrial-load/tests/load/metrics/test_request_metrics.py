from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.request import Metric, Objective
from seatrial_load.measure.interval import MeasuredTime
from seatrial_load.metrics import request_metrics as metrics
from seatrial_load.slo.evaluate import is_met

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.decode.response import RequestRecord

    MakeRecord = Callable[..., RequestRecord]


def at_most(metric: Metric, bound: float) -> Objective:
    return Objective(metric=metric, statistic="p95", bound=bound, sense="at_most")


def failed(record: MakeRecord, **changes: object) -> RequestRecord:
    return record(error="throttled", last_token_s=None, output_tokens=None, output_tokens_from=None, **changes)


def test_ttft_is_sent_to_first_token(record: MakeRecord) -> None:
    assert metrics.ttft_ms(record()) == pytest.approx(200.0)  # (10.2 - 10.0) x 1000


def test_e2e_is_sent_to_last_token(record: MakeRecord) -> None:
    assert metrics.e2e_latency_ms(record()) == pytest.approx(800.0)  # (10.8 - 10.0) x 1000


def test_latencies_of_an_open_loop_count_from_when_a_request_was_due(record: MakeRecord) -> None:
    """It waited half a second for a free connection: so would a user (coordinated omission)."""
    late = record(due_s=9.5)
    assert metrics.ttft_ms(late) == pytest.approx(700.0)  # (10.2 - 9.5) x 1000
    assert metrics.e2e_latency_ms(late) == pytest.approx(1300.0)
    assert metrics.tpot_ms(late) == metrics.tpot_ms(record())


def test_tpot_leaves_the_first_token_out(record: MakeRecord) -> None:
    assert metrics.tpot_ms(record()) == pytest.approx(200.0)  # (800 - 200) / (4 - 1)


def test_itl_is_each_gap(record: MakeRecord) -> None:
    assert metrics.itl_ms(record()) == pytest.approx((100.0, 200.0, 300.0))  # sums to 800 - 200


def test_ms_per_token_counts_the_first(record: MakeRecord) -> None:
    assert metrics.ms_per_token(record()) == pytest.approx(200.0)  # 800 / 4


def test_bundled_tokens_count_as_the_endpoint_says(record: MakeRecord) -> None:
    bundled = record(output_tokens=13, output_tokens_from="reported")
    assert metrics.tpot_ms(bundled) == pytest.approx(50.0)  # (800 - 200) / (13 - 1)


@pytest.mark.parametrize("tokens", [None, 0, 1])
def test_no_tpot_without_a_second_token(record: MakeRecord, tokens: int | None) -> None:
    assert metrics.tpot_ms(record(output_tokens=tokens)) is None


def test_what_did_not_stream_has_no_ttft_tpot_itl(record: MakeRecord) -> None:
    whole = record(first_token_s=None, token_times_s=())
    assert (metrics.ttft_ms(whole), metrics.tpot_ms(whole), metrics.itl_ms(whole)) == (None, None, ())
    assert metrics.e2e_latency_ms(whole) == pytest.approx(800.0)


@pytest.mark.parametrize("tokens", [None, 0])
def test_no_ms_per_token_without_tokens(record: MakeRecord, tokens: int | None) -> None:
    assert metrics.ms_per_token(record(output_tokens=tokens)) is None


def over(opened_s: float, closed_s: float) -> MeasuredTime:
    return MeasuredTime(kind="whole", opened_s=opened_s, closed_s=closed_s)


def test_rates_are_per_second_of_the_window(record: MakeRecord) -> None:
    later = record(sent_s=11.0, first_token_s=11.2, token_times_s=(11.2, 11.3), last_token_s=11.3, ended_s=14.0)
    records = [record(), later, failed(record, ended_s=12.0)]
    assert metrics.requests_per_s(records, over(10.0, 14.0)) == pytest.approx(0.5)  # 2 successes / 4 s
    assert metrics.output_tok_s(records, over(10.0, 14.0)) == pytest.approx(2.0)  # (4 + 4) / 4 s
    assert metrics.total_tok_s(records, over(10.0, 14.0)) == pytest.approx(10.0)  # (4 + 4 + 16 + 16) / 4 s
    assert metrics.error_rate(records) == pytest.approx(1 / 3)


def test_a_request_counts_by_the_share_of_its_time_in_the_window(record: MakeRecord) -> None:
    assert metrics.requests_per_s([record()], over(10.0, 10.5)) == pytest.approx(1.0)  # half of 10.0 to 11.0, in 0.5 s
    assert metrics.requests_per_s([record()], over(11.0, 12.0)) == 0.0


def test_its_tokens_count_by_the_same_share(record: MakeRecord) -> None:
    assert metrics.output_tok_s([record()], over(10.0, 10.25)) == pytest.approx(4.0)  # a quarter of 4 tokens in 0.25 s
    assert metrics.total_tok_s([record()], over(10.0, 10.25)) == pytest.approx(20.0)  # a quarter of 20
    assert metrics.output_tok_s([record()], over(10.75, 11.25)) == pytest.approx(2.0)  # the last quarter, in 0.5 s


def test_slices_share_out_the_throughput(record: MakeRecord) -> None:
    slices = metrics.output_tok_s_slices([record(), record(ended_s=10.5)], over(10.0, 11.0))
    assert slices == pytest.approx((12.0,) * 5 + (4.0,) * 5)  # 4 and 8 tok/s, then 4
    assert metrics.output_tok_s_slices([record(output_tokens=None)], over(10.0, 11.0)) == ()


def test_requests_in_flight_are_averaged_over_the_window(record: MakeRecord) -> None:
    records = [record(), failed(record, sent_s=10.5, ended_s=11.5)]
    assert metrics.in_flight(records, over(10.0, 12.0)) == pytest.approx(1.0)  # (1 + 1) s / 2 s
    assert metrics.in_flight(records, over(10.5, 11.0)) == pytest.approx(2.0)


def test_no_throughput_from_unknown_counts(record: MakeRecord) -> None:
    window = over(10.0, 11.0)
    assert metrics.output_tok_s([record(), record(output_tokens=None)], window) is None
    assert metrics.output_tok_s([failed(record)], window) is None
    assert metrics.total_tok_s([record(), record(input_tokens=None)], window) is None


def test_nothing_from_nothing(record: MakeRecord) -> None:
    assert metrics.output_tok_s([], over(10.0, 11.0)) is None
    assert metrics.requests_per_s([record()], over(10.0, 10.0)) is None
    assert metrics.output_tok_s_slices([record()], over(10.0, 10.0)) == ()
    assert metrics.error_rate([]) is None
    assert metrics.parts_per_token(0, 0) is None


def test_goodput_counts_successes_within_every_bound(record: MakeRecord) -> None:
    slow = record(first_token_s=10.3, ended_s=12.0)
    records, window = [record(), slow, failed(record)], over(10.0, 12.0)
    assert metrics.goodput_requests_per_s(records, window, [at_most("ttft_ms", 250.0)]) == pytest.approx(0.5)  # 1 / 2 s
    assert metrics.goodput_requests_per_s(records, window, []) == pytest.approx(1.0)  # 2 / 2 s


def test_parts_per_token() -> None:
    assert metrics.parts_per_token(3, 12) == pytest.approx(0.25)  # four tokens a piece


@pytest.mark.parametrize(("ttft_ms", "share"), [(100.0, 0.0), (400.0, 0.75), (80.0, 0.0), (0.0, None)])
def test_queue_share_is_what_the_unloaded_engine_does_not_have(ttft_ms: float, share: float | None) -> None:
    assert metrics.queue_share(100.0, ttft_ms) == share  # 1 - 100 / 400


def test_goodput_ignores_objectives_on_levels(record: MakeRecord) -> None:
    rate = Objective(metric="error_rate", statistic="value", bound=0.0, sense="at_most")
    assert metrics.meets_every(record(), [rate])


def test_one_token_has_no_tpot_to_miss_but_a_missing_ttft_is_a_miss(record: MakeRecord) -> None:
    assert metrics.meets_every(record(output_tokens=1), [at_most("tpot_ms", 1.0)])
    assert not metrics.meets_every(record(output_tokens=None), [at_most("tpot_ms", 1.0)])
    assert not metrics.meets_every(record(first_token_s=None), [at_most("ttft_ms", 1e9)])


@pytest.mark.parametrize(("value", "met"), [(99.9, True), (100.0, True), (100.1, False)])
def test_the_bound_itself_is_met(value: float, met: bool) -> None:  # noqa: FBT001 (a column of the table)
    assert is_met(value, at_most("ttft_ms", 100.0)) is met
    at_least = Objective(metric="output_tok_s", statistic="value", bound=100.0, sense="at_least")
    assert is_met(200.0 - value, at_least) is met
