"""An answer: a whole body, or a stream in pieces of any size, into one `Completion`.

What a schema leaves out is None, never 0 and never a guess. Each document, a stream's line or a whole body, becomes a
`Fragment` of no schema in particular. Known shapes: the generate schema of LMI and TGI (`token`, `generated_text`,
`details`; `logprob` or `log_prob`), in a list of one as TGI has it; OpenAI's chat and completions (`choices`, `usage`);
the error objects of all of them. Of several choices the first is read.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from seatrial_load.payload.json_text import (
    ANSWER_RULE,
    AnswerError,
    JsonObject,
    json_count,
    json_string,
    list_of,
    object_of,
    parse_json,
    whole_number_of,
)
from seatrial_load.payload.schema import FACTS, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class FinishReason(StrEnum):
    """Why a generation ended, whatever the schema's word for it."""

    LENGTH = "length"
    """The limit on generated tokens, or the end of the context, was reached."""
    END_OF_TEXT = "end_of_text"
    """The model ended the text."""
    STOP_SEQUENCE = "stop_sequence"
    """A stop sequence or stop token was met."""
    STOP = "stop"
    """One of the two above: the schema doesn't distinguish them."""
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    ABORT = "abort"
    ERROR = "error"
    OTHER = "other"
    """A word that isn't known; `Completion.finish_word` has it."""


