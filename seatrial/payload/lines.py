"""Documents out of a streamed body that arrives in pieces of any size: JSON lines and server-sent events alike.

A piece may end anywhere, even inside a character: SageMaker's `PayloadPart`s keep no line together. Engines write each
event on a single line, so an event's data is never joined over lines.
"""

from __future__ import annotations

from typing import Final

DONE: Final = b"[DONE]"
_SSE_FIELDS_WITHOUT_DATA = (b"event:", b"id:", b"retry:", b":")


class LineReader:
    """Takes bytes and returns the data of the lines that they completed: JSON texts, and `DONE` as it is."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes."""
        first, *rest = data.split(b"\n")
        self._pieces.append(first)
        if not rest:
            return []
        whole = b"".join(self._pieces)
        self._pieces = [rest.pop()]
        return [said for line in (whole, *rest) if (said := data_of(line))]

    def finish(self) -> list[bytes]:
        """Tell that the body is over: what remains is a line without its end."""
        said = data_of(b"".join(self._pieces))
        self._pieces = []
        return [said] if said else []


def data_of(line: bytes) -> bytes:
    """Return what a line carries; nothing for an empty line, a comment, or a field of the event stream."""
    text = line.strip()
    if text.startswith(_SSE_FIELDS_WITHOUT_DATA):
        return b""
    return text.removeprefix(b"data:").strip()
