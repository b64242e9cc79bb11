"""Documents out of a streamed body that arrives in pieces of any size: JSON lines and server-sent events alike.

A piece may end anywhere, even inside a character: SageMaker's `PayloadPart`s keep no line together. Engines write each
event on a single line, so an event's data is never joined over lines.
"""

from __future__ import annotations

from typing import Final

from seatrial_load.payload.error import ANSWER_RULE, AnswerError

DONE: Final = b"[DONE]"
MAX_LINE_BYTES: Final = 1_048_576
"""A line is one event: some tokens, or an answer's closing words with its whole text."""
_SSE_FIELDS_WITHOUT_DATA = (b"event:", b"id:", b"retry:", b":")


class LineReader:
    """Takes bytes and returns the data of the lines that they completed: JSON texts, and `DONE` as it is."""

    __slots__ = ("_held_bytes", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes.

        Raises:
            AnswerError: SEA371, a line has more than a MiB.
        """
        first, *rest = data.split(b"\n")
        self._pieces.append(first)
        self._held_bytes += len(first)
        if self._held_bytes > MAX_LINE_BYTES or len(data) > MAX_LINE_BYTES:
            self._refuse_long([self._held_bytes, *map(len, rest)])
        if not rest:
            return []
        whole = b"".join(self._pieces)
        self._pieces = [rest.pop()]
        self._held_bytes = len(self._pieces[0])
        return [said for line in (whole, *rest) if (said := data_of(line))]

    def finish(self) -> list[bytes]:
        """Tell that the body is over: what remains is a line without its end."""
        said = data_of(b"".join(self._pieces))
        self._pieces, self._held_bytes = [], 0
        return [said] if said else []

    def _refuse_long(self, lengths: list[int]) -> None:
        if max(lengths) > MAX_LINE_BYTES:
            self._pieces, self._held_bytes = [], 0
            raise AnswerError.of(ANSWER_RULE, f"a line has more than {MAX_LINE_BYTES >> 20} MiB")


def data_of(line: bytes) -> bytes:
    """Return what a line carries; nothing for an empty line, a comment, or a field of the event stream."""
    text = line.strip()
    if text.startswith(_SSE_FIELDS_WITHOUT_DATA):
        return b""
    return text.removeprefix(b"data:").strip()
