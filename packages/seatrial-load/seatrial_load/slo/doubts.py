"""What makes answers doubtful though none failed: which doubts fail a verdict or leave it unproven, and their words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_load.documents.result import LevelResult, loads_words
from seatrial_load.measure.interval import CONFIDENCE, is_share_above

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.documents.request import Objective
    from seatrial_load.documents.result import AnswerDoubt, DoubtKind, TrialResult, Unmeasured


MOST_DOUBTFUL: Final = 0.1
"""The share of doubtful answers up to which a level proves something, where no objective is stricter."""
MOST_SAYING_NOTHING: Final = 0.01
"""The share of answers without a word above which a trial fails; no engine that works gives one of them."""
_SAY_NOTHING: Final[tuple[DoubtKind, ...]] = ("blank", "repeated")
_OF_RANDOM_WEIGHTS: Final[frozenset[DoubtKind]] = frozenset({"same_text"})
"""What a local engine's random weights do by nature."""


def grave_doubts(doubts: Sequence[AnswerDoubt], objectives: Sequence[Objective]) -> list[str]:
    """Return the doubts that leave a level unproven: of more answers than may fail, or than a tenth.

    Answers that ended early, told no count or had their prompt in a cache are another load than was asked. Those that
    arrived at one instant say nothing of an objective on the time per token.
    """
    rates = [objective.bound for objective in objectives if objective.metric == "error_rate"]
    most = min([MOST_DOUBTFUL, *rates])
    is_paced = any(objective.metric == "tpot_ms" for objective in objectives)
    kinds = {"ended_early", "uncounted", "cached", *(("burst",) if is_paced else ())}
    return [f"{doubt.kind}: {doubt.because}" for doubt in doubts if doubt.kind in kinds and doubt.share > most]


def saying_nothing(seen: Sequence[LevelResult | Unmeasured]) -> str | None:
    """Say that more answers than 1 % are proven to be blanks, or one repeated token: at a level, or at all together.

    It is what a broken kernel, format or quantization gives instead of an error. With 95 % confidence, whatever the
    gate's is: where measured values are taken as they are, one such answer of 50 would be 2 %.
    """
    rows = [(one.place, one.succeeded, one.doubts) for one in seen]
    if len(rows) > 1:
        together = tuple(doubt for _, _, doubts in rows for doubt in doubts)
        rows.append(("all levels", sum(answered for _, answered, _ in rows), together))
    for place, answered, doubts in rows:
        counts = {kind: sum(doubt.answers for doubt in doubts if doubt.kind == kind) for kind in _SAY_NOTHING}
        found = sum(counts.values())
        if is_share_above(found, answered, MOST_SAYING_NOTHING, tail=1 - CONFIDENCE):
            kinds = ", ".join(f"{kind} {count}" for kind, count in counts.items() if count)
            bound = f"more than {MOST_SAYING_NOTHING:.0%} with {CONFIDENCE:.0%} confidence".replace("%", " %")
            return f"{found} of {answered} answers at {place} say nothing, {bound}: {kinds}"
    return None


def told_doubts(result: TrialResult) -> Iterator[str]:
    """Say what is doubtful of a trial's answers, each kind once: as it is where it is worst, and where else it is."""
    seen: list[tuple[LevelResult | None, AnswerDoubt]] = [
        (level, doubt) for level in result.levels for doubt in level.doubts
    ]
    seen += [(None, doubt) for one in result.unmeasured if one.occasion == "verification" for doubt in one.doubts]
    for kind in dict.fromkeys(doubt.kind for _, doubt in seen):
        if result.engine_note and kind in _OF_RANDOM_WEIGHTS:
            continue
        found = [(level, doubt) for level, doubt in seen if doubt.kind == kind]
        worst = max((doubt for _, doubt in found), key=lambda doubt: doubt.share)
        places = loads_words([level for level, _ in found if level is not None])
        yield f"{kind}: {worst.because}" + (f" ({places})" if places else "")
