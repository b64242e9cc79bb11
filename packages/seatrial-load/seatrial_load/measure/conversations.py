"""Conversations of requests: their turns, and how long users think; for the planner and the client alike.

The prompt of a turn is everything before it, prompts and answers, and what the turn adds. The lengths of
a workload are of what one turn adds, as in AIPerf (`--conversation-turn-mean`, `--conversation-turn-delay-mean`), which
runs SageMaker's benchmark jobs.

A level begins with conversations that aren't measured, the first of one turn, the next of two, and so on: so those that
are measured are at every turn at any time, and requests have the mean prompt of whole conversations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from seatrial_base.units import MS_PER_S
from seatrial_load.measure.lengths import TokenLengths, lengths_of, paired_lengths, share_of_row, shared_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import Workload
    from seatrial_load.measure.lengths import RequestLengths


# Number of conversations of a prediction: two blocks of lengths, which have the whole distribution.
PLANNED_CONVERSATIONS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """The conversations of a workload.

    Attributes:
        lengths: Of a turn's own prompt, and of its answer.
        delay_s: Mean time that a user thinks before a further turn, in seconds.
        listed_turns: The turns of each conversation of a file, whose lengths are taken in order; empty where the
            distribution decides.
        listed_delays_s: How long the user of a file thought before each turn, in seconds; empty where the mean decides.
    """

    lengths: RequestLengths
    turns: TokenLengths
    delay_s: float = 0.0
    delay_stddev_s: float = 0.0
    listed_turns: tuple[int, ...] = field(default=(), repr=False)
    listed_delays_s: tuple[float, ...] = field(default=(), repr=False)

    @property
    def mean_delay_s(self) -> float:
        """Mean time that a user thinks before a further turn."""
        return sum(self.listed_delays_s) / len(self.listed_delays_s) if self.listed_delays_s else self.delay_s

    def turns_of(self, number: int) -> int:
        """Return how many turns the conversation of this number has."""
        if self.listed_turns:
            return self.listed_turns[number % len(self.listed_turns)]
        return self.turns.at(share_of_row("turns", number)) if self.turns.stddev else round(self.turns.mean)

    def delay_before(self, row: int) -> float:
        """Return how long the user thinks before the turn of this row, in seconds."""
        if self.listed_delays_s:
            return self.listed_delays_s[row % len(self.listed_delays_s)]
        if not self.delay_stddev_s:
            return self.delay_s
        thinking_ms = TokenLengths(mean=self.delay_s * MS_PER_S, stddev=self.delay_stddev_s * MS_PER_S)
        return thinking_ms.at(share_of_row("delay", row)) / MS_PER_S

    def warming(self, number: int) -> int:
        """Return how many turns the first conversations have, which aren't measured: those of a file are whole."""
        return self.turns_of(number) if self.listed_turns else number % round(self.turns.mean) + 1

    def prompts(self, opening: int, turns: int) -> tuple[int, ...]:
        """Return the length of each prompt of a conversation, in tokens: everything before, and what it adds."""
        pairs = [self.lengths.of(row) for row in range(opening, opening + turns)]
        before_turn = [0, *accumulate(prompt + answer for prompt, answer in pairs)]
        return tuple(before + prompt for before, (prompt, _) in zip(before_turn, pairs, strict=False))


def conversations_of(workload: Workload) -> Conversations | None:
    """Return the conversations of a trial's workload; None where its requests are single ones."""
    if not holds_conversations(workload):
        return None
    counts = workload.conversations
    return Conversations(
        lengths=lengths_of(workload),
        turns=turns_listed(counts) if counts else TokenLengths(mean=workload.turns, stddev=workload.turns_stddev),
        delay_s=workload.turn_delay_s,
        delay_stddev_s=workload.turn_delay_stddev_s,
        listed_turns=counts,
        listed_delays_s=workload.delays_s,
    )


def holds_conversations(workload: Workload) -> bool:
    """Return whether requests of a workload are turns of conversations."""
    return workload.turns > 1 or bool(workload.conversations)


def turns_listed(counts: Sequence[int]) -> TokenLengths:
    """Return the turns of conversations that were counted, at least one."""
    mean = sum(counts) / len(counts)
    deviation = math.sqrt(math.fsum((count - mean) ** 2 for count in counts) / len(counts))
    return TokenLengths(mean=mean, stddev=deviation, listed=tuple(sorted(counts)))


def request_lengths(conversations: Conversations) -> RequestLengths:
    """Return prompts and answers of the requests that conversations make, every turn's, as an endpoint gets them."""
    pairs: list[tuple[int, int]] = []
    added: list[int] = []
    count = len(conversations.listed_turns) or PLANNED_CONVERSATIONS
    for number in range(count):
        opening, turns = len(pairs), conversations.turns_of(number)
        rows = range(opening, opening + turns)
        answers = [conversations.lengths.of(row)[1] for row in rows]
        added += [conversations.lengths.of(row)[0] for row in rows]
        pairs += zip(conversations.prompts(opening, turns), answers, strict=True)
    return replace(paired_lengths(pairs), added=tuple(added))


def cached_share(conversations: Conversations, shared_tokens: int) -> float:
    """Return the share of the prompt tokens that an endpoint saw before, 0 to 1: earlier turns, and a shared prefix.

    Args:
        shared_tokens: First tokens of an opening that are those of others.
    """
    cached = total = opening = 0
    for number in range(len(conversations.listed_turns) or PLANNED_CONVERSATIONS):
        turns = conversations.turns_of(number)
        prompts = conversations.prompts(opening, turns)
        added = [conversations.lengths.of(row)[0] for row in range(opening + 1, opening + turns)]
        cached += min(shared_tokens, prompts[0] - 1)
        cached += sum(prompt - new for prompt, new in zip(prompts[1:], added, strict=True))
        total, opening = total + sum(prompts), opening + turns
    return cached / total


def planned_cached_share(workload: Workload) -> float | None:
    """Return the share of a trial's prompt tokens that a cache can hold; None where a file's prompts decide that."""
    if workload.source != "synthetic":
        return None
    talks, shared = conversations_of(workload), workload.shared_prefix_tokens
    return shared_share(lengths_of(workload), shared) if talks is None else cached_share(talks, shared)
