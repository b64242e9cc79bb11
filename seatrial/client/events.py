"""The event stream of `invoke_endpoint_with_response_stream`, down to lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.client.error import InvocationError, check_size
from seatrial.client.transport import failure_of_event, failures_of
from seatrial.payload.lines import DONE, LineReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.bench.failure import Failure

_EXCEPTIONS = ("ModelStreamError", "InternalStreamFailure")


def stream_parts(events: Iterable[Mapping[str, object]], *, where: str = "stream") -> Iterator[bytes]:
    """Yield the bytes of each `PayloadPart`, as they come; a part's borders mean nothing.

    Args:
        events: The answer's `Body`.
        where: What is being read, for the errors.

    Raises:
        InvocationError: SEA372, the stream carried `ModelStreamError` or `InternalStreamFailure`, it broke, or it
            carried more than 32 MiB.
    """
    received_bytes = 0
    with failures_of(where):
        for event in events:
            for name in _EXCEPTIONS:
                if name in event:
                    raise InvocationError.because(_failure(name, event[name]), where=where)
            part = event.get("PayloadPart")
            data = part.get("Bytes") if isinstance(part, dict) else None
            if isinstance(data, bytes):
                received_bytes += len(data)
                check_size(received_bytes, where)
                yield data


def stream_lines(events: Iterable[Mapping[str, object]], *, where: str = "stream") -> Iterator[bytes]:
    """Yield the JSON text of each line, whether the container writes JSON lines or server-sent events.

    A line is put together across the borders of parts; `data:`, comments, empty lines and `[DONE]` are left out.

    Args:
        events: The answer's `Body`.
        where: What is being read, for the errors.

    Raises:
        InvocationError: SEA372, as of `stream_parts`.
        AnswerError: SEA371, a line has more than 1 MiB.
    """
    reader = LineReader()
    for data in stream_parts(events, where=where):
        yield from (line for line in reader.feed(data) if line != DONE)
    yield from (line for line in reader.finish() if line != DONE)


def _failure(name: str, told: object) -> Failure:
    said = told if isinstance(told, dict) else {}
    error = {"Code": name, "Message": said.get("Message")}
    return failure_of_event({"Error": error, "ErrorCode": said.get("ErrorCode")})
