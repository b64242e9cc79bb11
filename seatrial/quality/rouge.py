"""ROUGE-L by the library `rouge-score`, which is an extra: `seatrial[quality]`."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol, cast

from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


RULE: Final = "SEA528"
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""A word, or one character of a script that puts no spaces between words; the library's own knows only a-z and 0-9."""


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
    """Tell whether the library is installed."""
    return find_spec("rouge_score") is not None


def check_rouge(field: str) -> None:
    """Refuse to go on without the library.

    Args:
        field: What asks for ROUGE-L.

    Raises:
        SpecError: SEA528.
    """
    if not has_rouge():
        hint = "install it: pip install 'seatrial[quality]'"
        raise SpecError.of(RULE, "ROUGE-L needs the package rouge-score", where="this Python", field=field, hint=hint)


def rouge_l(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the F-measure of the longest common subsequence of words for each reference and answer, 0 to 1.

    Source: C.-Y. Lin, ROUGE: A Package for Automatic Evaluation of Summaries, 2004; `rouge-score` without stemming.

    Args:
        pairs: The reference and the answer.

    Raises:
        SpecError: SEA528, the library is not installed.
    """
    check_rouge("ROUGE-L")
    from rouge_score import rouge_scorer  # noqa: PLC0415 (an extra, which takes a second to import)

    scorer = cast("_Scorer", rouge_scorer.RougeScorer(["rougeL"], tokenizer=_Words()))
    return [float(scorer.score(reference, answer)["rougeL"].fmeasure) for reference, answer in pairs]
