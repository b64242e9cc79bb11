from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.bench.decode import output_tokens, record_of
from seatrial.bench.exchange import Exchange, Inbox
from seatrial.bench.failure import Failure
from seatrial.bench.wire.event_stream import encode_frame
from seatrial.bench.wire.protocol_error import ProtocolError
from seatrial.bench.wire.tokens import Completion, TokenEvent

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = {":message-type": "event", ":event-type": "PayloadPart"}
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def frames(*payloads: bytes, headers: dict[str, str] | None = None) -> bytes:
    return b"".join(chunk(encode_frame(headers or EVENT, payload)) for payload in payloads)


def lines(tokens: int) -> list[bytes]:
    parts: list[dict[str, object]] = [{"token": {"text": " é"}} for _ in range(tokens)]
    parts[-1] |= {"generated_text": "", "details": {"generated_tokens": tokens + 1, "input_length": 7}}
    return [json.dumps(part, ensure_ascii=False).encode() + b"\n" for part in parts]


def exchange(arrivals: list[bytes], failure: Failure | None = None) -> Exchange:
    inbox = Inbox()
    for second, data in enumerate(arrivals, start=1):
        inbox.add(float(second), data)
    return Exchange(0.5, 99.0, inbox, failure)


def test_each_token_has_the_time_of_its_arrival() -> None:
    first, second, third = lines(3)
    record = record_of(exchange([HEAD, frames(first), frames(second), frames(third) + END]), stream=True)
    assert (record.sent_s, record.token_times_s, record.ended_s) == (0.5, (2.0, 3.0, 4.0), 99.0)
    assert (record.first_token_s, record.last_token_s) == (2.0, 4.0)
    assert (record.error, record.status, record.input_tokens) == (None, 200, 7)


STREAM = HEAD + frames(*lines(3)) + END


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_any_split_of_the_bytes_gives_the_same_tokens(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(STREAM)})
    arrivals = [STREAM[a:b] for a, b in itertools.pairwise(edges)]
    got = exchange(arrivals)
    record = record_of(got, stream=True)
    assert got.inbox.parser.complete
    assert (record.error, record.output_tokens, len(record.token_times_s)) == (None, 3, 3)


def test_completeness_is_known_with_the_last_byte_and_not_before() -> None:
    inbox = Inbox()
    assert [inbox.add(0.0, STREAM[index : index + 1]) for index in range(len(STREAM))].index(True) == len(STREAM) - 1


def test_bytes_that_only_look_like_an_end_are_not_one() -> None:
    inbox = Inbox()
    assert not inbox.add(0.0, HEAD + b"8\r\n0\r\n\r\n")
    assert inbox.add(1.0, b"abc\r\n" + END)


@pytest.mark.parametrize(
    ("events", "reported", "chosen"),
    [
        (4, None, (4, "events")),
        (4, 4, (4, "events")),
        (4, 5, (4, "events")),
        (4, 3, (4, "events")),
        (4, 6, (6, "reported")),
        (0, 1, (1, "reported")),
        (0, 9, (9, "reported")),
        (0, None, (None, None)),
    ],
)
def test_which_count_is_used(events: int, reported: int | None, chosen: tuple[int | None, str | None]) -> None:
    said = Completion(
        tuple(TokenEvent(0.0, "x") for _ in range(events)),
        finished=True,
        finished_at_s=0.0,
        reported_tokens=reported,
        input_tokens=None,
        finish_reason=None,
        failure=None,
    )
    assert output_tokens(said) == chosen


@pytest.mark.parametrize(
    ("body", "error", "detail"),
    [
        (
            frames(lines(2)[0])
            + frames(b"{}", headers={":message-type": "exception", ":exception-type": "ModelStreamError"}),
            "model_error",
            "ModelStreamError: {} (after 1 token events)",
        ),
        (
            frames(b"{}", headers={":message-type": "exception", ":exception-type": "InternalStreamFailure"}),
            "server",
            "InternalStreamFailure: {}",
        ),
        (
            frames(b"", headers={":message-type": "error", ":error-code": "Throttling", ":error-message": "slow down"}),
            "throttled",
            "Throttling: slow down",
        ),
        (
            frames(b'{"error":"Request failed","error_type":"generation"}\n'),
            "model_error",
            "generation: Request failed",
        ),
        (frames(lines(2)[0]), "protocol", "the answer ended before its closing line (after 1 token events)"),
        (frames(b"no json\n"), "protocol", "not JSON: b'no json'"),
        (chunk(encode_frame(EVENT, b"x")[:-1] + b"?"), "protocol", "an event frame fails its checksum"),
        (
            chunk(encode_frame(EVENT, b"x")[:-1]),
            "protocol",
            "the event stream ended inside a frame (64 bytes of it arrived)",
        ),
    ],
)
def test_errors_inside_a_200(body: bytes, error: str, detail: str) -> None:
    record = record_of(exchange([HEAD + body + END]), stream=True)
    assert (record.error, record.detail, record.status) == (error, detail, 200)
    assert (record.last_token_s, record.output_tokens) == (None, None)


def test_what_the_endpoint_said_outranks_how_the_connection_ended() -> None:
    stalled = Failure("timeout", "no complete answer in time")
    said_error = frames(b'{"error":"CUDA out of memory","code":424}\n')
    assert record_of(exchange([HEAD + said_error], stalled), stream=True).error == "model_error"
    assert record_of(exchange([HEAD + frames(lines(2)[0])], stalled), stream=True).error == "timeout"


def test_a_whole_answer_has_no_first_token() -> None:
    body = b'[{"generated_text":"x","details":{"generated_tokens":9}}]'
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nx-seatrial-engine: simulated\r\n\r\n" % len(body)
    record = record_of(exchange([head, body]), stream=False)
    assert (record.first_token_s, record.token_times_s, record.last_token_s) == (None, (), 2.0)
    assert (record.output_tokens, record.output_tokens_from, record.engine) == (9, "reported", "simulated")


def test_no_response_at_all() -> None:
    refused = Failure("connection", "Connection refused")
    record = record_of(exchange([], refused), stream=True)
    assert (record.error, record.status, record.detail) == ("connection", None, "Connection refused")


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", HEAD, b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 x\r\n\r\n"]),
    st.booleans(),
)
def test_random_bytes_become_a_failed_record(noise: bytes, head: bytes, stream: bool) -> None:  # noqa: FBT001 (drawn)
    inbox = Inbox()
    try:
        inbox.add(0.0, head + noise)
        inbox.close()
    except ProtocolError as malformed:
        failure: Failure | None = Failure("protocol", str(malformed))
    else:
        failure = None
    assert record_of(Exchange(0.0, 1.0, inbox, failure), stream=stream).error in ("protocol", "server")
