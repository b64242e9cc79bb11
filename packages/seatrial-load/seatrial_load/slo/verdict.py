"""The verdict at the gate's concurrency, by levels compared with objectives and by doubtful answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from seatrial_load.documents.result import LevelResult, Verdict, loads_words
from seatrial_load.measure.interval import CONFIDENCE, is_share_above
from seatrial_load.metrics.counts import nothing_answered, outcome_sentence
from seatrial_load.slo.evaluate import checks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.documents.request import Gate, Load, Objective
    from seatrial_load.documents.result import AnswerDoubt, DoubtKind, LevelResult, TrialResult, Unmeasured


# The share of doubtful answers up to which a level proves something, where no objective is stricter.
MOST_DOUBTFUL: Final = 0.1
# The share of answers without a word above which a trial fails; no engine that works gives one of them.
MOST_SAYING_NOTHING: Final = 0.01
_SAY_NOTHING: Final[tuple[DoubtKind, ...]] = ("blank", "repeated")
# What a local engine's random weights do by nature.
_OF_RANDOM_WEIGHTS: Final[frozenset[DoubtKind]] = frozenset({"same_text"})


def grave_doubts(doubts: Sequence[AnswerDoubt], objectives: Sequence[Objective]) -> list[str]:
    """Return the doubts that leave a level unproven: of more answers than may fail, or than a tenth.

    Answers that ended early, had no count or had their prompt in a cache are another load than the requested one. Those
    that arrived at one instant don't measure the time per token.
    """
    rates = [objective.bound for objective in objectives if objective.metric == "error_rate"]
    most = min([MOST_DOUBTFUL, *rates])
    is_paced = any(objective.metric == "tpot_ms" for objective in objectives)
    kinds = {"ended_early", "uncounted", "cached", *(("burst",) if is_paced else ())}
    return [f"{doubt.kind}: {doubt.because}" for doubt in doubts if doubt.kind in kinds and doubt.share > most]


def saying_nothing(seen: Sequence[LevelResult | Unmeasured]) -> str | None:
    """Return that more answers than 1 % are proven to be blanks, or one repeated token: at a level, or at all together.

    A broken kernel, format or quantization gives them instead of an error. With 95 % confidence, whatever the
    gate's is: where measured values are taken as they are, one such answer of 50 would be 2 %.
    """
    rows = [(part.place, part.succeeded, part.doubts) for part in seen]
    if len(rows) > 1:
        together = tuple(doubt for _, _, doubts in rows for doubt in doubts)
        rows.append(("all levels", sum(answered for _, answered, _ in rows), together))
    for place, answered, doubts in rows:
        counts = {kind: sum(doubt.answers for doubt in doubts if doubt.kind == kind) for kind in _SAY_NOTHING}
        empty = sum(counts.values())
        if is_share_above(empty, answered, MOST_SAYING_NOTHING, tail=1 - CONFIDENCE):
            kinds = ", ".join(f"{kind} {count}" for kind, count in counts.items() if count)
            bound = f"more than {MOST_SAYING_NOTHING:.0%} with {CONFIDENCE:.0%} confidence".replace("%", " %")
            return f"{empty} of {answered} answers at {place} say nothing, {bound}: {kinds}"
    return None


def told_doubts(result: TrialResult) -> Iterator[str]:
    """Yield the doubts of a trial's answers, each kind once: where it is worst, and the other levels."""
    seen: list[tuple[LevelResult | None, AnswerDoubt]] = [
        (level, doubt) for level in result.levels for doubt in level.doubts
    ]
    seen += [(None, doubt) for part in result.unmeasured if part.occasion == "verification" for doubt in part.doubts]
    for kind in dict.fromkeys(doubt.kind for _, doubt in seen):
        if result.engine_note and kind in _OF_RANDOM_WEIGHTS:
            continue
        same_kind = [(level, doubt) for level, doubt in seen if doubt.kind == kind]
        worst = max((doubt for _, doubt in same_kind), key=lambda doubt: doubt.share)
        places = loads_words([level for level, _ in same_kind if level is not None])
        yield f"{kind}: {worst.because}" + (f" ({places})" if places else "")


_ROUNDING: Final = 1e-9


