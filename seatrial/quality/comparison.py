"""Comparison of two recipes' quality: paired by prompt, with bootstrap intervals, and a verdict for each metric.

The intervals are percentile bootstraps over prompts (Efron and Tibshirani, An Introduction to the Bootstrap, 13.3),
from a seed that the answers give: the same answers give the same interval. More than 200 prompts are drawn in 200
blocks.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from seatrial_base.errors import SpecError
from seatrial_load.documents.distribution import Interval
from seatrial_load.measure.interval import BOTH_TAILS, NOTHING, percentile, share_interval
from seatrial_load.quality.scores import FEWEST_PROMPTS, perplexity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seatrial.quality.pairs import AnswerPair

RESAMPLES: Final = 2_000
MOST_BLOCKS: Final = 200
LikenessMetric: TypeAlias = Literal["identical_answers", "same_text", "common_tokens", "logprob_distance"]
MetricVerdict: TypeAlias = Literal["better", "worse", "no real difference", "too few prompts"]
_LOWER_IS_BETTER: Final = ("perplexity",)
_Values: TypeAlias = "Sequence[tuple[float, float]]"
_Sums: TypeAlias = "tuple[tuple[float, int], tuple[float, int]]"
RULE: Final = "SEA528"
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""A word, or one character of a script that puts no spaces between words; the library's own knows only a-z and 0-9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDifference:
    """One metric of two recipes over the prompts that both answered.

    Attributes:
        metric: `exact_match` and `rouge_l` (0 to 1, mean over prompts), `mean_logprob` (per generated token),
            `perplexity`; of a suite, its name and its metric's.
        difference: b - a.
        interval: Of the difference, with 95 % confidence.
        verdict: What is proven of b; `no real difference` where the interval contains 0.
        count: Prompts that it comes from.
    """

    metric: str
    a: float
    b: float
    difference: float
    interval: Interval
    verdict: MetricVerdict
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike the answers of two recipes are, whichever is better.

    Attributes:
        metric: `identical_answers` and `same_text` (share of the prompts, the latter normalized as exact match does),
            `common_tokens` (tokens until the first difference), `logprob_distance` (mean absolute difference of the
            log-probabilities of these tokens).
        value: The mean over prompts.
        interval: With 95 % confidence.
        count: Prompts that it comes from.
    """

    metric: LikenessMetric
    value: float
    interval: Interval
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityComparison:
    """Two recipes on one evaluation set.

    Attributes:
        prompts: Prompts of the set.
        paired: Those that both answered.
        differences: The metrics in which one is better than the other.
        likeness: How alike the answers are.
        notes: What a reader must know, in sentences.
    """

    prompts: int
    paired: int
    differences: tuple[MetricDifference, ...]
    likeness: tuple[Likeness, ...]
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[MetricDifference, ...]:
        """The metrics in which the second recipe is proven worse."""
        return tuple(each for each in self.differences if each.verdict == "worse")


def compare_quality(pairs: Sequence[AnswerPair], prompts: int) -> QualityComparison:
    """Compare two recipes by their answers."""
    differences = tuple(_differences(pairs))
    return QualityComparison(
        prompts=prompts,
        paired=len(pairs),
        differences=differences,
        likeness=tuple(_likeness(pairs)),
        notes=tuple(_notes(pairs, prompts, differences)),
    )


def _notes(pairs: Sequence[AnswerPair], prompts: int, differences: Sequence[MetricDifference]) -> Iterator[str]:
    if len(pairs) < prompts:
        yield f"{prompts - len(pairs)} of {prompts} prompts were not answered by both recipes and are left out"
    yield from chance_notes(differences)
    has_references = any(pair.prompt.reference is not None for pair in pairs)
    if not has_references:
        yield "the evaluation set has no references: exact match and ROUGE-L can't be told"
    elif not has_rouge():
        yield "ROUGE-L is left out: pip install 'seatrial[quality]'"
    if pairs and all(pair.log_sums() is None for pair in pairs):
        yield "the engine returned no log-probabilities: perplexity and log-probability distance can't be told"


def chance_notes(differences: Sequence[MetricDifference]) -> Iterator[str]:
    """Yield how likely it is that chance alone shows a difference, where several metrics are judged."""
    judged = [each for each in differences if each.verdict != "too few prompts"]
    if len(judged) > 1:
        yield (
            f"{len(judged)} metrics are judged, each with 95 % confidence: without any real difference, the chance "
            f"that at least one of them shows one is up to {min(1.0, 2 * BOTH_TAILS * len(judged)) * 100:.0f} %"
        )


def _differences(pairs: Sequence[AnswerPair]) -> Iterator[MetricDifference]:
    exact = [matches for pair in pairs if (matches := pair.exact_matches()) is not None]
    if exact:
        yield compare_means("exact_match", exact)
    referenced = [pair for pair in pairs if pair.prompt.reference is not None]
    # The library is an extra: without it the other metrics are judged all the same.
    if referenced and has_rouge():
        first = rouge_l([(pair.prompt.reference or "", pair.a.text) for pair in referenced])
        second = rouge_l([(pair.prompt.reference or "", pair.b.text) for pair in referenced])
        yield compare_means("rouge_l", list(zip(first, second, strict=True)))
    sums = [log_sums for pair in pairs if (log_sums := pair.log_sums()) is not None]
    if sums:
        yield _of_ratios("mean_logprob", sums, lambda mean: mean)
        yield _of_ratios("perplexity", sums, perplexity)


