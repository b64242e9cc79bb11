"""Counts of requests and tokens of one worker's share of a level, and oddities of its answers; shares add up."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from seatrial_base.field_facts import facts_of
from seatrial_base.units import MS_PER_S
from seatrial_load.documents.result import AnswerDoubt, Occasion, Unmeasured
from seatrial_load.measure.interval import percentile
from seatrial_load.metrics.histogram import Histogram
from seatrial_load.metrics.request_metrics import is_burst, tpot_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.result import DoubtKind, LevelResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of requests, and how they ended.

    Attributes:
        requests: Measured requests that ended.
        succeeded: Those answered in full.
        errors: How many of them failed, by error class.
        first_errors: The service's message on the first failure of each class, those of the ramp too.
        retried: How many failures were repeated, by error class, those of the ramp too.
        ramp_errors: How many of these failed, by error class.
        conversations: Measured conversations that began; 0 of single requests.
        broken: Measured conversations that a turn which failed ended.
        sessions_per_h: Recorded sessions that ended in an hour while all places were taken; None without any.
        duration_s: First request sent to last request ended, ramp included; the longest of the shares'.
    """

    requests: int
    succeeded: int
    errors: Mapping[str, int]
    first_errors: Mapping[str, str]
    retried: Mapping[str, int]
    ramp_requests: int
    ramp_errors: Mapping[str, int]
    duration_s: float
    conversations: int = 0
    broken: int = 0
    sessions_per_h: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The lengths of the measured requests that succeeded.

    Attributes:
        read: Sum of the prompts' tokens, where reported.
        prompts: How many reported them.
        written: Sum of the answers' tokens, where reported.
        answers: How many reported them.
        parts: Pieces that carried the streamed ones among these answers.
        written_in_parts: Their tokens.
        prompt_lengths: The prompts' tokens as an HDR histogram, as in `Distribution.histogram`; empty for none.
        answer_lengths: The answers' tokens, likewise.
        cached: Sum of the prompts' tokens that came from a cache, where reported.
        cacheable: Sum of all tokens of these prompts.
    """

    read: int
    prompts: int
    written: int
    answers: int
    parts: int
    written_in_parts: int
    prompt_lengths: str = ""
    answer_lengths: str = ""
    cached: int = 0
    cacheable: int = 0


def counts_of(first: Sequence[RequestRecord], measured: Sequence[RequestRecord]) -> Counts:
    """Count the requests of a share: the ramp's and the measured ones, at least one of either."""
    every = (*first, *measured)
    return Counts(
        requests=len(measured),
        succeeded=sum(record.succeeded for record in measured),
        errors=_by_frequency(record.error for record in measured if record.error is not None),
        first_errors=first_of_each(
            (record.error, f"{record.error}: {record.detail}") for record in every if record.error is not None
        ),
        retried=_by_frequency(name for record in every for name in record.retried),
        ramp_requests=len(first),
        ramp_errors=_by_frequency(record.error for record in first if record.error is not None),
        duration_s=max(record.ended_s for record in every) - min(record.sent_s for record in every),
        conversations=sum(record.turn == 1 for record in measured),
        broken=sum(record.turn > 0 and record.error is not None for record in measured),
    )


def added_counts(shares: Sequence[Counts]) -> Counts:
    """Add up the counts of shares, at least one."""
    return Counts(
        requests=sum(share.requests for share in shares),
        succeeded=sum(share.succeeded for share in shares),
        errors=_by_frequency(*(share.errors for share in shares)),
        first_errors=first_of_each(item for share in shares for item in share.first_errors.items()),
        retried=_by_frequency(*(share.retried for share in shares)),
        ramp_requests=sum(share.ramp_requests for share in shares),
        ramp_errors=_by_frequency(*(share.ramp_errors for share in shares)),
        duration_s=max(share.duration_s for share in shares),
        conversations=sum(share.conversations for share in shares),
        broken=sum(share.broken for share in shares),
        sessions_per_h=sum(known) if (known := [one for share in shares if (one := share.sessions_per_h)]) else None,
    )


