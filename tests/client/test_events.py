from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING

import boto3
import pytest
import urllib3.exceptions
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import EventStreamError, ReadTimeoutError
from botocore.response import StreamingBody
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from seatrial.client import (
    AnswerError,
    Failure,
    InvocationError,
    Schema,
    Target,
    invoke_many,
    stream_lines,
    stream_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

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


def test_an_endless_stream_is_given_up() -> None:
    endless = parts(*itertools.repeat(b": still here\n" * 80_000, 40))
    with pytest.raises(InvocationError) as refused:
        list(stream_lines(endless))
    assert str(refused.value) == "stream: SEA372: answer_too_large: the answer is larger than 32 MiB"
    assert sum(1 for _ in endless) == 7


def test_an_endless_line_is_given_up() -> None:
    with pytest.raises(AnswerError, match="SEA371: a line or an event has more than 1 MiB"):
        list(stream_lines(parts(*itertools.repeat(b"a" * 65_536, 20))))


def test_an_endless_answer_is_given_up(endless_runtime: tuple[SageMakerRuntimeClient, EndlessBody]) -> None:
    client, body = endless_runtime
    (outcome,) = invoke_many(client, Target("chat", Schema.TGI), [b"{}"], concurrency=1)
    assert outcome.failure == Failure("answer_too_large", "the answer is larger than 32 MiB")
    assert (body.given, body.closed) == (33, True)


class EndlessBody(io.BytesIO):
    given = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.given += 1
        return b"a" * (size or 0)


@pytest.fixture
def endless_runtime() -> Iterator[tuple[SageMakerRuntimeClient, EndlessBody]]:
    client = boto3.client(
        "sagemaker-runtime", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    raw = EndlessBody()
    with Stubber(client) as stub:
        stub.add_response("invoke_endpoint", {"Body": StreamingBody(raw, 10**12)})
        yield client, raw
