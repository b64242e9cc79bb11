"""What is odd about answers that succeeded, and what is to be doubted for it; shares add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_load.documents.result import AnswerDoubt
from seatrial_load.metrics.request_metrics import is_burst

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.result import DoubtKind


MOST_KEPT: Final = 8
"""Names of models, and texts, that a share keeps: the most frequent ones."""
FEWEST_SAME: Final = 4
"""Fewer answers of the same text are chance."""
_TOLD_FROM: Final[Mapping[DoubtKind, float]] = {
    "ended_early": 0.0, "uncounted": 0.1, "cached": 0.0, "blank": 0.0, "repeated": 0.0
}  # fmt: skip
"""Share of the answers from which a doubt is told: at once what a good engine never does, the rest from a half on."""
USUAL_SHARE: Final = 0.5
"""An engine that can't ignore the end, a tiny one that shares its cores, and a model that says one thing to all prompts
of words in no order are good; so they are told where they are the rule."""
_WORDS: Final[Mapping[DoubtKind, str]] = {
    "ended_early": (
        "have fewer than 90 % of the tokens asked, though the end of the text was to be ignored: truncated, or of an "
        "engine that can't ignore it"
    ),
    "short": "have fewer than 90 % of the tokens asked; this schema can't ignore the end of the text",
    "uncounted": "tell no count of tokens and have fewer parts than one for 8 tokens asked",
    "cached": "have more of their prompt from a cache than the workload shares: not the load that was planned",
    "burst": "arrived at one instant: their TPOT is not measured",
    "blank": "have no visible character",
    "repeated": "repeat one token from the first on",
    "same_text": "have the same text, though their prompts differ: cached, or not made from the prompt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddities:
    """What is odd about the answers of one worker's share of a level.

    Attributes:
        answered: Measured requests that succeeded.
        kinds: How many answers are doubtful, by kind.
        models: How many name another model than asked, by its name; the most frequent names.
        texts: How many have the same text, by its digest; the most frequent texts.
    """

    answered: int = 0
    kinds: Mapping[str, int]
    models: Mapping[str, int]
    texts: Mapping[str, int]

    @property
    def hides_pace(self) -> bool:
        """Whether half of the answers or more arrived at one instant.

        Fewer do so by chance: a client that shares its cores with a tiny engine reads some answers at once.
        """
        return 0 < self.answered <= 2 * self.kinds.get("burst", 0)


NOTHING_ODD: Final = Oddities(kinds={}, models={}, texts={})


def oddities_of(succeeded: Sequence[RequestRecord]) -> Oddities:
    """Count what is odd about answered requests."""
    kinds: Counter[str] = Counter(kind for record in succeeded for kind in record.doubts)
    kinds.update("burst" for record in succeeded if is_burst(record))
    return Oddities(
        answered=len(succeeded),
        kinds=dict(kinds),
        models=_most(Counter(record.other_model for record in succeeded if record.other_model)),
        texts=_most(Counter(f"{record.text_digest}" for record in succeeded if record.text_digest is not None)),
    )


def added_oddities(shares: Sequence[Oddities]) -> Oddities:
    """Add up what is odd about shares."""
    return Oddities(
        answered=sum(share.answered for share in shares),
        kinds=dict(_sum(share.kinds for share in shares)),
        models=_most(_sum(share.models for share in shares)),
        texts=_most(_sum(share.texts for share in shares)),
    )


def doubts_of(oddities: Oddities) -> tuple[AnswerDoubt, ...]:
    """Return what is to be doubted, in the order of weight."""
    return tuple(_doubts(oddities))


def _doubts(oddities: Oddities) -> Iterator[AnswerDoubt]:
    answered = oddities.answered
    for kind, words in _WORDS.items():
        count = max(oddities.texts.values(), default=0) if kind == "same_text" else oddities.kinds.get(kind, 0)
        fewest = max(_TOLD_FROM.get(kind, USUAL_SHARE) * answered, FEWEST_SAME if kind == "same_text" else 1)
        if count >= fewest:
            yield AnswerDoubt(kind=kind, answers=count, of=answered, because=f"{count} of {answered} answers {words}")
    if oddities.models:
        count, names = sum(oddities.models.values()), ", ".join(oddities.models)
        because = f"{count} of {answered} answers name another model than asked, or several: {names}"
        yield AnswerDoubt(kind="other_model", answers=count, of=answered, because=because)


def _most(counted: Counter[str]) -> dict[str, int]:
    return dict(counted.most_common(MOST_KEPT))


def _sum(shares: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for share in shares:
        total.update(share)
    return total
