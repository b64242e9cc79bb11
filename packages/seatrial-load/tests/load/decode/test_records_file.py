from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.decode.response import read_records, write_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial_load.decode.response import RequestRecord

    MakeRecord = Callable[..., RequestRecord]


def test_a_request_is_a_line_in_milliseconds_since_the_first(record: MakeRecord) -> None:
    file = io.StringIO()
    write_records(file, [record(index=7, parts=2, due_s=9.999), record(index=6, sent_s=9.5)], concurrency=4, ramp=1)
    ramp, measured = map(json.loads, file.getvalue().splitlines())
    assert (ramp["index"], ramp["ramp"], ramp["sent_ms"]) == (6, True, 0.0)
    assert measured == {
        "concurrency": 4,
        "ramp": False,
        "index": 7,
        "sent_ms": 500.0,
        "due_ms": 499.0,
        "first_token_ms": 700.0,
        "last_token_ms": 1300.0,
        "ended_ms": 1500.0,
        "token_times_ms": [700.0, 800.0, 1000.0, 1300.0],
        "input_tokens": 16,
        "output_tokens": 4,
        "output_tokens_from": "events",
        "parts": 2,
        "error": None,
        "status": 200,
        "detail": "",
        "retried": [],
        "doubts": [],
        "turn": 0,
        "cached_tokens": None,
    }


def test_levels_are_appended_and_read_back(record: MakeRecord, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    failed = record(error="throttled", last_token_s=None, detail="slow — down", retried=("throttled", "not_ready"))
    write_records(path, [record()], concurrency=1)
    write_records(path, [failed], concurrency=2)
    first, second = read_records(path)
    assert (first.concurrency, first.error, first.last_token_ms) == (1, None, 800.0)
    assert (second.concurrency, second.error, second.detail) == (2, "throttled", "slow — down")
    assert (second.last_token_ms, second.retried) == (None, ("throttled", "not_ready"))


def test_a_line_that_is_none_is_named(record: MakeRecord, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    write_records(path, [record()], concurrency=1)
    path.write_text(path.read_text(encoding="utf-8") + "{}\n", encoding="utf-8")
    with pytest.raises(BenchError) as caught:
        list(read_records(path))
    assert str(caught.value).splitlines()[0] == f"{path}:2: concurrency: SEA501: missing"
