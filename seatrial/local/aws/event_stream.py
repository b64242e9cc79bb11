"""Frames of `application/vnd.amazon.eventstream`: prelude, headers, payload, and the CRC-32 of each."""

from __future__ import annotations

import json
import struct
from binascii import crc32
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STRING: Final = 7
"""The type of a header whose value is a string."""
OVERHEAD_BYTES: Final = 16
"""Prelude (8), its CRC (4) and the message's CRC (4)."""


def payload_part(data: bytes) -> bytes:
    """Write one PayloadPart event."""
    kind = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
    return frame(kind, data)


def model_stream_error(code: str, message: str) -> bytes:
    """Write the exception that ends a broken stream; `code` is ModelInvocationTimeExceeded or StreamBroken."""
    kind = {
        ":exception-type": "ModelStreamError",
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return frame(kind, json.dumps({"Message": message, "ErrorCode": code}).encode())


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Write a message of the event-stream encoding."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", OVERHEAD_BYTES + len(block) + len(payload), len(block))
    message = prelude + struct.pack(">I", crc32(prelude)) + block + payload
    return message + struct.pack(">I", crc32(message))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return bytes([len(name)]) + name.encode() + bytes([STRING]) + struct.pack(">H", len(text)) + text
