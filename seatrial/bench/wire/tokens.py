"""What a body means: token events, the final counts, or the container's error, in every shape that LMI and TGI speak.

Accepted: JSON lines, server-sent events (`data:` with or without a space, `[DONE]`), the LMI/TGI generate schema
(`logprob` or `log_prob`), OpenAI chat and completion chunks, whole JSON answers (object, TGI's list, OpenAI's).
A token event is a line that carries generated text; the line that closes a stream may carry a token of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.failure import Failure, failure_of_type
from seatrial.bench.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SSE_FIELDS_WITHOUT_DATA = (b"event:", b"id:", b"retry:", b":")
_DELTA_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_MAX_QUOTE = 80
_MAX_COUNT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """Generated text that arrived at `at_s` (seconds of the trial's clock)."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """Everything that one body said.

    Attributes:
        events: The token events in order; empty for an answer that wasn't streamed.
        finished: Whether the body said that the generation is over.
        finished_at_s: Arrival of the last thing said; None when nothing was.
        reported_tokens: The endpoint's own count of generated tokens; LMI's async handler says one too many.
        input_tokens: The endpoint's own count of the prompt's tokens.
        finish_reason: Why the generation stopped, in the engine's word; None when not told.
        failure: The error that the body carried.
    """

    events: tuple[TokenEvent, ...]
    finished: bool
    finished_at_s: float | None
    reported_tokens: int | None
    input_tokens: int | None
    finish_reason: str | None
    failure: Failure | None


class TokenReader:
    """Takes a streamed body in pieces of any size, each with its time of arrival."""

    __slots__ = (
        "_at_s",
        "_events",
        "_failure",
        "_finish_reason",
        "_finished",
        "_input_tokens",
        "_reported_tokens",
        "_tail",
    )

    def __init__(self) -> None:
        self._tail = b""
        self._at_s: float | None = None
        self._events: list[TokenEvent] = []
        self._finished = False
        self._reported_tokens: int | None = None
        self._input_tokens: int | None = None
        self._finish_reason: str | None = None
        self._failure: Failure | None = None

    def feed(self, at_s: float, data: bytes) -> None:
        """Take the next bytes, which arrived at `at_s`.

        Raises:
            ProtocolError: A line is neither JSON nor an SSE field, or JSON of no known shape.
        """
        *lines, self._tail = (self._tail + data).split(b"\n")
        for line in lines:
            self._read_line(at_s, line)

    def finish(self, at_s: float) -> None:
        """Tell that the body is over: what remains is a line without its end.

        Raises:
            ProtocolError: The remainder is malformed.
        """
        line, self._tail = self._tail, b""
        self._read_line(at_s, line)

    def completion(self) -> Completion:
        """Return what was said so far."""
        return Completion(
            events=tuple(self._events),
            finished=self._finished,
            finished_at_s=self._at_s,
            reported_tokens=self._reported_tokens,
            input_tokens=self._input_tokens,
            finish_reason=self._finish_reason,
            failure=self._failure,
        )

    def read_document(self, at_s: float, document: object) -> None:
        """Take one JSON document: a stream's line or a whole answer.

        Raises:
            ProtocolError: The document has no known shape.
        """
        if isinstance(document, list) and len(document) == 1:
            document = document[0]
        if not isinstance(document, dict):
            raise ProtocolError(f"not an answer of a known shape: {json.dumps(document)[:_MAX_QUOTE]}")
        self._at_s = at_s
        known = [
            self._read_error(document),
            self._read_generation(at_s, document),
            self._read_choices(at_s, document),
            self._read_usage(document.get("usage")),
        ]
        if not any(known):
            raise ProtocolError(f"not an answer of a known shape: {json.dumps(document)[:_MAX_QUOTE]}")

    def _read_line(self, at_s: float, line: bytes) -> None:
        text = line.strip()
        if not text or text.startswith(_SSE_FIELDS_WITHOUT_DATA):
            return
        text = text.removeprefix(b"data:").strip()
        if text == b"[DONE]":
            self._finished = True
        elif text:
            self.read_document(at_s, parse_json(text))

    def _read_error(self, document: Mapping[str, object]) -> bool:
        failure = _failure_in(document)
        self._failure = self._failure or failure
        return failure is not None

    def _read_generation(self, at_s: float, document: Mapping[str, object]) -> bool:
        token, text = document.get("token"), document.get("generated_text")
        if isinstance(token, dict):
            self._add(at_s, token.get("text"))
        if isinstance(text, str):
            self._finished = True
            self._read_details(document.get("details"))
        return isinstance(token, dict) or isinstance(text, str)

    def _read_details(self, details: object) -> None:
        if isinstance(details, dict):
            self._reported_tokens = _count(details.get("generated_tokens"), self._reported_tokens)
            self._input_tokens = _count(details.get("input_length"), self._input_tokens)
            self._note_reason(details.get("finish_reason"))

    def _read_choices(self, at_s: float, document: Mapping[str, object]) -> bool:
        choices = document.get("choices")
        if not isinstance(choices, list):
            return False
        for choice in choices:
            if isinstance(choice, dict):
                self._read_choice(at_s, choice)
        return True

    def _read_choice(self, at_s: float, choice: Mapping[str, object]) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._read_delta(at_s, delta)
        elif choice.get("message") is None and choice.get("text"):
            self._add(at_s, choice.get("text"))
        if choice.get("finish_reason") is not None or choice.get("message") is not None:
            self._finished = True
            self._note_reason(choice.get("finish_reason"))

    def _read_delta(self, at_s: float, delta: Mapping[str, object]) -> None:
        texts = [text for key in _DELTA_TEXTS if isinstance(text := delta.get(key), str) and text]
        if texts or delta.get("tool_calls"):
            self._add(at_s, "".join(texts))

    def _read_usage(self, usage: object) -> bool:
        if not isinstance(usage, dict):
            return False
        self._reported_tokens = _count(usage.get("completion_tokens"), self._reported_tokens)
        self._input_tokens = _count(usage.get("prompt_tokens"), self._input_tokens)
        return True

    def _note_reason(self, reason: object) -> None:
        if isinstance(reason, str):
            self._finish_reason = reason

    def _add(self, at_s: float, text: object) -> None:
        self._events.append(TokenEvent(at_s, text if isinstance(text, str) else ""))


def read_whole(at_s: float, body: bytes) -> Completion:
    """Read an answer that wasn't streamed; it has no token events, so nothing can be said about its first token.

    Raises:
        ProtocolError: The body isn't JSON of a known shape.
    """
    reader = TokenReader()
    reader.read_document(at_s, parse_json(body))
    said = reader.completion()
    return Completion(
        (), said.finished, at_s, said.reported_tokens, said.input_tokens, said.finish_reason, said.failure
    )


def parse_json(text: bytes) -> object:
    """Parse UTF-8 JSON.

    Raises:
        ProtocolError: It isn't.
    """
    try:
        document: object = json.loads(text.decode())
    except (ValueError, RecursionError) as malformed:
        raise ProtocolError(f"not JSON: {text[:_MAX_QUOTE]!r}") from malformed
    return document


def _count(value: object, before: int | None) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
    return value if is_count and isinstance(value, int) else before


def _failure_in(document: Mapping[str, object]) -> Failure | None:
    """Find LMI's and vLLM's error objects, TGI's error lines, and a generation that ended by `error`."""
    error, code, details = document.get("error"), document.get("code"), document.get("details")
    reasons = (document.get("finish_reason"), details.get("finish_reason") if isinstance(details, dict) else None)
    if isinstance(error, dict):
        return failure_of_type(
            _text(error.get("type")), _text(error.get("message")) or "no message", code=error.get("code")
        )
    if error or isinstance(code, int):
        message = _text(error) or _text(document.get("message")) or "no message"
        return failure_of_type(_text(document.get("error_type")), message, code=code)
    if "error" in reasons:
        return failure_of_type("", "the engine ended the generation with finish_reason error")
    return None


def _text(value: object) -> str:
    return "" if value is None else str(value)
