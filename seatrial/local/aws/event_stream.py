"""The events of a streamed invocation, as frames of `application/vnd.amazon.eventstream`."""

from __future__ import annotations

import json

from seatrial.bench.decode.event_stream import encode_frame


def payload_part(data: bytes) -> bytes:
    """Write one PayloadPart event."""
    kind = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
    return encode_frame(kind, data)


def model_stream_error(code: str, message: str) -> bytes:
    """Write the exception that ends a broken stream; `code` is ModelInvocationTimeExceeded or StreamBroken."""
    kind = {
        ":exception-type": "ModelStreamError",
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_frame(kind, json.dumps({"Message": message, "ErrorCode": code}).encode())
