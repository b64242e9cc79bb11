"""An answer as the trial takes it: token events with their time, and the answer compared with the request.

`payload` knows the schemas. A token event is a line that carries generated text; the line that closes a stream
may carry a token of its own. An impossible answer to the request is a failure, a suspicious one a doubt.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from seatrial_load.decode.failure import Failure, failure_of_type, shorten
from seatrial_load.decode.http1 import ProtocolError, TooLargeError
from seatrial_load.payload.answer import DONE, FINISH_WORDS, FinishReason, LineReader, read_fragment, settled_count
from seatrial_load.payload.json_text import AnswerError, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_load.decode.failure import ErrorClass
    from seatrial_load.documents.result import DoubtKind
    from seatrial_load.payload.answer import Fragment, Token


# Names of models that are kept of one answer.
MOST_MODELS: Final = 4
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
    """The content of one body.

    Attributes:
        events: The token events in order; empty for an answer that wasn't streamed.
        finished_at_s: Arrival of the last document; None without one.
        reported_tokens: The endpoint's own count of generated tokens; LMI's async handler counts one too many.
        input_tokens: The endpoint's own count of the prompt's tokens.
        finish_reason: Why the generation stopped, in the engine's word; None when not reported.
        text: The whole text, where the answer has that; else empty.
        models: The models that it names, each once.
        is_plural: Whether it has more than one choice.
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
        """Why the generation stopped, whatever the engine's word for it; None when not reported."""
        return None if self.finish_reason is None else FINISH_WORDS.get(self.finish_reason, FinishReason.OTHER)

    @property
    def prompt_tokens_cached(self) -> int | None:
        """Tokens of the prompt that came from a cache, at most all of them; None unless both counts are reported."""
        if self.cached_tokens is None or self.input_tokens is None:
            return None
        return min(self.cached_tokens, self.input_tokens)


