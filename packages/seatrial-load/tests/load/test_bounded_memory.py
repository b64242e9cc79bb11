"""What a server sends has no end, what the client keeps has: floods are cut, counted as failed, and forgotten."""

from __future__ import annotations

import json
import random
import socket
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial_load.decode.event_stream import encode_frame
from seatrial_load.decode.exchange import FOLD_BYTES, Holding, Inbox, Limits, limits_of
from seatrial_load.decode.http1 import TooLargeError
from seatrial_load.decode.timed_answer import TimedAnswerReader
from seatrial_load.documents.request import Workload
from seatrial_load.payload.answer import LineReader
from tests.load.flooded_client import Flooded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CLIENT = Path(__file__).with_name("flooded_client.py")
REPOSITORY = Path(__file__).parents[4]
BOUND_MIB = 512
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
PLAIN = HEAD + b"\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
FRAMED = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n\r\n"
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
LAST = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'
EVENT = encode_frame({":message-type": "event", ":event-type": "PayloadPart"}, TOKEN)
HUGE_FRAME = struct.pack(">III", 2**32 - 1, 0, 0x2144DF1C)
TOO_LARGE = ("answer_too_large", "more than 8 MiB")

linux_only = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")


def endless(beginning: bytes, more: bytes) -> Iterator[bytes]:
    return chain([beginning], repeat(more * (1 + 65_536 // len(more))))


@contextmanager
def flooding(answer: Callable[[], Iterable[bytes]]) -> Iterator[int]:
    """Answer every request with these pieces, as fast as the client takes them; give the port."""

    def flood(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while connection.recv(65_536):
                for piece in answer():
                    connection.sendall(piece)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=flood, args=(listener.accept()[0],), daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    threading.Thread(target=accept, args=(listener,), daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def flooded(
    answer: Callable[[], Iterable[bytes]], *, streams: int = 1, requests: int = 1, wave_bytes: int = 0
) -> Flooded:
    with flooding(answer) as port:
        command = [sys.executable, str(CLIENT), *map(str, (port, streams, requests, wave_bytes))]
        ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    seen = Flooded(**json.loads(ended.stdout))
    return replace(seen, failures=[(error, detail) for error, detail in seen.failures])


@linux_only
@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        pytest.param(PLAIN, b": still here\n\n", id="endless comments"),
        pytest.param(PLAIN, b"\n", id="endless blank lines"),
        pytest.param(PLAIN, TOKEN, id="endless tokens"),
        pytest.param(PLAIN + b'data: {"choices":[{"delta":{"content":"', b"a", id="a token without end"),
        pytest.param(PLAIN, b"[", id="one line of brackets"),
        pytest.param(HEAD + b"Content-Length: 99999999999999\r\n\r\n", TOKEN, id="a huge content length"),
        pytest.param(CHUNKED, b"40\r\n" + b"\n" * 64 + b"\r\n", id="small chunks"),
        pytest.param(CHUNKED, b"1;" + b"x" * 1_000 + b"\r\n\n\r\n", id="endless chunk extensions"),
        pytest.param(CHUNKED + b"0\r\n", b"a: %b\r\n" % (b"b" * 500), id="endless trailers"),
        pytest.param(FRAMED, EVENT, id="endless event frames"),
        pytest.param(FRAMED + HUGE_FRAME, b"\0", id="a frame that announces 4 GiB"),
        pytest.param(b"HTTP/1.1 500 Error\r\n\r\n", b"error ", id="an endless error"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08" + bytes(7),
            b"\xff",
            id="gzip not asked for",
        ),
    ],
)
def test_an_answer_without_end_is_cut_at_its_limit(beginning: bytes, more: bytes) -> None:
    seen = flooded(lambda: endless(beginning, more))
    assert (seen.failures, seen.tokens) == ([TOO_LARGE], [0])
    assert seen.peak_mib < BOUND_MIB / 2


@linux_only
@pytest.mark.parametrize(
    ("beginning", "more", "because"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n", "within 65536 bytes", id="endless headers"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", "more than 16 interim", id="endless 100 Continue"),
    ],
)
def test_a_head_without_end_is_no_response(beginning: bytes, more: bytes, because: str) -> None:
    seen = flooded(lambda: endless(beginning, more))
    ((error, detail),) = seen.failures
    assert error == "protocol"
    assert because in detail
    assert seen.peak_mib < BOUND_MIB / 2


@linux_only
def test_a_token_of_100_mb_is_a_failed_request() -> None:
    token = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"a" * 100_000_000 + b'"}}]}\n\n'
    assert flooded(lambda: [PLAIN, token, LAST]).failures == [TOO_LARGE]


@linux_only
def test_32_endless_answers_at_a_time_are_cut_as_one_is() -> None:
    seen = flooded(lambda: endless(PLAIN, TOKEN), streams=32, requests=32)
    assert {error for error, _ in seen.failures} == {"answer_too_large"}
    assert seen.peak_mib < BOUND_MIB


@linux_only
def test_answers_just_below_their_limit_that_do_not_fold_are_cut_when_all_take_too_much_together() -> None:
    noise = random.Random(1).randbytes(1_000_000).replace(b"\n", b"-")  # noqa: S311 (noise, no secret)
    seen = flooded(lambda: [PLAIN, b": ", noise], requests=4, wave_bytes=100_000)
    assert {error for error, _ in seen.failures} == {"answer_too_large"}
    assert seen.failures[0][1] == "more than 0.09537 MiB for all answers of the level"


@linux_only
def test_honest_answers_far_larger_than_a_fold_are_read_as_they_came() -> None:
    body = TOKEN * 5_000 + LAST
    seen = flooded(lambda: [HEAD + b"Content-Length: %d\r\n\r\n" % len(body), body], streams=4, requests=8)
    assert seen.failures == [(None, "")] * 8
    assert seen.tokens == [5_001] * 8


def inbox_of(arrivals: Iterable[bytes], limits: Limits | None = None) -> tuple[Inbox, Holding]:
    holding = Holding(limits or Limits())
    inbox = Inbox(holding)
    for at_s, data in enumerate(arrivals):
        inbox.add(float(at_s), data)
    return inbox, holding


def test_a_folded_body_keeps_every_byte_and_the_time_of_each_arrival() -> None:
    inbox, holding = inbox_of([PLAIN, *([TOKEN] * 2_000)])
    assert list(inbox.body) == [(float(at_s), TOKEN) for at_s in range(1, 2_001)]
    assert FOLD_BYTES < holding.held_bytes < 2_000 * (len(TOKEN) + 96)


def test_chunks_that_arrive_together_are_kept_as_one_arrival() -> None:
    inbox, _ = inbox_of([CHUNKED, b"1\r\na\r\n" * 3 + b"1\r\n", b"b\r\n"])
    assert list(inbox.body) == [(1.0, b"aaa"), (2.0, b"b")]


def test_an_answer_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    limits = Limits(answer_bytes=len(PLAIN) + 10)
    inbox, holding = inbox_of([PLAIN, b"0123456789"], limits)
    assert list(inbox.body) == [(1.0, b"0123456789")]
    with pytest.raises(TooLargeError, match=r"^more than \S+ MiB$"):
        inbox.add(2.0, b"x")
    assert (list(inbox.body), holding.held_bytes) == ([], 0)


def test_an_answer_that_is_dropped_gives_its_room_back() -> None:
    inbox, holding = inbox_of([PLAIN, *([TOKEN] * 3_000)])
    inbox.end()
    inbox.drop()
    assert holding.held_bytes == 0


def test_the_limits_grow_with_what_is_asked_for() -> None:
    def limits(tokens: int, requests: int) -> tuple[int, int]:
        workload = Workload(input_tokens=8, output_tokens=tokens, schema="openai_chat")
        found = limits_of(workload, requests)
        return found.answer_bytes // 2**20, found.wave_bytes // 2**20

    assert limits(128, 10) == (8, 128)
    assert limits(4_096, 100) == (8, 203)
    assert limits(32_768, 512) == (64, 3_200)


def test_processes_share_the_room_of_a_level() -> None:
    assert Limits(answer_bytes=8, wave_bytes=100).share(4) == Limits(answer_bytes=8, wave_bytes=25)


def test_a_line_of_a_mib_is_read_and_a_longer_one_is_not() -> None:
    line = b"a" * 2**20
    assert LineReader().feed(line + b"\n") == [line]
    reader = TimedAnswerReader()
    reader.feed(0.0, line)
    with pytest.raises(TooLargeError, match=r"^a line or an event has more than 1 MiB$"):
        reader.feed(0.0, b"a")
    with pytest.raises(TooLargeError, match=r"^a line or an event has more than 1 MiB$"):
        TimedAnswerReader().feed(0.0, b"\n" + line + b"a\n")
