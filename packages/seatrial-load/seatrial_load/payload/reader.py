"""A whole body, or a stream in pieces of any size, into one `Completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_load.payload.answer import FINISH_WORDS, Completion, EngineFailure, FinishReason, Piece, Token, Usage
from seatrial_load.payload.error import ANSWER_RULE, AnswerError
from seatrial_load.payload.fragment import Fragment, read_fragment
from seatrial_load.payload.json_text import parse_json
from seatrial_load.payload.schema import FACTS, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable


DONE: Final = b"[DONE]"
MAX_LINE_BYTES: Final = 1_048_576
"""A line is one event: some tokens, or an answer's closing words with its whole text."""
_DATA = b"data:"
_BOM = b"\xef\xbb\xbf"
_SSE_FIELDS_WITHOUT_DATA = (b"event:", b"id:", b"retry:", b":")

_ENDED_BY_ERROR = EngineFailure("", "the engine ended the generation with finish_reason error", None)


def read_answer(schema: Schema, body: bytes) -> Completion:
    """Read an answer that arrived whole; LMI's `output_formatter` may make JSON lines or events of that, too.

    Raises:
        AnswerError: SEA371, the body is not an answer of a known shape.
    """
    reader = AnswerReader(schema)
    try:
        document = parse_json(body)
    except AnswerError:
        reader.feed(body)
        reader.finish()
    else:
        reader.read(document)
    if not body.strip():
        raise AnswerError.of(ANSWER_RULE, "the answer is empty")
    return reader.completion()


class AnswerReader:
    """Takes a streamed answer in pieces of any size."""

    __slots__ = ("_done", "_end", "_failure", "_input_tokens", "_lines", "_output_tokens", "_pieces", "_schema")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lines = LineReader()
        self._pieces: list[Piece] = []
        self._end: Fragment | None = None
        self._done = False
        self._failure: EngineFailure | None = None
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None

    def feed(self, data: bytes) -> list[Piece]:
        """Take the next bytes and return the generated text that they completed.

        Raises:
            AnswerError: SEA371, a line is neither JSON nor a field of an event stream, or JSON of no known shape.
        """
        return self._read_lines(self._lines.feed(data))

    def finish(self) -> list[Piece]:
        """Tell that the body is over and return the generated text of the line that it ended in.

        Raises:
            AnswerError: SEA371, likewise.
        """
        return self._read_lines(self._lines.finish())

    def read(self, document: object) -> tuple[Piece, ...]:
        """Take one JSON document and return the generated text that it carries.

        Raises:
            AnswerError: SEA371, the document has no known shape.
        """
        said = read_fragment(document)
        self._failure = self._failure or said.failure
        self._pieces.extend(said.pieces)
        self._end = said if said.ended else self._end
        self._input_tokens = self._input_tokens if said.input_tokens is None else said.input_tokens
        self._output_tokens = self._output_tokens if said.output_tokens is None else said.output_tokens
        return said.pieces

    def completion(self) -> Completion:
        """Return what was said so far."""
        end = self._end or Fragment()
        reason = _finish_reason(self._schema, end)
        ended_by_error = _ENDED_BY_ERROR if reason is FinishReason.ERROR else None
        return Completion(
            text="".join(piece.text for piece in self._pieces) if end.text is None else end.text,
            reasoning="".join(piece.reasoning or "" for piece in self._pieces) or end.reasoning,
            tokens=end.tokens or self._streamed_tokens(),
            finish_reason=reason,
            finish_word=None if end.reason is None else str(end.reason),
            usage=Usage(self._input_tokens, self._counted(end)),
            finished=self._end is not None or self._done,
            failure=self._failure or ended_by_error,
        )

    def _read_lines(self, lines: Iterable[bytes]) -> list[Piece]:
        pieces: list[Piece] = []
        for line in lines:
            if line == DONE:
                self._done = True
            else:
                pieces.extend(self.read(parse_json(line)))
        return pieces

    def _streamed_tokens(self) -> tuple[Token, ...] | None:
        return tuple(token for piece in self._pieces for token in piece.tokens or ()) or None

    def _counted(self, end: Fragment) -> int | None:
        counts_too_many = end.spelling == "generate" and FACTS[self._schema].stream_count == "one_too_many"
        if end.streamed and counts_too_many and self._output_tokens is not None:
            return settled_count(len(self._pieces), self._output_tokens)
        return self._output_tokens


def settled_count(events: int, reported: int | None) -> int | None:
    """Choose the number of generated tokens from the token events of a stream and the endpoint's own count.

    The events are counted when the own count agrees with them within one (LMI's async handler says completion tokens
    + 1, a last token may come without text); else the own count holds, since an event may bundle tokens. None when
    there is neither.
    """
    if reported is not None and (events == 0 or abs(reported - events) > 1):
        return reported
    return events or None


def _finish_reason(schema: Schema, end: Fragment) -> FinishReason | None:
    if end.reason is None:
        return None
    names_stop_only = FACTS[schema].whole_reason == "stop_sequence_only"
    if end.spelling == "generate" and not end.streamed and names_stop_only:
        return FinishReason.STOP_SEQUENCE
    reason = FINISH_WORDS.get(str(end.reason), FinishReason.OTHER)
    if reason is FinishReason.STOP and end.stop_is_told:
        return FinishReason.END_OF_TEXT if end.stop_sequence is None else FinishReason.STOP_SEQUENCE
    return reason


class LineReader:
    """Takes bytes and returns the data of the lines that they completed: JSON texts, and `DONE` as it is.

    A line ends with LF, CR or both (WHATWG HTML, section 9.2.5); JSON has neither in a text.
    """

    __slots__ = ("_held_bytes", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes.

        Raises:
            AnswerError: SEA371, a line has more than a MiB.
        """
        if not self._held_bytes and _is_one_event(data):
            said = data[len(_DATA) :].strip()
            return [said] if said else []
        if b"\r" in data:
            data = data.replace(b"\r", b"\n")
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


def _is_one_event(data: bytes) -> bool:
    """Tell whether bytes are one whole line of data and the empty line after it: so nearly every token comes."""
    return (
        data.startswith(_DATA)
        and data.endswith(b"\n\n")
        and data.find(b"\n") == len(data) - 2
        and b"\r" not in data
        and len(data) <= MAX_LINE_BYTES
    )


def data_of(line: bytes) -> bytes:
    """Return what a line carries; nothing for an empty line, a comment, or a field of the event stream."""
    text = line.strip().removeprefix(_BOM)
    if text.startswith(_SSE_FIELDS_WITHOUT_DATA):
        return b""
    return text.removeprefix(_DATA).strip()