FINISH_WORDS: Mapping[str, FinishReason] = MappingProxyType(
    {
        "length": FinishReason.LENGTH,
        "eos_token": FinishReason.END_OF_TEXT,
        "stop_sequence": FinishReason.STOP_SEQUENCE,
        "stop": FinishReason.STOP,
        "tool_calls": FinishReason.TOOL_CALLS,
        "function_call": FinishReason.TOOL_CALLS,
        "content_filter": FinishReason.CONTENT_FILTER,
        "abort": FinishReason.ABORT,
        "aborted": FinishReason.ABORT,
        "cancelled": FinishReason.ABORT,
        "timeout": FinishReason.ABORT,
        "error": FinishReason.ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token.

    Attributes:
        text: Its text; may be empty for a part of a character.
        id: Its number in the vocabulary; OpenAI's schemas leave it out.
        log_probability: Natural logarithm of its probability; vLLM writes -9999 for an unknown one.
        special: Whether it is a control token, which isn't part of the text; only of TGI and of errors of LMI.
    """

    text: str
    id: int | None
    log_probability: float | None
    special: bool | None


@dataclass(frozen=True, slots=True)
class Piece:
    """The generated text that one document carried, in an answer that was streamed.

    Attributes:
        text: The text; empty for a piece that only reasons, calls a tool, or carries part of a character.
        reasoning: What a reasoning model thinks aloud, where the engine keeps it apart.
        tokens: Its tokens; None where they aren't listed. One document may bundle several.
    """

    text: str
    reasoning: str | None = None
    tokens: tuple[Token, ...] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The endpoint's own counts of tokens."""

    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """The error that a body carried instead of, or after, generated text.

    Attributes:
        kind: The engine's word (`overloaded`, `validation`, `BadRequestError`); empty where it has none.
    """

    kind: str
    message: str
    code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The content of one answer.

    Attributes:
        tokens: The generated tokens; None where they aren't listed.
        finish_reason: Why the generation ended; None where that isn't reported, though it may be finished.
        finish_word: The engine's own word for it, or the stop sequence that it names instead.
        finished: Whether the answer is whole; a stream that broke off isn't.
    """

    text: str
    reasoning: str | None
    tokens: tuple[Token, ...] | None
    finish_reason: FinishReason | None
    finish_word: str | None
    usage: Usage
    finished: bool
    failure: EngineFailure | None


def was_cut(completion: Completion, max_tokens: int) -> bool | None:
    """Return whether the limit ended the generation; None when the answer has neither a reason nor a count.

    LMI's async handler leaves the reason of a whole answer null both for the limit and for the end of the text. Then
    the answer was cut if it has as many tokens as were allowed. One whose text happens to end with the last allowed
    token looks like a cut one.
    """
    if completion.finish_reason is not None:
        return completion.finish_reason is FinishReason.LENGTH
    count = output_tokens(completion)
    return None if count is None else count >= max_tokens


def output_tokens(completion: Completion) -> int | None:
    """Return the number of generated tokens: the endpoint's own count, else the tokens that it listed."""
    if completion.usage.output_tokens is not None:
        return completion.usage.output_tokens
    return None if completion.tokens is None else len(completion.tokens)


_MAX_QUOTE = 80
_REASONING_KEYS = ("reasoning_content", "reasoning")
_TEXT_KEYS = ("content", "refusal")


class Fragment(NamedTuple):
    """The content of one document (a tuple, because one is made for every token).

    Attributes:
        spelling: `generate` for LMI's and TGI's own schema, `choices` for OpenAI's; None when it has neither.
        streamed: Whether it is a line of a stream.
        pieces: The generated text that it carries, in a stream.
        text: The whole text, where it has that.
        reasoning: The whole reasoning, where it has that.
        tokens: All tokens, where it lists them together.
        ended: Whether the generation is over.
        reason: The finish reason as it is written: a word, or a stop sequence or token.
        stop_sequence: The stop sequence that was met, where vLLM names it next to the reason.
        names_stop: Whether vLLM names the stop that was met, so that none means the end of the text.
        output_tokens: The reported number of generated tokens.
        model: The model that it names; only of OpenAI's schemas.
        is_plural: Whether it has another choice than the first.
        has_other_output: Whether it has output in a field that is neither text nor a call: audio, token ids, parts.
        cached_tokens: Those of the prompt's tokens that came from a cache.
    """

    spelling: Literal["generate", "choices"] | None = None
    streamed: bool = False
    pieces: tuple[Piece, ...] = ()
    text: str | None = None
    reasoning: str | None = None
    tokens: tuple[Token, ...] | None = None
    ended: bool = False
    reason: str | int | None = None
    stop_sequence: str | int | None = None
    names_stop: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    failure: EngineFailure | None = None
    model: str | None = None
    is_plural: bool = False
    calls_tool: bool = False
    has_other_output: bool = False
    cached_tokens: int | None = None


def read_fragment(document: object) -> Fragment:
    """Read one JSON document.

    Raises:
        AnswerError: SEA371, it has no known shape.
    """
    body = document[0] if isinstance(document, list) and len(document) == 1 else document
    if isinstance(body, dict):
        if isinstance(body.get("token"), dict) or isinstance(body.get("generated_text"), str):
            return _generation(body)
        if isinstance(body.get("choices"), list) or isinstance(body.get("usage"), dict):
            return _choices(body)
        failure = _failure(body)
        if failure is not None:
            return Fragment(failure=failure)
    raise AnswerError.of(ANSWER_RULE, f"unknown answer format: {_quoted(document)}")


def generated_text(document: object) -> str | None:
    """Return the text that one line of a stream adds to the answer, without reasoning; None of an error.

    It reads nothing else: for use while the clock runs.
    """
    body = object_of(document)
    if body.get("error") or "code" in body:
        return None
    choices = body.get("choices")
    if isinstance(choices, list):
        choice = object_of(choices[0]) if choices else {}
        return json_string(object_of(choice.get("delta")).get("content", choice.get("text"))) or ""
    token = object_of(body.get("token"))
    return "" if token.get("special") else json_string(token.get("text")) or ""


def _quoted(document: object) -> str:
    try:
        return json.dumps(document)[:_MAX_QUOTE]
    except RecursionError:
        return "deeply nested JSON"


def _generation(fields: JsonObject) -> Fragment:
    token, text = fields.get("token"), json_string(fields.get("generated_text"))
    streamed = isinstance(token, dict)
    pieces: tuple[Piece, ...] = ()
    if isinstance(token, dict):
        read = _token(token)
        pieces = (Piece("" if read.special else read.text, None, (read,)),)
    if text is None:
        return Fragment(spelling="generate", streamed=streamed, pieces=pieces, failure=_failure(fields))
    details = object_of(fields.get("details"))
    return Fragment(
        spelling="generate",
        streamed=streamed,
        pieces=pieces,
        text=text,
        tokens=tuple(_token(object_of(entry)) for entry in list_of(details.get("tokens"))) or None,
        ended=True,
        reason=_reason(details.get("finish_reason")),
        input_tokens=json_count(details.get("input_length")),
        output_tokens=json_count(details.get("generated_tokens")),
        failure=_failure(fields),
    )


def _choices(fields: JsonObject) -> Fragment:
    usage = object_of(fields.get("usage"))
    choice, others = _first_of(list_of(fields.get("choices")))
    message, reason = choice.get("message"), _reason(choice.get("finish_reason"))
    output = object_of(choice.get("delta") or message)
    calls_tool = bool(output.get("tool_calls") or output.get("function_call"))
    piece = text = reasoning = tokens = None
    if message is None:
        piece = _choice_piece(choice, calls_tool=calls_tool)
    else:
        text, reasoning = _joined(object_of(message), _TEXT_KEYS) or "", _joined(object_of(message), _REASONING_KEYS)
        tokens = _log_probabilities(choice)
    # Without text, whatever else a model gave out counts, whatever its name is.
    has_other_output = not (piece or text or reasoning) and (
        bool(choice.get("token_ids")) or any(value for key, value in output.items() if key != "role")
    )
    return Fragment(
        spelling="choices",
        streamed=message is None,
        pieces=(piece,) if piece else (),
        text=text,
        reasoning=reasoning,
        tokens=tokens,
        ended=reason is not None or message is not None,
        reason=reason,
        stop_sequence=_reason(choice.get("stop_reason")),
        names_stop="stop_reason" in choice,
        input_tokens=json_count(usage.get("prompt_tokens")),
        output_tokens=json_count(usage.get("completion_tokens")),
        failure=_failure(fields),
        model=json_string(fields.get("model")),
        is_plural=others,
        calls_tool=calls_tool,
        has_other_output=has_other_output,
        cached_tokens=json_count(object_of(usage.get("prompt_tokens_details")).get("cached_tokens")) if usage else None,
    )


def _first_of(choices: list[object]) -> tuple[JsonObject, bool]:
    if len(choices) == 1 and isinstance(choice := choices[0], dict) and not choice.get("index"):
        return choice, False
    first = next((choice for choice in map(object_of, choices) if not choice.get("index")), None)
    return first or {}, len(choices) > (first is not None)


def _choice_piece(choice: JsonObject, *, calls_tool: bool) -> Piece | None:
    delta = object_of(choice.get("delta"))
    text = _joined(delta, _TEXT_KEYS) if delta else json_string(choice.get("text"))
    reasoning, tokens = _joined(delta, _REASONING_KEYS), _log_probabilities(choice)
    if text or reasoning or tokens or calls_tool:
        return Piece(text or "", reasoning, tokens)
    return None


def _joined(fields: JsonObject, keys: tuple[str, ...]) -> str | None:
    return "".join([text for key in keys if isinstance(text := fields.get(key), str)]) or None


def _token(fields: JsonObject) -> Token:
    log_probability = fields.get("logprob", fields.get("log_prob"))
    special = fields.get("special", fields.get("special_token"))
    return Token(
        text=json_string(fields.get("text")) or "",
        id=whole_number_of(fields.get("id")),
        log_probability=_log_probability(log_probability),
        special=special if isinstance(special, bool) else None,
    )


def _log_probabilities(choice: JsonObject) -> tuple[Token, ...] | None:
    # OpenAI's schemas differ: chat has a list of objects, completions has two parallel lists.
    listed = choice.get("logprobs")
    if not isinstance(listed, dict):
        return None
    entries = [
        (object_of(entry).get("token"), object_of(entry).get("logprob")) for entry in list_of(listed.get("content"))
    ]
    pairs = entries or list(zip(list_of(listed.get("tokens")), list_of(listed.get("token_logprobs")), strict=False))
    return tuple(Token(json_string(text) or "", None, _log_probability(value), None) for text, value in pairs) or None


def _log_probability(value: object) -> float | None:
    # Of a logarithm of a probability; rounding may lift it just above 0.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e300 and math.isfinite(value) else None  # noqa: PLR2004 (an int may be larger than any float)


def _reason(value: object) -> str | int | None:
    return json_string(value) or whole_number_of(value)


def _failure(fields: JsonObject) -> EngineFailure | None:
    """Find vLLM's and OpenAI's error object, TGI's error and its type, LMI's code with a message."""
    error, code = fields.get("error"), whole_number_of(fields.get("code"))
    if isinstance(error, dict):
        return _engine_failure(error.get("type"), error.get("message"), whole_number_of(error.get("code")))
    if error or code is not None:
        return _engine_failure(fields.get("error_type") or fields.get("type"), error or fields.get("message"), code)
    return None


def _engine_failure(kind: object, message: object, code: int | None) -> EngineFailure:
    text = message if isinstance(message, str) or message is None else _quoted(message)
    return EngineFailure(json_string(kind) or "", text or "no message", code)


DONE: Final = b"[DONE]"
# A line is one event: some tokens, or an answer's closing words with its whole text.
MAX_LINE_BYTES: Final = 1_048_576
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
        """End the body and return the generated text of the line that it ended in.

        Raises:
            AnswerError: SEA371, likewise.
        """
        return self._read_lines(self._lines.finish())

    def read(self, document: object) -> tuple[Piece, ...]:
        """Take one JSON document and return the generated text that it carries.

        Raises:
            AnswerError: SEA371, the document has no known shape.
        """
        fragment = read_fragment(document)
        self._failure = self._failure or fragment.failure
        self._pieces.extend(fragment.pieces)
        self._end = fragment if fragment.ended else self._end
        self._input_tokens = self._input_tokens if fragment.input_tokens is None else fragment.input_tokens
        self._output_tokens = self._output_tokens if fragment.output_tokens is None else fragment.output_tokens
        return fragment.pieces

    def completion(self) -> Completion:
        """Return the answer so far."""
        end = self._end or Fragment()
        reason = _finish_reason(self._schema, end)
        ended_by_error = _ENDED_BY_ERROR if reason is FinishReason.ERROR else None
        return Completion(
            text="".join(piece.text for piece in self._pieces) if end.text is None else end.text,
            reasoning="".join(piece.reasoning or "" for piece in self._pieces) or end.reasoning,
            tokens=end.tokens or tuple(chain.from_iterable(piece.tokens or () for piece in self._pieces)) or None,
            finish_reason=reason,
            finish_word=None if end.reason is None else str(end.reason),
            usage=Usage(self._input_tokens, self._counted(end)),
            finished=self._end is not None or self._done,
            failure=self._failure or ended_by_error,
        )

    def _counted(self, end: Fragment) -> int | None:
        counts_too_many = end.spelling == "generate" and FACTS[self._schema].stream_count == "one_too_many"
        if end.streamed and counts_too_many and self._output_tokens is not None:
            return settled_count(len(self._pieces), self._output_tokens)
        return self._output_tokens

    def _read_lines(self, lines: Iterable[bytes]) -> list[Piece]:
        pieces: list[Piece] = []
        for line in lines:
            if line == DONE:
                self._done = True
            else:
                pieces.extend(self.read(parse_json(line)))
        return pieces


def settled_count(events: int, reported: int | None) -> int | None:
    """Choose the number of generated tokens from the token events of a stream and the endpoint's own count.

    The events are counted when the own count agrees with them within one (LMI's async handler counts completion tokens
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
    if reason is FinishReason.STOP and end.names_stop:
        return FinishReason.END_OF_TEXT if end.stop_sequence is None else FinishReason.STOP_SEQUENCE
    return reason


class LineReader:
    """Takes bytes and returns the documents that they completed: JSON texts, and `DONE` as it is.

    Server-sent events are read as WHATWG HTML has it (9.2.5 and 9.2.6): lines end with LF, CR or both, a byte order
    mark may come first, an event is the data of its lines joined with a line feed, and is there with the empty line
    after it; comments, other fields and an event that the stream ends in are nothing. White space around data means
    nothing to JSON. Three things outside the standard are taken: lines of JSON, two events without an empty line
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
            event = data[len(_DATA) :].strip()
            return [event] if event else []
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
        events: list[bytes] = []
        for line in (whole, *rest):
            self._take(line, events)
        self._is_between = not (self._held_bytes or self._data or self._follows_cr)
        return events

    def finish(self) -> list[bytes]:
        """End the body: what remains is a line without its end, or an event without its empty line.

        Raises:
            AnswerError: SEA371, likewise.
        """
        events: list[bytes] = []
        if self._held_bytes:
            self._take(b"".join(self._pieces), events)
        events += [DONE] if self._data == [DONE] else []
        self._pieces, self._held_bytes, self._data, self._data_bytes = [], 0, [], 0
        return events

    def _with_line_feeds(self, data: bytes) -> bytes:
        # CR ends a line at once, whether or not LF comes with the next bytes.
        follows_cr, self._follows_cr = self._follows_cr, data.endswith(b"\r") or (self._follows_cr and not data)
        rest = data[1:] if follows_cr and data.startswith(b"\n") else data
        return rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
        elif line[: len(_DATA)] in (_DATA, b"data"):
            self._is_sse = True
            part = line[len(_DATA) :].strip()
            if self._data and part.startswith(_OPENING) and self._data[-1].endswith(_CLOSING):
                self._dispatch(events)
            self._data.append(part)
            self._data_bytes += len(part)
            if self._data_bytes > MAX_LINE_BYTES:
                _refuse_long([self._data_bytes])
        elif (text := line.strip()).startswith(_OPENING):
            self._dispatch(events)
            events.append(text)
        elif self._is_sse or line.partition(b":")[0] in _FIELDS_WITHOUT_DATA:
            self._is_sse = True
        elif text:
            events.append(text)

    def _dispatch(self, events: list[bytes]) -> None:
        if self._data:
            events += [event] if (event := b"\n".join(self._data).strip()) else []
            self._data, self._data_bytes = [], 0


def _refuse_long(lengths: list[int]) -> None:
    if max(lengths) > MAX_LINE_BYTES:
        raise AnswerError.of(ANSWER_RULE, f"a line or an event has more than {MAX_LINE_BYTES >> 20} MiB")


def _is_one_event(data: bytes) -> bool:
    """Return whether bytes are one whole line of data and the empty line after it: the form of nearly every token."""
    return (
        data.startswith(_DATA)
        and data.endswith(b"\n\n")
        and data.find(b"\n") == len(data) - 2
        and b"\r" not in data
        and len(data) <= MAX_LINE_BYTES
    )
