from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.client.worker_pool import (
    READY,
    REPORT,
    FrameReader,
    WorkerReport,
    frame,
    read_report,
    read_seconds,
    write_report,
    write_seconds,
)
from seatrial_load.documents.result import ClientEvidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.decode.response import RequestRecord

EVIDENCE = ClientEvidence(
    workers=1, streams=3, receive_lag_p99_ms=0.25, delivered_concurrency=None, cpu_share=0.5, idle_ms=1e-9
)


def test_a_report_comes_back_as_it_was(record: Callable[..., RequestRecord]) -> None:
    records = (
        record(index=3, retried=("throttled", "not_ready"), due_s=9.9, parts=4),
        record(
            token_times_s=(), first_token_s=None, error="stalled", detail="the answer stopped · é", output_tokens=None
        ),
        record(token_times_s=(0.1 + 0.2, 1e300)),
        record(doubts=("ended_early", "blank"), other_model="tiny", text_digest=7, cached_tokens=5),
    )
    report = WorkerReport(records=records, evidence=EVIDENCE, cut=True, started_s=1.5, ended_s=99.25)
    assert read_report(write_report(report)) == report


@given(st.lists(st.binary(max_size=40)), st.data())
def test_frames_come_back_whatever_the_split(contents: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame(REPORT, content) for content in contents) + frame(READY)
    cuts = data.draw(st.lists(st.integers(0, len(stream))))
    reader = FrameReader()
    edges = [0, *sorted(cuts), len(stream)]
    got = [entry for a, b in itertools.pairwise(edges) for entry in reader.feed(stream[a:b])]
    assert got == [*((REPORT, content) for content in contents), (READY, b"")]


@given(st.lists(st.floats(allow_nan=False)))
def test_durations_come_back_bit_by_bit(seconds: list[float]) -> None:
    assert list(read_seconds(write_seconds(seconds))) == seconds