def tokens_of(succeeded: Iterable[RequestRecord]) -> Tokens:
    """Count the tokens of answered requests."""
    records = list(succeeded)
    prompts = [record.input_tokens for record in records if record.input_tokens is not None]
    answers = [(record.output_tokens, record.parts) for record in records if record.output_tokens is not None]
    in_parts = [(tokens, parts) for tokens, parts in answers if parts is not None]
    return Tokens(
        read=sum(prompts),
        prompts=len(prompts),
        written=sum(tokens for tokens, _ in answers),
        answers=len(answers),
        parts=sum(parts for _, parts in in_parts),
        written_in_parts=sum(tokens for tokens, _ in in_parts),
        prompt_lengths=_histogram_of(prompts),
        answer_lengths=_histogram_of([tokens for tokens, _ in answers]),
        cached=sum(record.cached_tokens or 0 for record in records),
        cacheable=sum(record.input_tokens or 0 for record in records if record.cached_tokens is not None),
    )


def _histogram_of(lengths: Sequence[int]) -> str:
    if not lengths:
        return ""
    histogram = Histogram()
    for tokens in lengths:
        histogram.add(tokens)
    return histogram.encode()


def _merged(histograms: Sequence[str]) -> str:
    known = [text for text in histograms if text]
    if len(known) <= 1:
        return known[0] if known else ""
    merged = Histogram()
    for text in known:
        merged.merge(Histogram.decode(text))
    return merged.encode()


def percentile_of_lengths(histogram: str, percent: float) -> float | None:
    """Return a percentile of the lengths in a histogram, within 0.1 %; None of an empty one."""
    return percentile(Histogram.decode(histogram).ranked(), percent) if histogram else None


def added_tokens(shares: Sequence[Tokens]) -> Tokens:
    """Add up the tokens of shares."""
    counts = (name for name in facts_of(Tokens) if not name.endswith("_lengths"))
    return Tokens(
        **{name: sum(getattr(share, name) for share in shares) for name in counts},
        prompt_lengths=_merged([share.prompt_lengths for share in shares]),
        answer_lengths=_merged([share.answer_lengths for share in shares]),
    )


def _by_frequency(*names: Iterable[str] | Mapping[str, int], most: int | None = None) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in names:
        total.update(part)
    return dict(total.most_common(most))