def compare_means(metric: str, values: _Values) -> MetricDifference:
    """Compare the means of pairs of scores, each pair of one prompt; there must be at least one."""
    a, b = (math.fsum(column) / len(values) for column in zip(*values, strict=True))
    differences = [other - one for one, other in values]
    interval = mean_interval(differences)
    if not any(differences) and is_binary(chain.from_iterable(values)):
        most = share_interval(0, len(values), tail=BOTH_TAILS).high or 1.0
        interval = Interval(low=-most, high=most)
    return _difference(metric, a, b, interval, len(values))


def is_binary(scores: Iterable[float]) -> bool:
    """Return whether every score is 0 or 1."""
    return all(score in {0, 1} for score in scores)


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the 95 % interval of a mean by the bootstrap; nothing of fewer than two values."""
    return _bootstrap([(value, 1.0) for value in values], lambda totals: totals[0] / totals[1])


def _of_ratios(metric: str, sums: Sequence[_Sums], figure: Callable[[float], float]) -> MetricDifference:
    """Compare sums of log-probabilities over tokens; both of a prompt are drawn together."""
    rows = [(log_a, float(count_a), log_b, float(count_b)) for (log_a, count_a), (log_b, count_b) in sums]

    def difference(totals: Sequence[float]) -> float:
        return figure(totals[2] / totals[3]) - figure(totals[0] / totals[1])

    totals = [math.fsum(column) for column in zip(*rows, strict=True)]
    a, b = figure(totals[0] / totals[1]), figure(totals[2] / totals[3])
    return _difference(metric, a, b, _bootstrap(rows, difference), len(sums))


def _difference(metric: str, a: float, b: float, interval: Interval, count: int) -> MetricDifference:
    verdict: MetricVerdict = "no real difference"
    if count < FEWEST_PROMPTS or interval.low is None or interval.high is None:
        verdict = "too few prompts"
    elif interval.low > 0 or interval.high < 0:
        verdict = "better" if (interval.low > 0) != (metric in _LOWER_IS_BETTER) else "worse"
    return MetricDifference(metric=metric, a=a, b=b, difference=b - a, interval=interval, verdict=verdict, count=count)


def _likeness(pairs: Sequence[AnswerPair]) -> Iterator[Likeness]:
    if not pairs:
        return
    yield _share("identical_answers", [pair.is_identical for pair in pairs])
    yield _share("same_text", [pair.says_the_same for pair in pairs])
    common = [float(count) for pair in pairs if (count := pair.common_tokens) is not None]
    distances = [far for pair in pairs if (far := pair.log_probability_distance) is not None]
    if common:
        yield _likeness_of("common_tokens", common)
    if distances:
        yield _likeness_of("logprob_distance", distances)


def _share(metric: LikenessMetric, hits: Sequence[bool]) -> Likeness:
    interval = share_interval(sum(hits), len(hits), tail=BOTH_TAILS)
    return Likeness(metric=metric, value=sum(hits) / len(hits), interval=interval, count=len(hits))


def _likeness_of(metric: LikenessMetric, values: Sequence[float]) -> Likeness:
    mean = math.fsum(values) / len(values)
    return Likeness(metric=metric, value=mean, interval=mean_interval(values), count=len(values))


def _bootstrap(rows: Sequence[Sequence[float]], statistic: Callable[[Sequence[float]], float]) -> Interval:
    """Return the 95 % interval of a statistic of the rows' sums; nothing of fewer than two rows."""
    if len(rows) < 2:  # noqa: PLR2004 (one prompt is no evidence of the next)
        return NOTHING
    count = min(len(rows), MOST_BLOCKS)
    blocks = [tuple(math.fsum(column) for column in zip(*rows[place::count], strict=True)) for place in range(count)]
    random = Random(sha256(repr(blocks).encode()).digest())  # noqa: S311 (a resampling, not a secret)
    draws: list[float] = []
    for _ in range(RESAMPLES):
        drawn = random.choices(blocks, k=len(blocks))
        draws.append(statistic([math.fsum(column) for column in zip(*drawn, strict=True)]))
    draws.sort()
    return Interval(low=percentile(draws, 100 * BOTH_TAILS), high=percentile(draws, 100 * (1 - BOTH_TAILS)))


class _Score(Protocol):
    @property
    def fmeasure(self) -> float:
        """The harmonic mean of precision and recall."""


class _Scorer(Protocol):
    def score(self, target: str, prediction: str) -> Mapping[str, _Score]:
        """Score a prediction."""


class _Words:
    """Splits a text into words, in any script."""

    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(text.casefold())


def has_rouge() -> bool:
    """Return whether the library is installed."""
    return find_spec("rouge_score") is not None


def check_rouge(field: str) -> None:
    """Refuse to go on without the library.

    Raises:
        SpecError: SEA528.
    """
    if not has_rouge():
        hint = "install it: pip install 'seatrial[quality]'"
        raise SpecError.of(RULE, "ROUGE-L needs the package rouge-score", where="this Python", field=field, hint=hint)


def rouge_l(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the F-measure of the longest common subsequence of words for each reference and answer, 0 to 1.

    Source: C.-Y. Lin, ROUGE: A Package for Automatic Evaluation of Summaries, 2004; `rouge-score` without stemming.

    Raises:
        SpecError: SEA528, the library is not installed.
    """
    check_rouge("ROUGE-L")
    from rouge_score import rouge_scorer  # noqa: PLC0415 (an extra, which takes a second to import)

    scorer = cast("_Scorer", rouge_scorer.RougeScorer(["rougeL"], tokenizer=_Words()))
    return [float(scorer.score(reference, answer)["rougeL"].fmeasure) for reference, answer in pairs]