def judged(level: LevelResult, objectives: Sequence[Objective]) -> LevelResult:
    """Return the level with its verdict on the SLO filled in, by the measured values as they are."""
    misses = (
        tuple(check.sentence for check in checks_of(level, objectives) if not check.met)
        if level.succeeded
        else (no_success(level),)
    )
    return replace(level, meets_slo=not misses, misses=misses)


def verdict_at(
    gate_concurrency: int,
    levels: Sequence[LevelResult],
    objectives: Sequence[Objective],
    *,
    confidence: float = 0.0,
    unmeasured: Sequence[Unmeasured] = (),
) -> Verdict:
    """Judge at the gate's concurrency per copy; of an open loop, at the highest rate offered.

    The level there decides. When it wasn't measured, a level above that meets the SLO passes (less load isn't
    worse), the level below fails if it misses the SLO (more load isn't better); anything else is inconclusive. A level
    that the client limited proves nothing, neither there nor next to it.

    No success is no doubt: where requests were sent at the gate's load and none was answered, though the client may
    have been the limit or the level cut, and where none of the whole trial was, the verdict is `fail`. So it is where
    answers say nothing (`saying_nothing`), whatever the limit was.

    Args:
        levels: What was measured, ascending.
    """
    verdict = _verdict_at(gate_concurrency, levels, objectives, confidence, unmeasured)
    dead = None if verdict.status == "fail" else no_success_at(gate_concurrency, levels, unmeasured)
    verdict = verdict if dead is None else replace(verdict, status="fail", because=dead)
    if (empty := saying_nothing(levels)) is None:
        return verdict
    return replace(verdict, status="fail", because=f"{empty}; {verdict.because}" if verdict.status == "fail" else empty)


SeenT = TypeVar("SeenT", "LevelResult", "Unmeasured")


def up_to_gate(seen: Sequence[SeenT], load: Load) -> tuple[SeenT, ...]:
    """Leave out the levels of an open loop beyond the rate at which the SLO must hold: they look for the knee."""
    gate = load.gate_rate_per_s
    if gate is None:
        return tuple(seen)
    return tuple(part for part in seen if _rate(part) <= gate * (1 + _ROUNDING))


def _verdict_at(
    gate_concurrency: int,
    levels: Sequence[LevelResult],
    objectives: Sequence[Objective],
    confidence: float,
    unmeasured: Sequence[Unmeasured],
) -> Verdict:
    at, cut = _at_gate(gate_concurrency, levels, unmeasured)
    if at is not None:
        return _verdict_of(at, objectives, "", confidence)
    preface = _preface(gate_concurrency, cut)
    # The valid levels next to the gate, with the verdict that each can prove.
    valid = [level for level in levels if level.valid]
    above = [(level, "pass") for level in valid if level.concurrency > gate_concurrency and not level.is_open]
    below = [(level, "fail") for level in valid if level.concurrency < gate_concurrency or level.is_open]
    for level, proof in (*above[:1], *below[-1:]):
        verdict = _verdict_of(level, objectives, f"{preface}; ", confidence)
        if verdict.status == proof:
            return verdict
    loads = ((f"{level.offered_load:g}/s" if level.is_open else f"{level.concurrency}", level) for level in levels)
    named = (load if level.valid else f"{load} (void: {level.void_because})" for load, level in loads)
    measured = ", ".join(named) or "none"
    return Verdict(status="inconclusive", because=f"{preface}; measured levels: {measured}", checks=())


def no_success_at(gate_concurrency: int, levels: Sequence[LevelResult], unmeasured: Sequence[Unmeasured]) -> str | None:
    """Return that no request succeeded at the gate's load, or in the whole trial; None where that is not so."""
    at, cut = _at_gate(gate_concurrency, levels, unmeasured)
    if at is not None:
        return None if at.succeeded else no_success(at)
    preface = _preface(gate_concurrency, cut)
    if cut is not None and cut.sent and not cut.succeeded:
        return preface
    whole = nothing_answered(levels, unmeasured)
    return None if whole is None else f"{preface}; whole trial: {whole}"