def first_of_each(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first sentence of each name."""
    first: dict[str, str] = {}
    for name, sentence in items:
        first.setdefault(name, sentence)
    return first


def unmeasured_of(
    records: Sequence[RequestRecord],
    occasion: Occasion,
    *,
    concurrency: int | None = None,
    offered_requests_per_s: float | None = None,
    because: str = "",
    doubts: Sequence[AnswerDoubt] = (),
) -> Unmeasured:
    """Sum up requests, with those that were in flight at the end."""
    failed = [(record.error, record) for record in records if record.error is not None]
    answers_s = [record.ended_s - record.sent_s for record in records if record.error is None]
    return Unmeasured(
        occasion=occasion,
        concurrency=concurrency,
        offered_requests_per_s=offered_requests_per_s,
        sent=len(records),
        succeeded=len(records) - len(failed),
        errors=dict(Counter(error for error, _ in failed).most_common()),
        first_errors=tuple(first_of_each((error, f"{error}: {record.detail}") for error, record in failed).values()),
        longest_wait_s=max((record.ended_s - record.sent_s for _, record in failed), default=None),
        answer_s=fmean(answers_s) if answers_s else None,
        because=because,
        doubts=tuple(doubts),
    )


def nothing_answered(levels: Sequence[LevelResult], unmeasured: Sequence[Unmeasured]) -> str | None:
    """Return that requests were sent in this trial and none was answered; None where one was, or none was sent."""
    answered = sum(level.succeeded for level in levels) + sum(seen.succeeded for seen in unmeasured)
    sent = sum(level.requests for level in levels) + sum(seen.sent for seen in unmeasured)
    if answered or not sent:
        return None
    return _outcome(sent, 0, [*levels, *unmeasured])


def outcome_sentence(unmeasured: Unmeasured) -> str:
    """Return how many were sent and answered, why the others were not, and after how long."""
    return _outcome(unmeasured.sent, unmeasured.succeeded, [unmeasured])


def unmeasured_lines(unmeasured: Sequence[Unmeasured]) -> Iterator[str]:
    """Return what became of the requests that are part of no whole level, where some failed or were cut."""
    for seen in unmeasured:
        how = "cut" if seen.occasion == "level" and seen.succeeded else "not measured"
        if seen.errors:
            yield f"{how}: {seen.place}: {outcome_sentence(seen)}"


def _outcome(sent: int, succeeded: int, seen: Sequence[Unmeasured | LevelResult]) -> str:
    errors: Counter[str] = Counter()
    for part in seen:
        errors.update(part.errors)
    if not errors:
        return f"{succeeded} of {sent} requests succeeded"
    classes = ", ".join(f"{name} {count}" for name, count in errors.most_common())
    waits_s = [part.longest_wait_s for part in seen if isinstance(part, Unmeasured)]
    longest_s = max((wait_s for wait_s in waits_s if wait_s is not None), default=None)
    waited = "" if longest_s is None else f", {sent - succeeded} failed within {longest_s:.1f} s"
    # The first failure of the most frequent class that has one.
    first_errors = first_of_each((text.partition(":")[0], text) for part in seen for text in part.first_errors)
    first = next((first_errors[name] for name, _ in errors.most_common() if name in first_errors), "")
    aside = f" ({first})" if first else ""
    return f"{succeeded} of {sent} requests succeeded{waited}: {classes}{aside}"


# Names of models, and texts, that a share keeps: the most frequent ones.
MOST_KEPT: Final = 8
# Fewer answers of the same text are chance.
FEWEST_SAME: Final = 4
# Share of the answers from which a doubt is reported: at once what a good engine never does, the rest from a half on.
_REPORTED_FROM: Final[Mapping[DoubtKind, float]] = {
    "ended_early": 0.0, "uncounted": 0.1, "cached": 0.0, "blank": 0.0, "repeated": 0.0
}  # fmt: skip
# An engine that can't ignore the end, a tiny one that shares its cores, and a model that answers prompts of words in no
# order alike are good; so these doubts are reported where they are the rule.
USUAL_SHARE: Final = 0.5
_WORDS: Final[Mapping[DoubtKind, str]] = {
    "ended_early": (
        "have fewer than 90 % of the requested tokens, though the end of the text was to be ignored: truncated, or of "
        "an engine that can't ignore it"
    ),
    "short": "have fewer than 90 % of the requested tokens; the end of the text was not ignored",
    "uncounted": "report no count of tokens and have fewer parts than one for 8 requested tokens",
    "cached": "have more of their prompt from a cache than the workload shares: not the load that was planned",
    "burst": "arrived at one instant: their TPOT is not measured",
    "blank": "have no visible character",
    "repeated": "repeat one token from the first on",
    "same_text": "have the same text, though their prompts differ: cached, or not made from the prompt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddities:
    """Oddities of the answers of one worker's share of a level.

    Attributes:
        answered: Measured requests that succeeded.
        kinds: How many answers are doubtful, by kind.
        convoyed: How many measured requests were sent in a convoy; None where that isn't known.
        models: How many name another model than requested, by its name; the most frequent names.
        texts: How many have the same text, by its digest; the most frequent texts.
    """

    answered: int = 0
    kinds: Mapping[str, int]
    models: Mapping[str, int]
    texts: Mapping[str, int]
    convoyed: int | None = None

    @property
    def hides_pace(self) -> bool:
        """Whether half of the answers or more arrived at one instant.

        Fewer do so by chance: a client that shares its cores with a tiny engine reads some answers at once.
        """
        return 0 < self.answered <= 2 * self.kinds.get("burst", 0)


FEWEST_IN_FLIGHT: Final = 8
FEWEST_OTHERS: Final = 3  # at one time with a request: fewer are no convoy
BEYOND_CHANCE: Final = 4.0  # standard deviations of a Poisson number above what chance brings


def in_convoy(measured: Sequence[RequestRecord], in_flight: float | None) -> int | None:
    """Count the requests that were sent within one step of the engine of more others than chance brings.

    A step is the median time between two tokens. Where answers come at any time, few are sent within one; clients that
    began together with one length are answered together, and send together again. None where it can't be known: nothing
    streamed, or too few were in flight.
    """
    paces_ms = [pace for record in measured if (pace := tpot_ms(record)) is not None]
    if not paces_ms or in_flight is None or in_flight < FEWEST_IN_FLIGHT:
        return None
    step_s, sent_s = median(paces_ms) / MS_PER_S, sorted(record.sent_s for record in measured)
    span_s = sent_s[-1] - sent_s[0]
    chance = 2 * step_s * len(sent_s) / span_s if span_s else 0.0
    least = max(FEWEST_OTHERS, chance + BEYOND_CHANCE * math.sqrt(chance))
    near = (bisect_right(sent_s, at + step_s) - bisect_left(sent_s, at - step_s) - 1 for at in sent_s)
    return sum(others >= least for others in near)


NOTHING_ODD: Final = Oddities(kinds={}, models={}, texts={})


def oddities_of(succeeded: Sequence[RequestRecord], in_flight: float | None = None) -> Oddities:
    """Count the oddities of answered requests of a closed loop that kept so many in flight; None of an open one."""
    kinds: Counter[str] = Counter(kind for record in succeeded for kind in record.doubts)
    kinds.update("burst" for record in succeeded if is_burst(record))
    return Oddities(
        answered=len(succeeded),
        kinds=dict(kinds),
        models=_by_frequency((record.other_model for record in succeeded if record.other_model), most=MOST_KEPT),
        texts=_by_frequency(
            (f"{record.text_digest}" for record in succeeded if record.text_digest is not None), most=MOST_KEPT
        ),
        convoyed=in_convoy(succeeded, in_flight),
    )


def added_oddities(shares: Sequence[Oddities]) -> Oddities:
    """Add up the oddities of shares."""
    return Oddities(
        answered=sum(share.answered for share in shares),
        kinds=_by_frequency(*(share.kinds for share in shares)),
        models=_by_frequency(*(share.models for share in shares), most=MOST_KEPT),
        texts=_by_frequency(*(share.texts for share in shares), most=MOST_KEPT),
        convoyed=sum(known) if (known := [one.convoyed for one in shares if one.convoyed is not None]) else None,
    )


def doubts_of(oddities: Oddities) -> tuple[AnswerDoubt, ...]:
    """Return the doubts of answers, in the order of weight."""
    doubts: list[AnswerDoubt] = []
    answered = oddities.answered
    for kind, words in _WORDS.items():
        count = max(oddities.texts.values(), default=0) if kind == "same_text" else oddities.kinds.get(kind, 0)
        fewest = max(_REPORTED_FROM.get(kind, USUAL_SHARE) * answered, FEWEST_SAME if kind == "same_text" else 1)
        if count >= fewest:
            doubts.append(
                AnswerDoubt(kind=kind, answers=count, of=answered, because=f"{count} of {answered} answers {words}")
            )
    if oddities.models:
        count, names = sum(oddities.models.values()), ", ".join(oddities.models)
        because = f"{count} of {answered} answers name another model than requested, or several: {names}"
        doubts.append(AnswerDoubt(kind="other_model", answers=count, of=answered, because=because))
    return tuple(doubts)
