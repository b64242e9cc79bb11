"""Made-up prompts of about so many tokens, which share no beginning but the one they are told to share.

A word of the list is one token in the common vocabularies (a frequent English word with its space before it), so a
prompt begins with as many words as tokens; `calibrated` mends that by what the endpoint itself counts, chat template
and special tokens included. The first words differ from request to request and from trial to trial: a prefix cache has
nothing to reuse, unless a shared prefix is asked for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seatrial.bench.record import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticPrompts:
    """Prompts of one length.

    Attributes:
        seed: Another seed gives prompts that share nothing with these.
        tokens_in: Length of a prompt.
        tokens_out: Length of an answer.
        words_per_token: Words that make one token of the endpoint's own count.
        shared_prefix_tokens: So many first tokens are those of the others of the same group; at most `tokens_in`.
        prefix_groups: So many different shared beginnings, taken in turn.
    """

    seed: str
    tokens_in: int
    tokens_out: int
    words_per_token: float = 1.0
    shared_prefix_tokens: int = 0
    prefix_groups: int = 1

    def content(self, index: int) -> str:
        """Write the prompt of the request with this number."""
        total = word_count(self.tokens_in, self.words_per_token)
        shared = min(round(self.shared_prefix_tokens * self.words_per_token), total)
        own = words(f"{self.seed}:{index}", total - shared)
        if not shared:
            return " ".join(own)
        return " ".join(words(f"{self.seed}:group {index % self.prefix_groups}", shared) + own)

    def output_tokens(self, _index: int) -> int:
        """Return the length of an answer."""
        return self.tokens_out

    def input_tokens(self, _index: int) -> int:
        """Return the length of a prompt."""
        return self.tokens_in


def words(seed: str, count: int) -> list[str]:
    """Draw words by the digest of the seed: the same words for the same seed, the first of them for a lower count."""
    return [WORDS[pick] for pick in hashlib.shake_256(seed.encode()).digest(count)]


def word_count(tokens: int, words_per_token: float) -> int:
    """Return how many words make so many tokens; a prompt has at least one."""
    return max(1, round(tokens * words_per_token))


def calibrated(
    words_per_token: float, records: Iterable[RequestRecord], wanted_tokens: Callable[[int], int | None]
) -> float | None:
    """Return the words per token that the endpoint's own counts call for.

    Formula: words_per_token x (tokens that were wanted) / (tokens that the endpoint counted), over the requests whose
    count it told. The endpoint counts its template and special tokens too, so these are part of the length.

    Args:
        words_per_token: With which the requests were written.
        records: Requests that are over, such as the warm-up's.
        wanted_tokens: `Prompts.input_tokens` of the source that wrote them.

    Returns:
        None when the endpoint told no count.
    """
    told = [(wanted_tokens(record.index), record.input_tokens) for record in records]
    counts = [(wanted, counted) for wanted, counted in told if wanted and counted]
    if not counts:
        return None
    return words_per_token * sum(wanted for wanted, _ in counts) / sum(counted for _, counted in counts)
