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
_FIELDS_WITHOUT_DATA = frozenset({b"event", b"id", b"retry", b""})
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")

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
    """Takes bytes and returns the documents that they completed: JSON texts, and `DONE` as it is.

    Server-sent events are read as WHATWG HTML has it (9.2.5 and 9.2.6): lines end with LF, CR or both, a byte order
    mark may come first, an event is the data of its lines joined with a line feed, and is there with the empty line
    after it; comments, other fields and an event that the stream ends in are nothing. White space around data means
    nothing to JSON. Three things beside the standard are taken: lines of JSON, two events without an empty line
    between, and `[DONE]` at the end without one.
    """

    __slots__ = ("_data", "_data_bytes", "_follows_cr", "_held_bytes", "_is_between", "_is_first", "_is_sse", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._is_first = True
        self._is_between = self._follows_cr = self._is_sse = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes.

        Raises:
            AnswerError: SEA371, a line or an event has more than a MiB.
        """
        if self._is_between and _is_one_event(data):
            said = data[len(_DATA) :].strip()
            return [said] if said else []
        if self._follows_cr or b"\r" in data:
            data = self._with_line_feeds(data)
        first, *rest = data.split(b"\n")
        self._pieces.append(first)
        self._held_bytes += len(first)
        if self._held_bytes > MAX_LINE_BYTES or len(data) > MAX_LINE_BYTES:
            _refuse_long([self._held_bytes, *map(len, rest)])
        self._is_between = False
        if not rest:
            return []
        whole = b"".join(self._pieces)
        self._pieces = [rest.pop()]
        self._held_bytes = len(self._pieces[0])
        told: list[bytes] = []
        for line in (whole, *rest):
            self._take(line, told)
        self._is_between = not (self._held_bytes or self._data or self._follows_cr)
        return told

    def finish(self) -> list[bytes]:
        """Tell that the body is over: what remains is a line without its end, or an event without its empty line.

        Raises:
            AnswerError: SEA371, likewise.
        """
        told: list[bytes] = []
        if self._held_bytes:
            self._take(b"".join(self._pieces), told)
        told += [DONE] if self._data == [DONE] else []
        self._pieces, self._held_bytes, self._data, self._data_bytes = [], 0, [], 0
        return told

    def _with_line_feeds(self, data: bytes) -> bytes:
        """Return bytes in which LF alone ends a line; CR ends one at once, whether or not LF comes with the next."""
        follows_cr, self._follows_cr = self._follows_cr, data.endswith(b"\r") or (self._follows_cr and not data)
        rest = data[1:] if follows_cr and data.startswith(b"\n") else data
        return rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, line: bytes, told: list[bytes]) -> None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(told)
        elif line[: len(_DATA)] in (_DATA, b"data"):
            self._is_sse = True
            self._hold(line[len(_DATA) :].strip(), told)
        elif (text := line.strip()).startswith(_OPENING):
            self._dispatch(told)
            told.append(text)
        elif self._is_sse or line.partition(b":")[0] in _FIELDS_WITHOUT_DATA:
            self._is_sse = True
        elif text:
            told.append(text)

    def _hold(self, said: bytes, told: list[bytes]) -> None:
        """Keep a line of an event; JSON has no `{` or `[` right after `}` or `]`, so these begin another one."""
        if self._data and said.startswith(_OPENING) and self._data[-1].endswith(_CLOSING):
            self._dispatch(told)
        self._data.append(said)
        self._data_bytes += len(said)
        if self._data_bytes > MAX_LINE_BYTES:
            _refuse_long([self._data_bytes])

    def _dispatch(self, told: list[bytes]) -> None:
        if self._data:
            told += [said] if (said := b"\n".join(self._data).strip()) else []
            self._data, self._data_bytes = [], 0


def _refuse_long(lengths: list[int]) -> None:
    if max(lengths) > MAX_LINE_BYTES:
        raise AnswerError.of(ANSWER_RULE, f"a line or an event has more than {MAX_LINE_BYTES >> 20} MiB")


def _is_one_event(data: bytes) -> bool:
    """Tell whether bytes are one whole line of data and the empty line after it: so nearly every token comes."""
    return (
        data.startswith(_DATA)
        and data.endswith(b"\n\n")
        and data.find(b"\n") == len(data) - 2
        and b"\r" not in data
        and len(data) <= MAX_LINE_BYTES
    )
