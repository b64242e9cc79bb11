"""The answers of two recipes to one prompt, side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.quality.scores import is_exact_match, normalized, token_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import EvaluationPrompt
    from seatrial_load.documents.result import EvaluationAnswer


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """One prompt that both recipes answered.

    Attributes:
        prompt: The prompt.
        a: The first recipe's answer.
        b: The second one's.
    """

    prompt: EvaluationPrompt
    a: EvaluationAnswer
    b: EvaluationAnswer

    @property
    def is_identical(self) -> bool:
        """Whether both wrote the same text."""
        return self.a.text == self.b.text

    @property
    def common_tokens(self) -> int | None:
        """Tokens until the first difference: all of the shorter answer's where none differs; None without tokens."""
        if self.a.tokens is None or self.b.tokens is None:
            return None
        pairs = zip(self.a.tokens, self.b.tokens, strict=False)
        return next((place for place, (one, other) in enumerate(pairs) if one != other), self._shorter)

    @property
    def log_probability_distance(self) -> float | None:
        """Mean absolute difference of the log-probabilities of the tokens that both wrote alike, before any differs.

        Both models saw the same text there, so the difference is theirs. None without such a token.
        """
        common, logs_a, logs_b = self.common_tokens, self.a.log_probabilities, self.b.log_probabilities
        if not common or logs_a is None or logs_b is None:
            return None
        return math.fsum(abs(logs_a[place] - logs_b[place]) for place in range(common)) / common

    @property
    def _shorter(self) -> int:
        return min(len(self.a.tokens or ()), len(self.b.tokens or ()))

    def exact_matches(self) -> tuple[float, float] | None:
        """Return 1 for each answer that equals the reference, else 0; None without a reference."""
        reference = self.prompt.reference
        if reference is None:
            return None
        return float(is_exact_match(self.a.text, reference)), float(is_exact_match(self.b.text, reference))

    def log_sums(self) -> tuple[tuple[float, int], tuple[float, int]] | None:
        """Return sum of log-probabilities and number of tokens of each answer; None where one doesn't tell them."""
        sums = token_sums((self.a, self.b))
        return (sums[0], sums[1]) if len(sums) == len((self.a, self.b)) else None

    @property
    def says_the_same(self) -> bool:
        """Whether both texts are the same once normalized."""
        return normalized(self.a.text) == normalized(self.b.text)


def pairs_of(
    prompts: Sequence[EvaluationPrompt], a: Sequence[EvaluationAnswer], b: Sequence[EvaluationAnswer]
) -> tuple[AnswerPair, ...]:
    """Return the prompts that both recipes answered."""
    every = (AnswerPair(*each) for each in zip(prompts, a, b, strict=True))
    return tuple(pair for pair in every if pair.a.answered and pair.b.answered)
