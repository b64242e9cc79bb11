"""One request and its answer: whole, or as a stream of pieces."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Self

from seatrial.bench.failure import Failure, shorten
from seatrial.client.error import InvocationError, check_size, checked
from seatrial.client.events import stream_parts
from seatrial.client.target import invocation_arguments
from seatrial.client.transport import failures_of
from seatrial.payload.error import AnswerError
from seatrial.payload.reader import AnswerReader, read_answer
from seatrial.payload.request import DEFAULTS, request_body

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from botocore.eventstream import EventStream
    from botocore.response import StreamingBody
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient
    from mypy_boto3_sagemaker_runtime.type_defs import ResponseStreamTypeDef

    from seatrial.client.target import Target
    from seatrial.payload.answer import Completion, Piece
    from seatrial.payload.options import Options
    from seatrial.payload.request import Prompt

_PIECE_BYTES = 1_048_576


def generate(client: SageMakerRuntimeClient, target: Target, prompt: Prompt, options: Options = DEFAULTS) -> Completion:
    """Ask for an answer and wait for the whole of it (SageMaker allows 60 s).

    Args:
        client: `boto3.client("sagemaker-runtime", config=client_config())`.
        target: Where, and in which schema.
        prompt: The text; for chat also messages.
        options: How to generate.

    Raises:
        RequestError: SEA370, the schema can't say it.
        AnswerError: SEA371, the answer has no known shape.
        InvocationError: SEA372, the endpoint did not answer, or answered with an error.
    """
    body = invoke(client, target, request_body(target.schema, prompt, options))
    return checked(read_answer(target.schema, body), target.where)


def generate_stream(
    client: SageMakerRuntimeClient, target: Target, prompt: Prompt, options: Options = DEFAULTS
) -> GenerationStream:
    """Ask for an answer that comes token by token (SageMaker allows 8 minutes).

    Args:
        client: `boto3.client("sagemaker-runtime", config=client_config())`.
        target: Where, and in which schema.
        prompt: The text; for chat also messages.
        options: How to generate.

    Raises:
        RequestError: SEA370, the schema can't say it.
        InvocationError: SEA372, the endpoint did not answer.
    """
    body = request_body(target.schema, prompt, options, stream=True)
    arguments = invocation_arguments(target, body, stream=True)
    with failures_of(target.where):
        answer = client.invoke_endpoint_with_response_stream(**arguments)
    return GenerationStream(answer["Body"], target)


def invoke(client: SageMakerRuntimeClient, target: Target, body: bytes) -> bytes:
    """Send a body as it is and return the whole answer's bytes.

    Raises:
        InvocationError: SEA372, the endpoint did not answer, or answered with an error.
    """
    arguments = invocation_arguments(target, body, stream=False)
    with failures_of(target.where), closing(client.invoke_endpoint(**arguments)["Body"]) as answer:
        return _whole(answer, target.where)


def _whole(body: StreamingBody, where: str) -> bytes:
    content = bytearray()
    while piece := body.read(_PIECE_BYTES):
        content += piece
        check_size(len(content), where)
    return bytes(content)


class GenerationStream:
    """The pieces of an answer, in order, each as soon as its line is complete; iterate once.

    Leave it by the end of the iteration, or by `close` (a `with` block does that): the connection is given up then, and
    the container stops generating.
    """

    __slots__ = ("_events", "_reader", "_target")

    def __init__(self, events: EventStream[ResponseStreamTypeDef], target: Target) -> None:
        self._events = events
        self._target = target
        self._reader = AnswerReader(target.schema)

    def __iter__(self) -> Iterator[Piece]:
        """Yield the pieces.

        Raises:
            InvocationError: SEA372, the stream carried an error, broke, or ended before its last line.
        """
        try:
            for data in stream_parts(self._events, where=self._target.where):
                yield from self._reader.feed(data)
            yield from self._reader.finish()
        except AnswerError as malformed:
            failure = Failure("protocol", shorten(malformed.problems[0].message))
            raise InvocationError.because(failure, where=self._target.where) from malformed
        finally:
            self.close()
        checked(self.completion, self._target.where)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def completion(self) -> Completion:
        """What was said so far; whole after the iteration, and what is left after an error."""
        return self._reader.completion()

    def close(self) -> None:
        """Give up the connection."""
        self._events.close()
