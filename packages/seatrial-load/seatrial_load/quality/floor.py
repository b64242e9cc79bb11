"""The quality that a trial must prove: asked after the levels, held against bounds, part of the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.units import fine_percent
from seatrial_load.quality.evaluation_set import EvaluationPrompt  # noqa: TC001 (the strict reader resolves it)
from seatrial_load.quality.scores import QualityMetric, QualityScore, scores_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.measure.distribution import Interval
    from seatrial_load.model.result import Verdict
    from seatrial_load.quality.answers import EvaluationAnswer


LEAST_ANSWERED: Final = 0.9
"""Share of the prompts; where more failed, the answers that are left decide nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityObjective:
    """One bound on the quality.

    Attributes:
        metric: What it bounds.
        bound: The bound.
        sense: Its side.
    """

    metric: QualityMetric
    bound: float
    sense: Literal["at_most", "at_least"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFloor:
    """The evaluation set of a trial and what its answers must be worth.

    Attributes:
        evaluation_set: Digest of the set.
        prompts: The set.
        objectives: The bounds.
        most_tokens: Tokens that an answer may have.
    """

    evaluation_set: str
    prompts: tuple[EvaluationPrompt, ...]
    objectives: tuple[QualityObjective, ...]
    most_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCheck:
    """One objective held against the answers.

    Attributes:
        objective: The objective.
        measured: The value; None when no answer tells it.
        met: Whether it is proven met or missed; None when nothing tells it, or the interval reaches over the bound.
        sentence: The same in words.
    """

    objective: QualityObjective
    measured: float | None
    met: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityResult:
    """The quality that a trial found.

    Attributes:
        evaluation_set: Digest of the evaluation set.
        prompts: Prompts of the set.
        answered: Those that were answered in full.
        scores: What the answers are worth, with intervals of 95 % confidence; empty where nothing was asked.
        checks: The objectives; empty where nothing was asked.
        because: Why nothing was asked, or how it was, in a sentence.
        duration_s: How long it took.
    """

    evaluation_set: str
    prompts: int
    answered: int
    scores: tuple[QualityScore, ...]
    checks: tuple[QualityCheck, ...]
    because: str
    duration_s: float = 0.0


def not_asked(floor: QualityFloor, because: str) -> QualityResult:
    """Return that nothing was asked, for a reason."""
    return QualityResult(
        evaluation_set=floor.evaluation_set,
        prompts=len(floor.prompts),
        answered=0,
        scores=(),
        checks=(),
        because=f"quality was not measured: {because}",
    )


def judged_quality(floor: QualityFloor, answers: Sequence[EvaluationAnswer], confidence: float) -> QualityResult:
    """Hold answers against the bounds.

    Args:
        floor: The set and the bounds.
        answers: One for each prompt, in their order.
        confidence: Of the proof.
    """
    answered = sum(answer.answered for answer in answers)
    told = f"{answered} of {len(answers)} prompts of the evaluation set were answered"
    first = next((answer.failure for answer in answers if answer.failure), "")
    enough = answered >= LEAST_ANSWERED * len(answers)
    bounds = {score.metric: score for score in scores_of(floor.prompts, answers, tail=1 - max(confidence, 0.5))}
    checks = tuple(_check(objective, bounds[objective.metric], confidence) for objective in floor.objectives)
    return QualityResult(
        evaluation_set=floor.evaluation_set,
        prompts=len(answers),
        answered=answered,
        scores=scores_of(floor.prompts, answers),
        checks=checks if enough else tuple(replace(check, met=None) for check in checks),
        because=f"{told} ({first})" if first else told,
    )


def _check(objective: QualityObjective, score: QualityScore, confidence: float) -> QualityCheck:
    bound = f"{'at most' if objective.sense == 'at_most' else 'at least'} {_written(objective, objective.bound)}"
    if score.value is None:
        sentence = f"quality {objective.metric} was not measured: no answer tells it; {bound} is asked"
        return QualityCheck(objective=objective, measured=None, met=None, sentence=sentence)
    met = _is_within(objective, score.value) if confidence <= 0 else _proven(objective, score.interval)
    relation = {True: "meets", False: "misses", None: "is not proven to meet or miss"}[met]
    sentence = f"quality {objective.metric} {_written(objective, score.value)} {relation} {bound}"
    return QualityCheck(
        objective=objective, measured=score.value, met=met, sentence=f"{sentence}{_ends(score, objective)}"
    )


def _ends(score: QualityScore, objective: QualityObjective) -> str:
    low, high = score.interval.low, score.interval.high
    if low is None or high is None:
        return f" ({score.count} answers)"
    return f" ({_written(objective, low)} to {_written(objective, high)}, {score.count} answers)"


def _is_within(objective: QualityObjective, value: float) -> bool:
    return value <= objective.bound if objective.sense == "at_most" else value >= objective.bound


def _proven(objective: QualityObjective, interval: Interval) -> bool | None:
    ends = (interval.high, interval.low) if objective.sense == "at_most" else (interval.low, interval.high)
    worse, better = ends
    if worse is not None and _is_within(objective, worse):
        return True
    return False if better is not None and not _is_within(objective, better) else None


def _written(objective: QualityObjective, value: float) -> str:
    return fine_percent(value) if objective.metric == "exact_match" else f"{value:.4g}"


def with_quality(verdict: Verdict, quality: QualityResult) -> Verdict:
    """Return the verdict with the quality: what is proven missed fails it, what is not proven makes it inconclusive."""
    missed = [check.sentence for check in quality.checks if check.met is False]
    unknown = list(_unknown(quality))
    if missed:
        before = (verdict.because,) if verdict.status == "fail" else ()
        return replace(verdict, status="fail", because="; ".join((*before, *missed)))
    if unknown:
        status = "inconclusive" if verdict.status == "pass" else verdict.status
        return replace(verdict, status=status, because="; ".join((*unknown, verdict.because)))
    return replace(verdict, because="; ".join((verdict.because, *(check.sentence for check in quality.checks))))


def _unknown(quality: QualityResult) -> Iterator[str]:
    if not quality.checks:
        yield quality.because
    unknown = [check.sentence for check in quality.checks if check.met is None]
    yield from unknown
    if unknown and quality.answered < quality.prompts:
        yield quality.because
