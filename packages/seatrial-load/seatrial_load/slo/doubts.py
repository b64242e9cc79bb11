"""What makes answers doubtful though none failed: which doubts leave a verdict unproven, and how all are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_load.documents.result import loads_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.documents.request import Objective
    from seatrial_load.documents.result import AnswerDoubt, DoubtKind, LevelResult, TrialResult


MOST_DOUBTFUL: Final = 0.1
"""The share of doubtful answers up to which a level proves something, where no objective is stricter."""
_OF_RANDOM_WEIGHTS: Final[frozenset[DoubtKind]] = frozenset({"blank", "repeated", "same_text"})
"""What a local engine's random weights do by nature."""


def grave_doubts(doubts: Sequence[AnswerDoubt], objectives: Sequence[Objective]) -> list[str]:
    """Return the doubts that leave a level unproven: of more answers than may fail, or than a tenth.

    Answers that ended early or told no count are another load than was asked. Those that arrived at one instant say
    nothing of an objective on the time per token.
    """
    rates = [objective.bound for objective in objectives if objective.metric == "error_rate"]
    most = min([MOST_DOUBTFUL, *rates])
    is_paced = any(objective.metric == "tpot_ms" for objective in objectives)
    kinds = {"ended_early", "uncounted", *(("burst",) if is_paced else ())}
    return [f"{doubt.kind}: {doubt.because}" for doubt in doubts if doubt.kind in kinds and doubt.share > most]


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
