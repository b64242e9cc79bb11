"""How sure the model was of what it wrote, from the log-probabilities of its tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.payload.answer import Completion


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """The probability that the model itself gave to its answer; it says nothing of the answer being true.

    Attributes:
        tokens: Tokens counted, N.
        log_probability: Σ ln pᵢ over the tokens: the logarithm of the probability of the whole answer.
        per_token: exp(Σ ln pᵢ / N), the geometric mean of the tokens' probabilities, 0 to 1. It doesn't fall with
            length, so answers of different lengths compare.
        perplexity: exp(-Σ ln pᵢ / N), its inverse, from 1; infinite when it exceeds what a float can say.
        lowest: The probability of the least probable token.
    """

    tokens: int
    log_probability: float
    per_token: float
    perplexity: float
    lowest: float


def confidence(completion: Completion) -> Confidence | None:
    """Return the confidence; None when the answer has no tokens or one has no log-probability.

    Ask OpenAI's schemas for them with `Options(log_probabilities=True)`; LMI's and TGI's tell them anyway. With
    sampling, engines differ in whether temperature and penalties are in the numbers.

    Source of the formulas: Jurafsky and Martin, Speech and Language Processing, chapter on n-gram language models
    (perplexity is the inverse probability, normalized by length).
    """
    told = [token.log_probability for token in completion.tokens or ()]
    known = [value for value in told if value is not None]
    if not known or len(known) < len(told):
        return None
    total = math.fsum(known)
    mean = total / len(known)
    return Confidence(
        tokens=len(known),
        log_probability=total,
        per_token=_exp(mean),
        perplexity=_exp(-mean),
        lowest=_exp(min(known)),
    )


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
