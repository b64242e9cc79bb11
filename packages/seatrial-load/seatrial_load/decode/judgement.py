"""An answer held against what was asked: what can't be is a failure, what may be meant well is a doubt."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from seatrial_load.decode.failure import Failure, shorten
from seatrial_load.payload.answer import FinishReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.decode.tokens import TimedAnswer
    from seatrial_load.documents.result import DoubtKind


WHOLE_SHARE: Final = 0.9
"""An answer with fewer of the tokens asked, and more than one fewer, ended early."""
MOST_TOKENS_PER_PART: Final = 8
"""Speculative decoding yields up to so many at once; an answer in fewer parts must tell its count."""
FEWEST_TOKENS: Final = 4
"""Shorter answers may well repeat themselves and each other."""
MOST_MODEL_CHARACTERS: Final = 100


class AnswerTerms(NamedTuple):
    """What a request asked for. The default is a body of somebody else's making, of which nothing is known.

    Attributes:
        most_tokens: The limit on generated tokens; None where it isn't known.
        ignores_end: Whether the end of the text was to be ignored.
        is_plain: Whether one choice was asked, and no tool offered.
        is_unique: Whether no other request has the same prompt.
        model: The model that was asked; empty where none was named.
    """

    most_tokens: int | None = None
    ignores_end: bool = False
    is_plain: bool = False
    is_unique: bool = False
    model: str = ""


ANYTHING: Final = AnswerTerms()


class Judged(NamedTuple):
    """What is to be said of an answer.

    Attributes:
        doubts: What is doubtful.
        other_model: The model that it names, where another was asked; else empty.
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
    texts = [event.text for event in said.events] or said.text.split()
    doubts = (*_doubts_of_length(said, asked), *_doubts_of_text(texts, said))
    other = said.model or ""
    is_other = bool(asked.model and other) and not _is_same(asked.model, other)
    is_sample = asked.is_unique and not doubts and len(texts) >= FEWEST_TOKENS
    return Judged(
        doubts=doubts,
        other_model=shorten(other[:MOST_MODEL_CHARACTERS]) if is_other else "",
        text_digest=zlib.crc32("".join(texts).encode(errors="replace")) if is_sample else None,
    )


def _is_short(said: TimedAnswer, most: int) -> bool:
    count = max(len(said.events), said.reported_tokens or 0)
    return count < most * WHOLE_SHARE and count < most - 1


def _doubts_of_length(said: TimedAnswer, asked: AnswerTerms) -> Iterator[DoubtKind]:
    most = asked.most_tokens
    if most is None or not _is_short(said, most):
        return
    if said.reason is not FinishReason.LENGTH and (said.events or said.reported_tokens is not None):
        yield "ended_early" if asked.ignores_end else "short"
    elif said.reported_tokens is None and 0 < len(said.events) * MOST_TOKENS_PER_PART < most:
        yield "uncounted"


def _doubts_of_text(texts: list[str], said: TimedAnswer) -> Iterator[DoubtKind]:
    if said.calls_tool or not (texts or said.text or said.reported_tokens):
        return
    if not any(character.isprintable() and not character.isspace() for character in "".join(texts)):
        yield "blank"
    elif len(texts) >= FEWEST_TOKENS and len(set(texts)) == 1:
        yield "repeated"


def _is_same(asked: str, told: str) -> bool:
    """Tell whether two names are of one model: servers add the owner's name, or leave a path out."""
    one, other = asked.casefold().rstrip("/"), told.casefold().rstrip("/")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
