"""What a body means to the trial: token events with their time, the final counts, or the container's error.

`payload` knows the schemas. A token event is a line that carries generated text; the line that closes a stream
may carry a token of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seatrial_load.decode.failure import Failure, failure_of_type
from seatrial_load.decode.http1 import ProtocolError, TooLargeError
from seatrial_load.payload.answer import FINISH_WORDS, FinishReason
from seatrial_load.payload.error import AnswerError
from seatrial_load.payload.fragment import read_fragment
from seatrial_load.payload.json_text import parse_json
from seatrial_load.payload.reader import DONE, LineReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.decode.failure import ErrorClass
    from seatrial_load.payload.answer import Token
    from seatrial_load.payload.fragment import Fragment


MOST_MODELS: Final = 4
"""Names of models that are kept of one answer."""
_FAILURE_WORDS: Mapping[FinishReason, ErrorClass] = {
    FinishReason.ERROR: "model_error",
    FinishReason.ABORT: "aborted",
    FinishReason.CONTENT_FILTER: "filtered",
}


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """Generated text that arrived at `at_s` (seconds of the trial's clock)."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """Everything that one body said.

    Attributes:
        events: The token events in order; empty for an answer that wasn't streamed.
        finished: Whether the body said that the generation is over.
        finished_at_s: Arrival of the last thing said; None when nothing was.
        reported_tokens: The endpoint's own count of generated tokens; LMI's async handler says one too many.
        input_tokens: The endpoint's own count of the prompt's tokens.
        finish_reason: Why the generation stopped, in the engine's word; None when not told.
        failure: The error that the body carried.
        text: The whole text, where the answer tells that; else empty.
        models: The models that it says it comes from, each once; one that all of it comes from is the only one.
        is_plural: Whether it has more than one choice.
        calls_tool: Whether it calls a tool.
        has_other_output: Whether it has output in a field that is neither text nor a call.
        cached_tokens: The endpoint's own count of the prompt's tokens that came from a cache.
    """

    events: tuple[TokenEvent, ...]
    finished: bool
    finished_at_s: float | None
    reported_tokens: int | None
    input_tokens: int | None
    finish_reason: str | None
    failure: Failure | None
    text: str = ""
    models: tuple[str, ...] = ()
    is_plural: bool = False
    calls_tool: bool = False
    has_other_output: bool = False
    cached_tokens: int | None = None

    @property
    def reason(self) -> FinishReason | None:
        """Why the generation stopped, whatever the engine's word for it; None when not told."""
        return None if self.finish_reason is None else FINISH_WORDS.get(self.finish_reason, FinishReason.OTHER)


class TimedAnswerReader:
    """Takes a streamed body in pieces of any size, each with its time of arrival.

    Attributes:
        documents: How many lines carried something.
    """

    __slots__ = (
        "_at_s",
        "_cached_tokens",
        "_calls_tool",
        "_events",
        "_failure",
        "_finish_reason",
        "_finished",
        "_has_other_output",
        "_input_tokens",
        "_is_plural",
        "_lines",
        "_models",
        "_reported_tokens",
        "_text",
        "documents",
    )

    def __init__(self) -> None:
        self.documents = 0
        self._lines = LineReader()
        self._at_s: float | None = None
        self._events: list[TokenEvent] = []
        self._finished = False
        self._reported_tokens: int | None = None
        self._input_tokens: int | None = None
        self._finish_reason: str | None = None
        self._failure: Failure | None = None
        self._text = ""
        self._models: tuple[str, ...] = ()
        self._is_plural = self._calls_tool = self._has_other_output = False
        self._cached_tokens: int | None = None

    def feed(self, at_s: float, data: bytes) -> None:
        """Take the next bytes, which arrived at `at_s`.

        Raises:
            ProtocolError: A line is neither JSON nor an SSE field, or JSON of no known shape.
            TooLargeError: A line is longer than any that an engine writes.
        """
        try:
            lines = self._lines.feed(data)
        except AnswerError as endless:
            raise TooLargeError(endless.problems[0].message) from endless
        for line in lines:
            self._read_line(at_s, line)

    def finish(self, at_s: float) -> None:
        """Tell that the body is over: what remains is a line without its end.

        Raises:
            ProtocolError: The remainder is malformed.
        """
        for line in self._lines.finish():
            self._read_line(at_s, line)

    def completion(self) -> TimedAnswer:
        """Return what was said so far."""
        return TimedAnswer(
            events=tuple(self._events),
            finished=self._finished,
            finished_at_s=self._at_s,
            reported_tokens=self._reported_tokens,
            input_tokens=self._input_tokens,
            finish_reason=self._finish_reason,
            failure=self._failure,
            text=self._text,
            models=self._models,
            is_plural=self._is_plural,
            calls_tool=self._calls_tool,
            has_other_output=self._has_other_output,
            cached_tokens=self._cached_tokens,
        )

    def read_text(self, at_s: float, text: bytes) -> None:
        """Take one JSON document: a stream's line or a whole answer.

        Raises:
            ProtocolError: The text isn't JSON of a known shape.
        """
        try:
            said = read_fragment(parse_json(text))
        except AnswerError as malformed:
            raise ProtocolError(malformed.problems[0].message) from malformed
        self._at_s = at_s
        for piece in said.pieces:
            told = (piece.reasoning or "") + piece.text
            self._events.append(TokenEvent(at_s, told or _text_of(piece.tokens)))
        if said.model and said.model not in self._models and len(self._models) < MOST_MODELS:
            self._models += (said.model,)
        self._reported_tokens = self._reported_tokens if said.output_tokens is None else said.output_tokens
        self._input_tokens = self._input_tokens if said.input_tokens is None else said.input_tokens
        if said.cached_tokens is not None:
            self._cached_tokens = said.cached_tokens
        if said.is_plural or said.calls_tool or said.has_other_output:
            self._is_plural = self._is_plural or said.is_plural
            self._calls_tool = self._calls_tool or said.calls_tool
            self._has_other_output = self._has_other_output or said.has_other_output
        if said.ended or said.failure is not None:
            self._end(said)

    def _end(self, said: Fragment) -> None:
        self._failure = self._failure or _failure_of(said)
        self._finished = self._finished or said.ended
        self._finish_reason = self._finish_reason if said.reason is None else str(said.reason)
        self._text = said.text or said.reasoning or _text_of(said.tokens) or self._text

    def _read_line(self, at_s: float, line: bytes) -> None:
        self.documents += 1
        if line == DONE:
            self._finished = True
        else:
            self.read_text(at_s, line)


def read_whole(at_s: float, body: bytes) -> TimedAnswer:
    """Read an answer that wasn't streamed; it has no token events, so nothing can be said about its first token.

    Raises:
        ProtocolError: The body isn't JSON of a known shape.
    """
    reader = TimedAnswerReader()
    reader.read_text(at_s, body)
    return replace(reader.completion(), events=(), finished_at_s=at_s)


def _text_of(tokens: tuple[Token, ...] | None) -> str:
    """Return what the tokens of an answer without text say; control tokens say nothing."""
    return "".join(token.text for token in tokens or () if not token.special)


def _failure_of(said: Fragment) -> Failure | None:
    if said.failure is not None:
        return failure_of_type(said.failure.kind, said.failure.message, code=said.failure.code)
    if said.reason is None:
        return None
    error = _FAILURE_WORDS.get(FINISH_WORDS.get(str(said.reason), FinishReason.OTHER))
    return error and Failure(error, f"the engine ended the generation with finish_reason {said.reason}")
