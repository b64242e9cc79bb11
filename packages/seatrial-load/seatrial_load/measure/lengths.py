"""Lengths of prompts, answers and conversations: one definition for the planner and the client.

A length is fixed, normal with a mean and a standard deviation (SageMaker's benchmark jobs: `prompt_input_tokens_mean`,
`prompt_input_tokens_stddev`, `output_tokens_mean`, `output_tokens_stddev`), or one of those of a file. A normal one is
within three standard deviations of its mean and at least 1. The distribution is widened by what these bounds cut off:
mean and standard deviation are the requested ones.

Requests take their lengths in blocks of 32: each block has the whole distribution of prompts and that of answers, in an
order that looks like chance. So the mean of a level is near the requested one, though it has few requests, and every
level of every trial begins with the same lengths.

The prompt of a turn is everything before it, prompts and answers, and what the turn adds. The lengths of a workload are
of what one turn adds, as in AIPerf (`--conversation-turn-mean`, `--conversation-turn-delay-mean`), which runs
SageMaker's benchmark jobs. A level begins with conversations that aren't measured, the first of one turn, the next of
two, and so on: so those that are measured are at every turn at any time, and requests have the mean prompt of whole
conversations.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Final

from seatrial_base.units import MS_PER_S, whole_or_tenths
from seatrial_load.measure.interval import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import Workload

# Requests that have the whole distribution among them.
BLOCK: Final = 32
# No length is further from the mean.
MOST_DEVIATIONS: Final = 3
_STANDARD: Final = NormalDist()
# Of the widened deviation over the distance to the bounds: flat, as a float sees it.
_WIDEST: Final = 64.0
_BISECTIONS: Final = 60
# Number of conversations of a prediction: two blocks of lengths, which have the whole distribution.
PLANNED_CONVERSATIONS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLengths:
    """The lengths of prompts, or of answers, in tokens.

    Attributes:
        stddev: Their standard deviation; 0 is one length.
        listed: Those of a file, ascending; empty where they are normal or fixed.
    """

    mean: float
    stddev: float = 0.0
    listed: tuple[int, ...] = field(default=(), repr=False)

    def at(self, share: float) -> int:
        """Return the length that this share of the requests does not exceed.

        Args:
            share: From 0 to 1; 0.95 is the 95th percentile.
        """
        if self.listed:
            return round(percentile(self.listed, 100 * share))
        return max(1, round(self.mean + self._deviation(share)))

    @property
    def longest(self) -> int:
        """The longest of them."""
        return self.at(1.0)

    @property
    def shortest(self) -> int:
        """The shortest of them."""
        return self.at(0.0)

    @property
    def relative_variance(self) -> float:
        """Variance over the square of the mean: 0 is one length."""
        return (self.stddev / self.mean) ** 2

    def _deviation(self, share: float) -> float:
        if not self.stddev:
            return 0.0
        reach = min(self.mean - 1, MOST_DEVIATIONS * self.stddev)
        if share in (0.0, 1.0):
            return reach if share else -reach
        parent = widened(reach / self.stddev) * self.stddev
        tail = _STANDARD.cdf(-reach / parent)
        return parent * _STANDARD.inv_cdf(tail + share * (1 - 2 * tail))


@lru_cache(maxsize=64)
def widened(reach: float) -> float:
    """Return the deviation of the normal distribution that has deviation 1 within some bounds.

    Args:
        reach: The bounds' distance from the mean; above the square root of 3, where all within them are alike.
    """
    low, high = 1.0, _WIDEST * reach
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _bounded_variance(middle, reach) < 1 else (low, middle)
    return (low + high) / 2


def _bounded_variance(deviation: float, reach: float) -> float:
    """Return the variance of a normal distribution of mean 0 that is cut off at both sides alike."""
    bound = reach / deviation
    inside = 2 * _STANDARD.cdf(bound) - 1
    return deviation**2 * (1 - 2 * bound * _STANDARD.pdf(bound) / inside)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLengths:
    """The lengths of requests.

    Attributes:
        pairs: Prompt and answer of each request of a file, whose lengths depend on each other; empty where they don't.
        in_order: Whether requests take them in the order of the file.
        added: What each of these prompts adds to the one before it in its conversation; empty of single requests.
    """

    input: TokenLengths
    output: TokenLengths
    pairs: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    in_order: bool = False
    added: tuple[int, ...] = field(default=(), repr=False)

    @property
    def are_fixed(self) -> bool:
        """Whether all requests have the same lengths."""
        return not (self.input.stddev or self.output.stddev)

    @property
    def longest(self) -> int:
        """Tokens of the longest request, prompt and answer."""
        if self.pairs:
            return max(sum(pair) for pair in self.pairs)
        return self.input.longest + self.output.longest

    @property
    def words(self) -> str:
        """Mean prompt and answer, with their standard deviations where they differ: `550 ± 150 + 150 ± 50 tokens`."""
        prompt, answer = (
            f"{round(side.mean):,}" + ("" if self.are_fixed else f" ± {whole_or_tenths(side.stddev)}")
            for side in (self.input, self.output)
        )
        return f"{prompt} + {answer} tokens"

    def of(self, row: int) -> tuple[int, int]:
        """Return prompt and answer of a request, in tokens."""
        if self.are_fixed:
            return round(self.input.mean), round(self.output.mean)
        if self.pairs:
            return self.pairs[self._place(row)]
        return self.input.at(share_of_row("input", row)), self.output.at(share_of_row("output", row))

    def longer(self, row: int, *, cached: bool) -> float:
        """Return how many tokens more than on average an engine computes of a request's prompt.

        Args:
            cached: Whether what was sent with earlier turns is not computed again.
        """
        if cached and self.added:
            return self.added[self._place(row)] - fmean(self.added)
        return self.of(row)[0] - round(self.input.mean)

    def _place(self, row: int) -> int:
        turn, place = divmod(row, len(self.pairs))
        return place if self.in_order else _order(f"pair {turn}", len(self.pairs))[place]


def share_of_row(name: str, row: int) -> float:
    """Return a share from 0 to 1: each block has one in each thirty-second, in an order of its own."""
    block, place = divmod(row, BLOCK)
    within = int.from_bytes(hashlib.blake2b(f"{name} {row}".encode(), digest_size=4).digest(), "big") / 2**32
    return (_order(f"{name} {block}", BLOCK)[place] + within) / BLOCK


@lru_cache(maxsize=256)
def _order(seed: str, among: int) -> tuple[int, ...]:
    drawn = hashlib.shake_256(seed.encode()).digest(4 * among)
    return tuple(sorted(range(among), key=lambda number: drawn[4 * number : 4 * number + 4]))


def normal_lengths(
    *, input_tokens: float, output_tokens: float, input_tokens_stddev: float, output_tokens_stddev: float
) -> RequestLengths:
    """Return lengths by their means and standard deviations; prompts and answers are independent."""
    return RequestLengths(
        input=TokenLengths(mean=input_tokens, stddev=input_tokens_stddev),
        output=TokenLengths(mean=output_tokens, stddev=output_tokens_stddev),
    )


def paired_lengths(pairs: Sequence[tuple[int, int]], *, in_order: bool = False) -> RequestLengths:
    """Return the lengths of requests that were counted, at least one.

    Args:
        in_order: Whether requests take them in this order; else in one that looks like chance.
    """
    return RequestLengths(
        input=_listed([prompt for prompt, _ in pairs]),
        output=_listed([answer for _, answer in pairs]),
        pairs=tuple(pairs),
        in_order=in_order,
    )


def _listed(lengths: Sequence[int]) -> TokenLengths:
    mean = fmean(lengths)
    stddev = math.sqrt(fmean((length - mean) ** 2 for length in lengths))
    return TokenLengths(mean=mean, stddev=stddev, listed=tuple(sorted(lengths)))


def shared_share(lengths: RequestLengths, shared_tokens: int) -> float:
    """Return the share of the prompt tokens that other prompts begin with too, 0 to 1.

    Args:
        shared_tokens: First tokens that are shared; a prompt that is no longer keeps one of its own.
    """
    prompts = lengths.input.listed or [lengths.input.at((place + 0.5) / BLOCK) for place in range(BLOCK)]
    return sum(min(shared_tokens, tokens - 1) for tokens in prompts) / sum(prompts)


def lengths_of(workload: Workload) -> RequestLengths:
    """Return the lengths of a trial's requests."""
    if workload.lengths:
        pairs = [(prompt, answer) for prompt, answer in workload.lengths]
        return paired_lengths(pairs, in_order=bool(workload.times_s or workload.conversations))
    return RequestLengths(
        input=TokenLengths(mean=workload.input_tokens, stddev=workload.input_tokens_stddev),
        output=TokenLengths(mean=workload.output_tokens, stddev=workload.output_tokens_stddev),
    )


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
