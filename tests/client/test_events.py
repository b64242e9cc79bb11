from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import urllib3.exceptions
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import EventStreamError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from seatrial.client import InvocationError, stream_lines, stream_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STREAM = 'data:{"a":"ü"}\n\n{"b":2}\n: ping\ndata: [DONE]\n'.encode()


def parts(*pieces: bytes) -> Iterator[Mapping[str, object]]:
    return ({"PayloadPart": {"Bytes": piece}} for piece in pieces)


def broken(error: Exception) -> Iterator[Mapping[str, object]]:
    yield from parts(b'{"a":1}\n{"b"')
    raise error


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_lines_are_put_together_across_parts(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(STREAM)})
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(edges)]
    assert list(stream_lines(parts(*pieces))) == ['{"a":"ü"}'.encode(), b'{"b":2}']


def test_events_that_are_not_known_are_passed_over() -> None:
    events: list[Mapping[str, object]] = [{"Tomorrow": {}}, {"PayloadPart": {}}, {"PayloadPart": {"Bytes": b"x"}}]
    assert list(stream_parts(events)) == [b"x"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            EventStreamError({"Error": {"Code": "ModelStreamError", "Message": "gone"}}, "InvokeEndpoint"),
            "stream: SEA372: model_error: ModelStreamError: gone",
        ),
        (
            EventStreamError({"Error": {"Code": "InternalStreamFailure", "Message": ""}}, "InvokeEndpoint"),
            "stream: SEA372: server: InternalStreamFailure: no message",
        ),
        (
            ReadTimeoutError(endpoint_url="https://runtime"),
            'stream: SEA372: timeout: ReadTimeoutError: Read timeout on endpoint URL: "https://runtime"',
        ),
        (
            urllib3.exceptions.ProtocolError("Connection broken"),
            "stream: SEA372: connection: ProtocolError: Connection broken",
        ),
        (
            ChecksumMismatch(1, 2),
            "stream: SEA372: protocol: ChecksumMismatch: Checksum mismatch: expected 0x00000001, calculated 0x00000002",
        ),
    ],
)
def test_what_breaks_a_stream(error: Exception, message: str) -> None:
    lines = stream_lines(broken(error))
    assert next(lines) == b'{"a":1}'
    with pytest.raises(InvocationError) as failed:
        next(lines)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            {"ModelStreamError": {"Message": "too slow", "ErrorCode": "ModelInvocationTimeExceeded"}},
            "stream: SEA372: model_error: ModelStreamError: ModelInvocationTimeExceeded: too slow",
        ),
        ({"InternalStreamFailure": {}}, "stream: SEA372: server: InternalStreamFailure: no message"),
        ({"InternalStreamFailure": None}, "stream: SEA372: server: InternalStreamFailure: no message"),
    ],
)
def test_exceptions_that_come_as_events(event: Mapping[str, object], message: str) -> None:
    with pytest.raises(InvocationError) as failed:
        list(stream_parts([event]))
    assert str(failed.value) == message


def test_an_error_of_the_program_stays_what_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        list(stream_parts(broken(ZeroDivisionError())))