class TimedAnswerReader:
    """Takes a streamed body in pieces of any size, each with its time of arrival.

    Attributes:
        documents: Number of lines that carried something.
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
        """End the body: what remains is a line without its end.

        Raises:
            ProtocolError: The remainder is malformed.
        """
        for line in self._lines.finish():
            self._read_line(at_s, line)

    def completion(self) -> TimedAnswer:
        """Return the answer so far."""
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
            fragment = read_fragment(parse_json(text))
        except AnswerError as malformed:
            raise ProtocolError(malformed.problems[0].message) from malformed
        self._at_s = at_s
        for piece in fragment.pieces:
            generated = (piece.reasoning or "") + piece.text
            self._events.append(TokenEvent(at_s, generated or _text_of(piece.tokens)))
        if fragment.model and fragment.model not in self._models:
            self._models = (*self._models, fragment.model)[:MOST_MODELS]
        self._reported_tokens = self._reported_tokens if fragment.output_tokens is None else fragment.output_tokens
        self._input_tokens = self._input_tokens if fragment.input_tokens is None else fragment.input_tokens
        if fragment.cached_tokens is not None:
            self._cached_tokens = fragment.cached_tokens
        if fragment.is_plural or fragment.calls_tool or fragment.has_other_output:
            self._is_plural |= fragment.is_plural
            self._calls_tool |= fragment.calls_tool
            self._has_other_output |= fragment.has_other_output
        if fragment.ended or fragment.failure is not None:
            self._end(fragment)

    def _end(self, fragment: Fragment) -> None:
        self._failure = self._failure or _failure_of(fragment)
        self._finished = self._finished or fragment.ended
        self._finish_reason = self._finish_reason if fragment.reason is None else str(fragment.reason)
        self._text = fragment.text or fragment.reasoning or _text_of(fragment.tokens) or self._text

    def _read_line(self, at_s: float, line: bytes) -> None:
        self.documents += 1
        if line == DONE:
            self._finished = True
        else:
            self.read_text(at_s, line)


def read_whole(at_s: float, body: bytes) -> TimedAnswer:
    """Read an answer that wasn't streamed; it has no token events, so its first token has no time.

    Raises:
        ProtocolError: The body isn't JSON of a known shape.
    """
    reader = TimedAnswerReader()
    reader.read_text(at_s, body)
    return replace(reader.completion(), events=(), finished_at_s=at_s)


def _text_of(tokens: tuple[Token, ...] | None) -> str:
    """Return the text of the tokens of an answer without text of its own; control tokens have none."""
    return "".join(token.text for token in tokens or () if not token.special)


def _failure_of(fragment: Fragment) -> Failure | None:
    if fragment.failure is not None:
        return failure_of_type(fragment.failure.kind, fragment.failure.message, code=fragment.failure.code)
    if fragment.reason is None:
        return None
    error = _FAILURE_WORDS.get(FINISH_WORDS.get(str(fragment.reason), FinishReason.OTHER))
    return error and Failure(error, f"the engine ended the generation with finish_reason {fragment.reason}")


# An answer with a smaller share of the requested tokens, and more than one fewer, ended early.
WHOLE_SHARE: Final = 0.9
# Speculative decoding yields up to this many at once; an answer in fewer parts must report its count.
MOST_TOKENS_PER_PART: Final = 8
# Fewer may be blank, or repeat themselves and each other: three tokens may be a part of one character, whose four
# bytes engines hold back until all are there, or control tokens at the end of a text that was to be ignored.
FEWEST_TOKENS: Final = 4
# Characters of a repeated token; the long ones of vocabularies are themselves repetitions of one character.
LONGEST_REPEATED: Final = 32
# First tokens of its own that a prompt may by chance have in common with one of thousands.
CHANCE_TOKENS: Final = 4
MOST_MODEL_CHARACTERS: Final = 100


class AnswerTerms(NamedTuple):
    """The requirements of a request on its answer. The default is of a body from a file, of which nothing is known.

    Attributes:
        most_tokens: The limit on generated tokens; None where it isn't known.
        ignores_end: Whether the end of the text was to be ignored.
        is_plain: Whether one choice was requested, and no tool offered.
        is_unique: Whether no other request has the same prompt.
        model: The requested model; empty where none was named.
        own_tokens: The fewest tokens of the prompt that no other request has; None where unknown.
    """

    most_tokens: int | None = None
    ignores_end: bool = False
    is_plain: bool = False
    is_unique: bool = False
    model: str = ""
    own_tokens: int | None = None


ANYTHING: Final = AnswerTerms()


class Judged(NamedTuple):
    """The doubts of an answer.

    Attributes:
        other_model: The first model that it names, where another was requested or named before; else empty.
        text_digest: CRC-32 of the text where equal texts are to be counted; else None.
    """

    doubts: tuple[DoubtKind, ...] = ()
    other_model: str = ""
    text_digest: int | None = None


def contradiction(answer: TimedAnswer, terms: AnswerTerms) -> Failure | None:
    """Return why an answer can't be one to the request; None where it can."""
    if terms.is_plain and answer.is_plural:
        return Failure("protocol", "the answer has more than one choice; one was requested")
    if terms.is_plain and (answer.calls_tool or answer.reason is FinishReason.TOOL_CALLS):
        return Failure("protocol", "the answer calls a tool; none was offered")
    return _without_text(answer, terms) or _of_another_length(answer, terms)


def _without_text(answer: TimedAnswer, terms: AnswerTerms) -> Failure | None:
    """Return that tokens are counted but none came: no user saw a first one."""
    reported = answer.reported_tokens
    counted = terms.most_tokens if reported is None and answer.reason is FinishReason.LENGTH else reported
    if _has_output(answer) or (counted or 0) < FEWEST_TOKENS:
        return None
    whose = "the limit that it reached" if reported is None else "its count"
    return Failure("no_text", f"the answer has no text; by {whose} it has {counted} tokens")


