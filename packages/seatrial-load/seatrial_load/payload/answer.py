"""The words of an answer. What a schema leaves out is None, never 0 and never a guess."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class FinishReason(StrEnum):
    """Why a generation ended, whatever the schema's word for it."""

    LENGTH = "length"
    """The limit on generated tokens, or the end of the context, was reached."""
    END_OF_TEXT = "end_of_text"
    """The model said that the text is over."""
    STOP_SEQUENCE = "stop_sequence"
    """A stop sequence or stop token was met."""
    STOP = "stop"
    """One of the two above: the schema doesn't say which."""
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
        log_probability: Natural logarithm of its probability; vLLM says -9999 for one that it doesn't know.
        special: Whether it is a control token, which isn't part of the text; only TGI and errors of LMI tell.
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
        tokens: Its tokens; None where they aren't told. One document may bundle several.
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
        message: The engine's words.
        code: The status code that the body names.
    """

    kind: str
    message: str
    code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Everything that one answer said.

    Attributes:
        text: The generated text.
        reasoning: What a reasoning model thought aloud, where the engine keeps it apart.
        tokens: The generated tokens; None where they aren't told.
        finish_reason: Why the generation ended; None where that isn't told, which doesn't mean that it is unfinished.
        finish_word: The engine's own word for it, or the stop sequence that it names instead.
        usage: The counts.
        finished: Whether the answer is whole; a stream that broke off isn't.
        failure: The error that the answer carried.
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
    """Tell whether the limit ended the generation; None when the answer tells neither a reason nor its tokens.

    LMI's async handler leaves the reason of a whole answer null both for the limit and for the end of the text. Then
    the answer was cut if it has as many tokens as were allowed. One whose text happens to end with the last allowed
    token can't be told from a cut one.

    Args:
        completion: The answer.
        max_tokens: The limit that held for it.
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
