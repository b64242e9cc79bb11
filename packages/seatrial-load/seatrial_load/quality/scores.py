"""What answers are worth by themselves: agreement with the right answer, and how sure the model was of its tokens."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from seatrial_load.measure.distribution import Interval
from seatrial_load.measure.interval import BOTH_TAILS, NOTHING, share_interval, student_t

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial_load.quality.answers import EvaluationAnswer
    from seatrial_load.quality.evaluation_set import EvaluationPrompt


QualityMetric: TypeAlias = Literal["exact_match", "mean_logprob", "perplexity"]
FEWEST_PROMPTS: Final = 20
"""Fewer prompts decide nothing: an interval of so few answers says little of the next ones."""
LOWEST_LOG: Final = -700.0  # of a float: exp(700) is the largest round power that it can say


def normalized(text: str) -> str:
    """Return a text as exact match compares it: NFKC, case folded, each run of white space one space, none at the ends.

    Punctuation counts. Ask for answers that have none, or put it into the reference.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def is_exact_match(answer: str, reference: str) -> bool:
    """Tell whether an answer says the same as the reference, both normalized."""
    return normalized(answer) == normalized(reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityScore:
    """One metric over an evaluation set.

    Attributes:
        metric: `exact_match`: share of the answers that equal their reference; `mean_logprob`: mean log-probability
            of the generated tokens, natural logarithm; `perplexity`: exp(-mean_logprob), from 1.
        value: The value; None where no answer tells it.
        interval: With 95 % confidence, or at another one where it was asked for; None bounds where it can't be told.
        count: Answers that it comes from.
    """

    metric: QualityMetric
    value: float | None
    interval: Interval
    count: int


def scores_of(
    prompts: Sequence[EvaluationPrompt], answers: Sequence[EvaluationAnswer], *, tail: float = BOTH_TAILS
) -> tuple[QualityScore, ...]:
    """Score the answers of one endpoint; a prompt that failed counts for nothing.

    Args:
        prompts: What was asked.
        answers: One for each, in their order.
        tail: How often each bound of an interval may be wrong.
    """
    right = [
        is_exact_match(answer.text, prompt.reference)
        for prompt, answer in zip(prompts, answers, strict=True)
        if answer.answered and prompt.reference is not None
    ]
    log = _mean_log_probability(answers, tail=tail)
    return (_exact_match(right, tail), log, _perplexity(log))


def _exact_match(right: Sequence[bool], tail: float) -> QualityScore:
    hits, count = sum(right), len(right)
    value = hits / count if count else None
    return QualityScore(metric="exact_match", value=value, interval=share_interval(hits, count, tail=tail), count=count)


def token_sums(answers: Iterable[EvaluationAnswer]) -> list[tuple[float, int]]:
    """Return the sum of log-probabilities and the number of tokens of each answer that tells them."""
    told = (answer.log_probabilities for answer in answers if answer.answered)
    return [(math.fsum(logs), len(logs)) for logs in told if logs]


def _mean_log_probability(answers: Iterable[EvaluationAnswer], *, tail: float) -> QualityScore:
    """Return the sum of log-probabilities over tokens, a ratio of two means over answers.

    Its variance, to first order, is that of Lᵢ - r Tᵢ over n and the mean of T squared (Cochran, Sampling Techniques,
    3rd edition, 6.3).
    """
    sums = token_sums(answers)
    if not sums:
        return QualityScore(metric="mean_logprob", value=None, interval=NOTHING, count=0)
    count, tokens = len(sums), sum(length for _, length in sums)
    ratio = math.fsum(log for log, _ in sums) / tokens
    if count == 1:
        return QualityScore(metric="mean_logprob", value=ratio, interval=NOTHING, count=1)
    off = math.fsum((log - ratio * length) ** 2 for log, length in sums) / (count - 1)
    half = student_t(1 - tail, count - 1) * math.sqrt(off / count) / (tokens / count)
    interval = Interval(low=ratio - half, high=min(ratio + half, 0.0))
    return QualityScore(metric="mean_logprob", value=ratio, interval=interval, count=count)


def _perplexity(log: QualityScore) -> QualityScore:
    low, high = (None if end is None else perplexity(end) for end in (log.interval.high, log.interval.low))
    value = None if log.value is None else perplexity(log.value)
    return QualityScore(metric="perplexity", value=value, interval=Interval(low=low, high=high), count=log.count)


def perplexity(mean_log_probability: float) -> float:
    """Return exp(-mean log-probability): the inverse probability of a token, the geometric mean (from 1)."""
    return math.exp(-max(mean_log_probability, LOWEST_LOG))
