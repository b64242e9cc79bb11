from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.bench.cross_check import compare, cross_check, verdict_of
from seatrial.bench.evidence import CrossCheck
from seatrial.bench.exchange import Exchange, Inbox
from seatrial.bench.request import Target
from seatrial.bench.wire.event_stream import encode_frame

if TYPE_CHECKING:
    from collections.abc import Callable

EVENT = {":message-type": "event", ":event-type": "PayloadPart", ":content-type": "application/octet-stream"}
SAGEMAKER = Target(endpoint_name="chat", inference_component=None, region="eu-west-1")
TWO = [encode_frame(EVENT, b'{"token": 1}\n'), encode_frame(EVENT, b'{"token": 22}\n')]


def exchange(body: bytes, content_type: str) -> Exchange:
    inbox = Inbox()
    inbox.add(0.0, f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    for start in range(0, len(body), 7):
        inbox.add(0.1, body[start : start + 7])
    return Exchange(sent_s=0.0, ended_s=0.2, inbox=inbox, failure=None)


def test_boto3_reads_the_same_events_out_of_the_very_bytes() -> None:
    answered = exchange(b"".join(TWO), "application/vnd.amazon.eventstream")
    assert cross_check(SAGEMAKER, answered) == CrossCheck(
        agreed=True, because="2 events with 27 bytes of payload, the same in boto3's parser"
    )


def test_both_read_an_exception_inside_a_stream() -> None:
    headers = {":message-type": "exception", ":exception-type": "ModelStreamError", ":content-type": "application/json"}
    failed = encode_frame(headers, b'{"Message":"gone","ErrorCode":"StreamBroken"}')
    assert compare([TWO[0], failed]) == CrossCheck(
        agreed=True, because="2 events with 13 bytes of payload, the same in boto3's parser"
    )


def broken_crc(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


def broken_prelude(frame: bytes) -> bytes:
    return frame[:8] + bytes([frame[8] ^ 1]) + frame[9:]


@pytest.mark.parametrize("breaking", [broken_crc, broken_prelude, lambda frame: frame[:-3]])
def test_both_refuse_a_broken_frame(breaking: Callable[[bytes], bytes]) -> None:
    checked = compare([TWO[0], breaking(TWO[1])])
    assert checked == CrossCheck(agreed=True, because="2 events with 13 bytes of payload, the same in boto3's parser")


def test_an_empty_body_has_no_events() -> None:
    assert compare([]).because == "0 events with 0 bytes of payload, the same in boto3's parser"


@pytest.mark.parametrize(
    ("theirs", "because"),
    [
        ([("payload", b"ab"), ("payload", b"cd")], "1 events here, 2 in boto3's parser"),
        ([("payload", b"abc")], "event 1 differs: 2 bytes of payload here, 3 bytes of payload in boto3's parser"),
        ([("payload", b"ac")], "event 1 differs: 2 bytes of payload here, 2 bytes of payload in boto3's parser"),
        (
            [("error", b"ModelStreamError")],
            "event 1 differs: 2 bytes of payload here, error (ModelStreamError) in boto3's parser",
        ),
    ],
)
def test_any_difference_is_told(theirs: list[tuple[str, bytes]], because: str) -> None:
    checked = verdict_of([("payload", b"ab")], theirs)  # type: ignore[arg-type]  # literals of a table
    assert checked == CrossCheck(agreed=False, because=because)


@pytest.mark.parametrize(
    ("target", "content_type", "because"),
    [
        (replace(SAGEMAKER, kind="openai"), "text/event-stream", "boto3 doesn't speak to this kind of server"),
        (SAGEMAKER, "application/json", "the answer is not an event stream"),
    ],
)
def test_what_cannot_be_checked_says_why(target: Target, content_type: str, because: str) -> None:
    checked = cross_check(target, exchange(b"{}", content_type))
    assert checked == CrossCheck(agreed=None, because=f"not made: {because}")


def test_an_answer_that_never_came() -> None:
    silent = Exchange(sent_s=0.0, ended_s=0.1, inbox=Inbox(), failure=None)
    assert cross_check(SAGEMAKER, silent).agreed is None


@given(
    payloads=st.lists(st.binary(max_size=60), max_size=6),
    cuts=st.lists(st.integers(min_value=0, max_value=800), max_size=5),
    flipped=st.none() | st.integers(min_value=0, max_value=799),
)
@settings(max_examples=60, deadline=None)
def test_however_it_is_split_or_broken_both_read_the_same(
    payloads: list[bytes], cuts: list[int], flipped: int | None
) -> None:
    body = bytearray(b"".join(encode_frame(EVENT, payload) for payload in payloads))
    if flipped is not None and flipped < len(body):
        body[flipped] ^= 0x40
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    checked = compare([bytes(body[start:end]) for start, end in pairwise(places)])
    assert checked.agreed, checked.because