def _at_gate(
    gate_concurrency: int, levels: Sequence[LevelResult], unmeasured: Sequence[Unmeasured]
) -> tuple[LevelResult | None, Unmeasured | None]:
    """Return the level that decides, or its outcome where it was cut: of an open loop, the highest rate."""
    cuts = [seen for seen in unmeasured if seen.occasion == "level"]
    opened = [level for level in levels if level.is_open]
    cut_rates = [seen for seen in cuts if seen.offered_requests_per_s is not None]
    if opened or cut_rates:
        return _at_highest_rate(opened, cut_rates)
    exact = next((level for level in levels if level.concurrency == gate_concurrency), None)
    return exact, next((seen for seen in reversed(cuts) if seen.concurrency == gate_concurrency), None)


def _at_highest_rate(
    opened: Sequence[LevelResult], cut: Sequence[Unmeasured]
) -> tuple[LevelResult | None, Unmeasured | None]:
    measured = {level.offered_requests_per_s for level in opened}
    highest = max(opened, key=_rate, default=None)
    missing = max((seen for seen in cut if seen.offered_requests_per_s not in measured), key=_rate, default=None)
    return (highest, None) if missing is None or (highest and _rate(highest) > _rate(missing)) else (None, missing)


def _rate(seen: LevelResult | Unmeasured) -> float:
    return seen.offered_requests_per_s or 0.0


def _preface(gate_concurrency: int, cut: Unmeasured | None) -> str:
    """Return that the gate's load was not measured, and its outcome where it was cut."""
    if cut is None:
        return f"concurrency {gate_concurrency} per copy was not measured"
    return f"{cut.place} was not measured: {cut.because}; {outcome_sentence(cut)}"


def with_error_rate(verdict: Verdict, levels: Sequence[LevelResult], gate: Gate) -> Verdict:
    """Return the verdict as `fail` where more of a level's requests failed than the gate lets: which, and how many.

    A request that failed has failed, though the client was the limit. A verdict that fails
    already reports that nothing succeeded.
    """
    most, up_to = gate.max_error_rate, gate.max_error_rate_up_to
    if most is None:
        return verdict
    failed = verdict.status == "fail"
    bounded = [level for level in levels if up_to is None or level.is_open or level.concurrency <= up_to]
    failing = [
        f"{level.requests - level.succeeded} of {level.requests} requests failed at {level.place}, more than"
        f" {most * 100:g} %: {_errors(level)}"
        for level in bounded
        if level.error_rate > most and (level.succeeded or not failed)
    ]
    if not failing:
        return verdict
    before = (verdict.because,) if failed else ()
    return replace(verdict, status="fail", because="; ".join((*before, *failing)))


def _errors(level: LevelResult) -> str:
    counts = ", ".join(f"{name} {count}" for name, count in level.errors.items())
    return counts + (f" ({level.first_errors[0]})" if level.first_errors else "")


def inconclusive(verdict: Verdict, because: str) -> Verdict:
    """Return the verdict as one that proves nothing, for a reason; what was measured stays readable."""
    return replace(verdict, status="inconclusive", because=f"{because}; {verdict.because}")


def no_success(level: LevelResult) -> str:
    """Return that nothing succeeded, and the errors."""
    return f"0 of {level.requests} requests succeeded at {level.place}: {_errors(level)}"


def _verdict_of(level: LevelResult, objectives: Sequence[Objective], preface: str, confidence: float) -> Verdict:
    checks = checks_of(level, objectives, confidence) if level.succeeded else ()
    if not level.valid:
        because = f"{preface}the level at {level.place} is void: {level.void_because}"
        unproven = tuple(replace(check, met=None) for check in checks)
        return Verdict(status="inconclusive", because=because, checks=unproven)
    if not level.succeeded:
        return Verdict(status="fail", because=preface + no_success(level), checks=())
    missed = [check.sentence for check in checks if check.met is False]
    unknown = [check.sentence for check in checks if check.met is None]
    unknown += grave_doubts(level.doubts, objectives)
    if missed:
        return Verdict(status="fail", because=preface + "; ".join(missed + unknown), checks=checks)
    if unknown:
        return Verdict(status="inconclusive", because=preface + "; ".join(unknown), checks=checks)
    met = {0: "no objective is set", 1: "objective met"}.get(len(checks), f"all {len(checks)} objectives met")
    because = f"{preface}{met}; {level.succeeded} of {level.requests} requests succeeded at {level.place}"
    return Verdict(status="pass", because=because, checks=checks)
