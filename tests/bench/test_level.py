from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.bench.level import measure_level
from seatrial.bench.request import Objective

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.record import RequestRecord

    MakeRecord = Callable[..., RequestRecord]

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=150.0, sense="at_most")
FAILED: dict[str, object] = {"last_token_s": None, "output_tokens": None, "output_tokens_from": None}


def test_a_level_sums_up_its_records(record: MakeRecord) -> None:
    records = [record(), record(first_token_s=10.4), record(error="timeout", detail="no answer", **FAILED)]
    level = measure_level(3, records, [TTFT])
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
    level = measure_level(1, [record(error="throttled", detail="slow down", **FAILED)] * 2, [TTFT])
    assert (level.ttft_ms, level.tpot_ms, level.itl_ms, level.e2e_latency_ms, level.ms_per_token) == (None,) * 5
    assert (level.output_tok_s, level.output_tokens_mean) == (None, None)
    assert level.requests_per_s == 0.0  # nothing succeeded in a window that was measured: this zero is one
    assert level.misses == ("0 of 2 requests succeeded at concurrency 1 per copy: throttled 2 (throttled: slow down)",)


def test_one_sample_of_each_error_class_most_frequent_class_first(record: MakeRecord) -> None:
    errors = ["timeout", "throttled", "throttled"]
    records = [record(error=error, detail=f"{index}", **FAILED) for index, error in enumerate(errors)]
    level = measure_level(1, records, [])
    assert list(level.errors.items()) == [("throttled", 2), ("timeout", 1)]
    assert level.first_errors == ("timeout: 0", "throttled: 1")
