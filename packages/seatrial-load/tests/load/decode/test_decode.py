from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial_load.decode.event_stream import encode_frame
from seatrial_load.decode.exchange import Exchange, Inbox
from seatrial_load.decode.failure import Failure
from seatrial_load.decode.http1 import ProtocolError
from seatrial_load.decode.response import (
    MAX_EARLY_BYTES,
    MAX_ERROR_BYTES,
    exchange_failure,
    generated_tokens,
    record_of,
)
from seatrial_load.decode.timed_answer import TimedAnswer, TokenEvent

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
CONTINUED_STREAM = b"HTTP/1.1 100 Continue\r\n\r\n" + STREAM[:-2] + b"X-Trailer: y\r\n\r\n"


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


def answer_of(events: int, reported: int | None) -> TimedAnswer:
    """Return an answer of so many parts that tells a count of tokens."""
    return TimedAnswer(
        tuple(TokenEvent(0.0, "x") for _ in range(events)),
        finished=True,
        finished_at_s=0.0,
        reported_tokens=reported,
        input_tokens=None,
        finish_reason=None,
        failure=None,
    )


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
    assert generated_tokens(answer_of(events, reported)) == chosen


@pytest.mark.parametrize(("events", "reported", "most", "count"), [(2, 17, 16, 16), (40, None, 16, 16), (2, 9, 16, 9)])
def test_no_more_tokens_are_counted_than_were_asked(events: int, reported: int | None, most: int, count: int) -> None:
    assert generated_tokens(answer_of(events, reported), most)[0] == count


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


def test_an_answer_that_was_cut_for_its_size_is_one_whatever_it_began_with() -> None:
    cut = Failure("answer_too_large", "more than 8 MiB")
    said = exchange([HEAD + frames(b'{"error":"CUDA out of memory","code":424}\n')], cut)
    assert record_of(said, stream=True).error == "answer_too_large"


def test_of_an_error_s_body_only_the_beginning_is_read() -> None:
    body = b'{"pad": "%b", "message": "said too late"}' % (b"x" * MAX_ERROR_BYTES)
    head = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: %d\r\n\r\n" % len(body)
    record = record_of(exchange([head + body]), stream=True)
    assert (record.error, record.status) == ("server", 500)
    assert "said too late" not in record.detail


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


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("Location: https://other.example:8443/x?X-Amz-Signature=secret", "other.example"),
        ("Location: /elsewhere?token=secret", "another path of the same host"),
        ("Location: https://[broken", "another path of the same host"),
        ("X: y", "nowhere"),
    ],
)
def test_a_redirect_is_refused_without_a_word_of_its_query(location: str, where: str) -> None:
    head = f"HTTP/1.1 307 Temporary Redirect\r\n{location}\r\nContent-Length: 0\r\n\r\n"
    record = record_of(exchange([head.encode()]), stream=True)
    assert (record.error, record.status) == ("protocol", 307)
    assert record.detail == f"HTTP 307: redirect to {where} refused; a trial loads one endpoint"


def test_parts_are_frames_or_lines_and_none_where_nothing_streamed() -> None:
    first, second = lines(2)
    framed = exchange([HEAD, frames(first[:5], first[5:] + second[:9], second[9:]) + END])
    assert record_of(framed, stream=True).parts == 3
    plain = HEAD.replace(b"application/vnd.amazon.eventstream", b"text/event-stream")
    sse = b"".join(b"data: " + line + b"\n" for line in (first, second)) + b"data: [DONE]\n\n"
    assert record_of(exchange([plain, chunk(sse[:20]), chunk(sse[20:]) + END]), stream=True).parts == 3
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n" + b'{"generated_text":"x"}'
    assert record_of(exchange([whole]), stream=False).parts is None
    assert record_of(exchange([], Failure("connection", "Connection refused")), stream=True).parts is None


def test_number_dueness_and_retries_go_from_the_exchange_into_the_record() -> None:
    done = replace(exchange([HEAD, frames(*lines(1)) + END]), index=7, due_s=0.25, retried=("throttled",))
    record = record_of(done, stream=True)
    assert (record.index, record.due_s, record.retried) == (7, 0.25, ("throttled",))


@pytest.mark.parametrize(
    ("arrivals", "error"),
    [
        ([b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"], "throttled"),
        ([HEAD + frames(b'{"error":"Model is overloaded","error_type":"overloaded"}\n') + END], "throttled"),
        ([HEAD + frames(*lines(1)) + END], None),
        ([HEAD, frames(b" " * MAX_EARLY_BYTES), frames(b'{"error":"x","error_type":"overloaded"}\n') + END], None),
    ],
)
def test_while_the_clock_runs_only_refusals_and_short_answers_are_read(
    arrivals: list[bytes], error: str | None
) -> None:
    failure = exchange_failure(exchange(arrivals))
    assert (failure and failure.error) == error


def test_the_date_of_an_answer_can_be_read() -> None:
    head = b"HTTP/1.1 403 Forbidden\r\nDate: Wed, 19 Nov 2025 12:00:00 GMT\r\nContent-Length: 0\r\n\r\n"
    found = exchange([head]).inbox.head
    assert found is not None
    assert found.headers["date"] == "Wed, 19 Nov 2025 12:00:00 GMT"


@given(
    st.sampled_from([STREAM, CONTINUED_STREAM]),
    st.lists(st.integers(min_value=0, max_value=len(STREAM))),
    st.integers(min_value=0, max_value=len(STREAM) - 1),
    st.integers(min_value=0, max_value=255),
)
def test_a_changed_byte_never_makes_a_wrong_text(stream: bytes, cuts: list[int], position: int, value: int) -> None:
    """Whatever byte of a stream is another, and however it is split, the record is the same or a failure."""
    damaged = bytearray(stream)
    damaged[position] = value
    edges = sorted({0, *cuts, len(damaged)})
    inbox = Inbox()
    failure: Failure | None = None
    try:
        for a, b in itertools.pairwise(edges):
            inbox.add(1.0, bytes(damaged[a:b]))
        inbox.close()
    except ProtocolError as malformed:
        failure = Failure("protocol", str(malformed))
    record = record_of(Exchange(0.0, 1.0, inbox, failure), stream=True)
    assert record.error is not None or record.output_tokens in (3, 4)


@example(noise=b"[DONE]", head=b"HTTP/1.1 200 OK\r\n\r\n", stream=True)
@given(
    noise=st.binary(max_size=200),
    head=st.sampled_from([b"", HEAD, b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 x\r\n\r\n"]),
    stream=st.booleans(),
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