def _of_another_length(answer: TimedAnswer, terms: AnswerTerms) -> Failure | None:
    most, reported = terms.most_tokens, answer.reported_tokens
    if most is None or reported is None:
        return None
    if reported > most + max(1, most // 10):  # LMI's async handler counts one too many
        return Failure("protocol", f"the answer counts {reported} tokens; at most {most} were requested")
    if answer.reason is FinishReason.LENGTH and _is_short(answer, most):
        return Failure("truncated", f"finish_reason {answer.finish_reason} after {reported} of {most} tokens requested")
    return None


def judged(answer: TimedAnswer, terms: AnswerTerms) -> Judged:
    """Return what is doubtful of an answer that succeeded."""
    text = "".join([event.text for event in answer.events]) or answer.text
    tokens = settled_count(len(answer.events), answer.reported_tokens) or len(text.split())
    doubts = (
        *_doubts_of_length(answer, terms),
        *_doubts_of_text(text, tokens, answer),
        *_doubts_of_cache(answer, terms),
    )
    models = [terms.model, *answer.models] if terms.model else answer.models
    other = next((name for name in models[1:] if not _is_same(models[0], name)), "")
    is_sample = terms.is_unique and not doubts and tokens >= FEWEST_TOKENS
    return Judged(
        doubts=doubts,
        other_model=shorten(other[:MOST_MODEL_CHARACTERS]),
        text_digest=zlib.crc32(text.encode(errors="replace")) if is_sample else None,
    )


def _has_output(answer: TimedAnswer) -> bool:
    return bool(answer.events or answer.text or answer.calls_tool or answer.has_other_output)


def _is_short(answer: TimedAnswer, most: int) -> bool:
    count = max(len(answer.events), answer.reported_tokens or 0)
    return count < most * WHOLE_SHARE and count < most - 1


def _doubts_of_length(answer: TimedAnswer, terms: AnswerTerms) -> Iterator[DoubtKind]:
    most = terms.most_tokens
    if most is None or not _is_short(answer, most):
        return
    is_counted = bool(answer.events) or answer.reported_tokens is not None or not _has_output(answer)
    if answer.reason is not FinishReason.LENGTH and is_counted:
        yield "ended_early" if terms.ignores_end else "short"
    elif answer.reported_tokens is None and 0 < len(answer.events) * MOST_TOKENS_PER_PART < most:
        yield "uncounted"


def _doubts_of_text(text: str, tokens: int, answer: TimedAnswer) -> Iterator[DoubtKind]:
    # Of the whole answer: past the end of its text a good model may repeat one token up to the limit.
    if answer.calls_tool or answer.has_other_output or tokens < FEWEST_TOKENS:
        return
    if not any(character.isprintable() and not character.isspace() for character in text):
        yield "blank"
    elif _repeats_one(text.strip(), tokens):
        yield "repeated"


def _repeats_one(text: str, tokens: int) -> bool:
    """Return whether a text is one token again and again: as many repetitions as tokens, one of which may have no text.

    The text decides, and not its pieces: they may hold several tokens, each another number.
    """
    longest = min(LONGEST_REPEATED, -(-len(text) // (tokens - 1)))
    return any(
        text[length:] == text[:-length] and -(-len(text) // length) >= tokens - 1 for length in range(1, longest + 1)
    )


def _doubts_of_cache(answer: TimedAnswer, terms: AnswerTerms) -> Iterator[DoubtKind]:
    # The tokens computed again, compared with those that no cache can hold; SGLang counted more cached than prompted.
    if terms.own_tokens is None or answer.cached_tokens is None or answer.input_tokens is None:
        return
    if max(answer.input_tokens - answer.cached_tokens, 0) < WHOLE_SHARE * terms.own_tokens - CHANCE_TOKENS:
        yield "cached"


def _is_same(requested: str, reported: str) -> bool:
    # Servers add the owner's name, or leave a path out.
    one, other = requested.casefold().rstrip("/"), reported.casefold().rstrip("/")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
