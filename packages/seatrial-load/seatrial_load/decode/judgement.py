"""An answer held against what was asked: what can't be is a failure, what may be meant well is a doubt."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from seatrial_load.decode.failure import Failure, shorten
from seatrial_load.payload.answer import FinishReason
from seatrial_load.payload.reader import settled_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.decode.tokens import TimedAnswer
    from seatrial_load.documents.result import DoubtKind


WHOLE_SHARE: Final = 0.9
"""An answer with fewer of the tokens asked, and more than one fewer, ended early."""
MOST_TOKENS_PER_PART: Final = 8
"""Speculative decoding yields up to so many at once; an answer in fewer parts must tell its count."""
FEWEST_TOKENS: Final = 4
"""Fewer may say nothing, or repeat themselves and each other: three tokens may be a part of one character, whose four
bytes engines hold back until all are there, or control tokens at the end of a text that was to be ignored."""
LONGEST_REPEATED: Final = 32
"""Characters of a repeated token; the long ones of vocabularies are themselves repetitions of one character."""
CHANCE_TOKENS: Final = 4
"""So many first tokens of its own a prompt may by chance have in common with one of thousands."""
MOST_MODEL_CHARACTERS: Final = 100


class AnswerTerms(NamedTuple):
    """What a request asked for. The default is a body of somebody else's making, of which nothing is known.

    Attributes:
        most_tokens: The limit on generated tokens; None where it isn't known.
        ignores_end: Whether the end of the text was to be ignored.
        is_plain: Whether one choice was asked, and no tool offered.
        is_unique: Whether no other request has the same prompt.
        model: The model that was asked; empty where none was named.
        own_tokens: The fewest tokens of the prompt that no other request has; None where nobody knows.
    """

    most_tokens: int | None = None
    ignores_end: bool = False
    is_plain: bool = False
    is_unique: bool = False
    model: str = ""
    own_tokens: int | None = None


ANYTHING: Final = AnswerTerms()


class Judged(NamedTuple):
    """What is to be said of an answer.

    Attributes:
        doubts: What is doubtful.
        other_model: The first model that it names, where another was asked or named before; else empty.
        text_digest: CRC-32 of the text where its like is to be looked for; else None.
    """

    doubts: tuple[DoubtKind, ...] = ()
    other_model: str = ""
    text_digest: int | None = None


def contradiction(said: TimedAnswer, asked: AnswerTerms) -> Failure | None:
    """Return why an answer can't be one to what was asked; None where it can."""
    if asked.is_plain and said.is_plural:
        return Failure("protocol", "the answer has more than one choice; one was asked")
    if asked.is_plain and (said.calls_tool or said.reason is FinishReason.TOOL_CALLS):
        return Failure("protocol", "the answer calls a tool; none was offered")
    return _without_text(said, asked) or _of_another_length(said, asked)


def _without_text(said: TimedAnswer, asked: AnswerTerms) -> Failure | None:
    """Return that tokens are counted of which nothing came: no user saw a first one, and no engine means it so."""
    told = said.reported_tokens
    counted = asked.most_tokens if told is None and said.reason is FinishReason.LENGTH else told
    if _has_output(said) or (counted or 0) < FEWEST_TOKENS:
        return None
    whose = "the limit that it says it reached" if told is None else "its count"
    return Failure("no_text", f"the answer has no text; by {whose} it has {counted} tokens")


def _of_another_length(said: TimedAnswer, asked: AnswerTerms) -> Failure | None:
    most, told = asked.most_tokens, said.reported_tokens
    if most is None or told is None:
        return None
    if told > most + max(1, most // 10):  # LMI's async handler tells one too many
        return Failure("protocol", f"the answer counts {told} tokens; at most {most} were asked")
    if said.reason is FinishReason.LENGTH and _is_short(said, most):
        return Failure("truncated", f"finish_reason {said.finish_reason} after {told} of {most} tokens asked")
    return None


def judged(said: TimedAnswer, asked: AnswerTerms) -> Judged:
    """Return what is doubtful of an answer that succeeded."""
    text = "".join([event.text for event in said.events]) or said.text
    tokens = settled_count(len(said.events), said.reported_tokens) or len(text.split())
    doubts = (*_doubts_of_length(said, asked), *_doubts_of_text(text, tokens, said), *_doubts_of_cache(said, asked))
    models = [asked.model, *said.models] if asked.model else said.models
    other = next((name for name in models[1:] if not _is_same(models[0], name)), "")
    is_sample = asked.is_unique and not doubts and tokens >= FEWEST_TOKENS
    return Judged(
        doubts=doubts,
        other_model=shorten(other[:MOST_MODEL_CHARACTERS]),
        text_digest=zlib.crc32(text.encode(errors="replace")) if is_sample else None,
    )


def _has_output(said: TimedAnswer) -> bool:
    """Tell whether anything of an answer came, be it text, reasoning, a call, or tokens alone."""
    return bool(said.events or said.text or said.calls_tool or said.has_other_output)


def _is_short(said: TimedAnswer, most: int) -> bool:
    count = max(len(said.events), said.reported_tokens or 0)
    return count < most * WHOLE_SHARE and count < most - 1


def _doubts_of_length(said: TimedAnswer, asked: AnswerTerms) -> Iterator[DoubtKind]:
    most = asked.most_tokens
    if most is None or not _is_short(said, most):
        return
    is_counted = bool(said.events) or said.reported_tokens is not None or not _has_output(said)
    if said.reason is not FinishReason.LENGTH and is_counted:
        yield "ended_early" if asked.ignores_end else "short"
    elif said.reported_tokens is None and 0 < len(said.events) * MOST_TOKENS_PER_PART < most:
        yield "uncounted"


def _doubts_of_text(text: str, tokens: int, said: TimedAnswer) -> Iterator[DoubtKind]:
    """Judge the whole answer: past the end of its text a good model may repeat one token up to the limit."""
    if said.calls_tool or said.has_other_output or tokens < FEWEST_TOKENS:
        return
    if not any(character.isprintable() and not character.isspace() for character in text):
        yield "blank"
    elif _repeats_one(text.strip(), tokens):
        yield "repeated"


def _repeats_one(text: str, tokens: int) -> bool:
    """Tell whether a text is one token again and again: as many repetitions as tokens, one of which may have no text.

    The text tells, and not its pieces: they may hold several tokens, each another number.
    """
    longest = min(LONGEST_REPEATED, -(-len(text) // (tokens - 1)))
    return any(
        text[length:] == text[:-length] and -(-len(text) // length) >= tokens - 1 for length in range(1, longest + 1)
    )


def _doubts_of_cache(said: TimedAnswer, asked: AnswerTerms) -> Iterator[DoubtKind]:
    """Hold what was read anew of a prompt against what no cache can hold; SGLang counted more cached than prompted."""
    if asked.own_tokens is None or said.cached_tokens is None or said.input_tokens is None:
        return
    if max(said.input_tokens - said.cached_tokens, 0) < WHOLE_SHARE * asked.own_tokens - CHANCE_TOKENS:
        yield "cached"


def _is_same(asked: str, told: str) -> bool:
    """Tell whether two names are of one model: servers add the owner's name, or leave a path out."""
    one, other = asked.casefold().rstrip("/"), told.casefold().rstrip("/")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
