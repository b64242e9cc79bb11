"""The verdict at the gate's concurrency: by objectives, by doubtful answers, and by the last release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from seatrial_base.field_facts import made_of
from seatrial_base.units import fine_percent, tenths
from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.result import Change, Comparison, LevelResult, RandomArrivals, Verdict, loads_words
from seatrial_load.knee import cost_at, without_price
from seatrial_load.measure.interval import CONFIDENCE, is_share_above
from seatrial_load.metrics.counts import nothing_answered, outcome_sentence
from seatrial_load.slo.evaluate import checks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.request import Gate, Load, Objective, TrialRequest
    from seatrial_load.documents.result import AnswerDoubt, DoubtKind, TrialResult, Unmeasured

# The share of doubtful answers up to which a level proves something, where no objective is stricter.
MOST_DOUBTFUL: Final = 0.1
# The share of answers without a word above which a trial fails; no engine that works gives one of them.
MOST_SAYING_NOTHING: Final = 0.01
_SAY_NOTHING: Final[tuple[DoubtKind, ...]] = ("blank", "repeated")
# What a local engine's random weights do by nature.
_OF_RANDOM_WEIGHTS: Final[frozenset[DoubtKind]] = frozenset({"same_text"})
_ROUNDING: Final = 1e-9
NEAR_RATE: Final = 0.1  # of the gate's throughput, that a rate may be off at which TTFT tells of it
SeenT = TypeVar("SeenT", "LevelResult", "Unmeasured")
WITHOUT_INTERVAL = 2.0  # times the tolerance, where no interval separates noise from change (an assumption)


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


def doubt_texts(result: TrialResult) -> Iterator[str]:
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
    """
    verdict = _verdict_at(gate_concurrency, levels, objectives, confidence, unmeasured)
    dead = None if verdict.status == "fail" else no_success_at(gate_concurrency, levels, unmeasured)
    verdict = verdict if dead is None else replace(verdict, status="fail", because=dead)
    if (empty := saying_nothing(levels)) is None:
        return verdict
    return replace(verdict, status="fail", because=f"{empty}; {verdict.because}" if verdict.status == "fail" else empty)


def up_to_gate(seen: Sequence[SeenT], load: Load) -> tuple[SeenT, ...]:
    """Leave out the levels of an open loop beyond the rate at which the SLO must hold: they look for the knee."""
    gate = load.gate_rate_per_s
    if gate is None:
        return tuple(seen)
    return tuple(part for part in seen if _rate(part) <= gate * (1 + _ROUNDING))


def gate_level(request: TrialRequest, levels: Sequence[LevelResult]) -> LevelResult | None:
    """Return the level of the gate; None where it was not measured."""
    offered = [level for level in up_to_gate(levels, request.load) if level.is_open]
    at_gate = (level for level in levels if level.concurrency == request.gate_concurrency)
    return offered[-1] if offered else next(at_gate, None)


def gate_rate_per_s(request: TrialRequest, levels: Sequence[LevelResult]) -> float | None:
    """Return what the gate answered per second, where an objective is on TTFT; None else, or where it is void."""
    level = gate_level(request, levels)
    is_bound = any(objective.metric == "ttft_ms" for objective in request.objectives)
    return level.requests_per_s or None if level is not None and level.valid and is_bound else None


def measured_at_random(request: TrialRequest, levels: Sequence[LevelResult]) -> RandomArrivals | None:
    """Return TTFT at the level of Poisson arrivals nearest to the gate's throughput; None without a near one."""
    rate = gate_rate_per_s(request, levels)
    if rate is None:
        return None
    known = (
        made_of(RandomArrivals, level, rate_per_s=at, apart=abs(at / rate - 1), source="measured")
        for level in levels
        if level.arrival == "poisson" and level.valid and level.ttft_ms and (at := level.offered_load)
    )
    return min((each for each in known if each.apart <= NEAR_RATE), key=attrgetter("apart"), default=None)


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
    named = (load if level.valid else f"{load} ({level.mark}: {level.invalid_because})" for load, level in loads)
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
    if cut is None:
        return f"concurrency {gate_concurrency} per copy was not measured"
    how = "cut" if cut.succeeded else "not measured"
    return f"{cut.place} was {how}: {cut.because}; {outcome_sentence(cut)}"


def with_cut_level(verdict: Verdict, request: TrialRequest, levels: Sequence[LevelResult]) -> Verdict:
    """Return an inconclusive verdict with what was measured at the gate before that level was cut; it proves nothing.

    Args:
        levels: All levels; of an open loop, the one at the highest rate up to the gate's decides.
    """
    reached = [level for level in up_to_gate(levels, request.load) if level.succeeded]
    if reached and reached[-1].is_open:
        reached = reached[-1:]
    else:
        reached = [level for level in reached if level.concurrency == request.gate_concurrency]
    if verdict.status != "inconclusive" or verdict.checks or not reached or not reached[0].cut:
        return verdict
    checks = checks_of(reached[0], request.objectives, request.gate.confidence)
    return replace(verdict, checks=tuple(replace(check, met=None) for check in checks))


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
        because = f"{preface}the level at {level.place} is {level.mark}: {level.invalid_because}"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """One number of a level.

    Attributes:
        interval: The range of the true value; None when unknown.
    """

    name: str
    value: float
    interval: Interval | None
    unit: str
    more_is_better: bool = False

    @property
    def written(self) -> str:
        """The number with its unit."""
        if self.unit == "%":
            return fine_percent(self.value)
        return f"${self.value:.2f}" if self.unit == "$" else f"{tenths(self.value)} {self.unit}"


def compare_with_baseline(now: TrialResult, before: TrialResult | None, *, baseline_uri: str = "") -> Comparison:
    """Compare a trial with the last release's.

    Both must be of one endpoint and environment, of the same workload, kind of load and number of copies. They are
    compared at the levels that both measured without the client limiting them: at the gate, and where the last release
    met its SLO, since past that it promised nothing. One that was cut is compared, and changes only where the intervals
    are apart. A number is worse when it is worse by more than the request's
    `regression_tolerance` and its interval doesn't overlap with the one before; where an interval is missing, when it
    is worse by more than twice the tolerance.
    """
    if before is None:
        return Comparison(status="incomparable", because="no result of an earlier release")
    known = Comparison(
        status="incomparable",
        because="",
        baseline_uri=baseline_uri,
        baseline_plan_digest=before.request.plan_digest,
        baseline_started_at=before.started_at,
    )
    if (difference := _difference(now.request, before.request)) is not None:
        return replace(known, because=difference)
    pairs = _common_levels(now, before)
    if not pairs:
        return replace(known, because="no level is valid in both results")
    priced = now.request, before.request
    if now.engine_note or before.engine_note:
        priced = without_price(now.request), without_price(before.request)  # a local engine's speed is no GPU's
    compared = [
        _changed(level, earlier, measure, now.request.gate, is_cut=bool(level.cut or base.cut))
        for level, base in pairs
        for earlier, measure in _pairs_of(*priced, level, base)
    ]
    changes = tuple(change for change, _ in compared)
    worse = [change.sentence for change in changes if change.worse]
    better = [change.sentence for change, changed in compared if changed and not change.worse]
    if worse:
        return replace(known, status="worse", because="; ".join(worse), changes=changes)
    if better:
        return replace(known, status="better", because="; ".join(better), changes=changes)
    because = f"{len(changes)} numbers unchanged, within tolerance or noise"
    return replace(known, status="same", because=because, changes=changes)


def rederived_verdict(result: TrialResult) -> Verdict:
    """Return what a result's own levels and checks allow at best; a trial may have had more reasons against a pass."""
    request, levels = result.request, up_to_gate(result.levels, result.request.load)
    gate = request.gate_concurrency
    if request.manner != "load":  # beside users, the highest level that was measured decides
        gate = max((level.concurrency for level in levels), default=gate)
    unmeasured = up_to_gate(result.unmeasured, request.load)
    verdict = verdict_at(gate, levels, request.objectives, confidence=request.gate.confidence, unmeasured=unmeasured)
    verdict = with_error_rate(verdict, levels, request.gate)
    if result.comparison is not None:
        verdict = with_regression(verdict, result.comparison, request.gate)
    if request.quality is not None:
        scored = result.quality is not None and all(check.met for check in result.quality.checks)
        verdict = verdict if scored else inconclusive(verdict, "the quality is not proven")
    if request.overload == "require" and (result.overload is None or result.overload.status != "proved"):
        verdict = inconclusive(verdict, "the overload is not proven")
    return verdict


def with_regression(verdict: Verdict, comparison: Comparison, gate: Gate) -> Verdict:
    """Return the verdict, failed when the comparison is worse and the gate is set to fail on it."""
    if comparison.status != "worse" or gate.on_regression != "fail":
        return verdict
    return replace(verdict, status="fail", because=f"{verdict.because}; regression: {comparison.because}")


def _difference(now: TrialRequest, before: TrialRequest) -> str | None:
    pairs: dict[str, tuple[object, object]] = {
        "endpoint": (now.endpoint, before.endpoint),
        "environment": (now.environment, before.environment),
        "workload": (now.workload, before.workload),
        "manner": (now.manner, before.manner),
        "arrival": (now.load.arrival, before.load.arrival),
        "protocol": (now.load.protocol, before.load.protocol),
        "start of the levels": (now.load.start, before.load.start),
        "number of copies": (now.copy_count, before.copy_count),
    }
    other = [name for name, (after, earlier) in pairs.items() if after != earlier]
    return f"the last release was measured with a different {', '.join(other)}" if other else None


def _common_levels(now: TrialResult, before: TrialResult) -> list[tuple[LevelResult, LevelResult]]:
    """Pair the levels to compare, the gate's first."""
    earlier = {level.offered_load: level for level in before.levels if level.void is None and level.succeeded}
    gate = now.request.gate_concurrency
    pairs = [
        (level, earlier[level.offered_load])
        for level in now.levels
        if level.void is None and level.succeeded and level.offered_load in earlier
    ]
    wanted = [(level, base) for level, base in pairs if base.meets_slo or level.concurrency == gate]
    return sorted(wanted, key=lambda pair: pair[0].concurrency != gate)


def _pairs_of(
    now: TrialRequest, before: TrialRequest, level: LevelResult, base: LevelResult
) -> Iterator[tuple[_Measure, _Measure]]:
    # The earlier number first; only the error rate has a change from 0.
    gate = now.gate_concurrency
    earlier = {measure.name: measure for measure in _measures_of(before, base, gate)}
    for measure in _measures_of(now, level, gate):
        other = earlier.get(measure.name)
        if other is not None and (other.value > 0 or other.unit == "%"):
            yield other, measure


def _measures_of(request: TrialRequest, level: LevelResult, gate: int) -> Iterator[_Measure]:
    if level.output_tok_s is not None:
        interval = level.output_tok_s_interval
        yield _Measure(
            name="output_tok_s", value=level.output_tok_s, interval=interval, unit="tok/s", more_is_better=True
        )
    yield from _p95("ttft_ms p95", level.ttft_ms)
    yield from _p95("tpot_ms p95", level.tpot_ms)
    yield from _p95("e2e_latency_ms p95", level.e2e_latency_ms)
    yield _Measure(name="error_rate", value=level.error_rate, interval=level.error_rate_interval, unit="%")
    cost = cost_at(request, level)
    if cost is not None and level.concurrency == gate:
        interval = _cost_interval(request, level)
        yield _Measure(name="usd_per_million_output_tokens", value=cost, interval=interval, unit="$")


def _p95(name: str, values: Distribution | None) -> Iterator[_Measure]:
    if values is not None:
        yield _Measure(name=name, value=values.p95, interval=values.intervals.get("p95"), unit="ms")


def _cost_interval(request: TrialRequest, level: LevelResult) -> Interval | None:
    # The cost falls as throughput rises, so the ends change places.
    interval = level.output_tok_s_interval
    if interval is None:
        return None
    low, high = (
        None if tok_s is None else cost_at(request, replace(level, output_tok_s=tok_s))
        for tok_s in (interval.high, interval.low)
    )
    return Interval(low=low, high=high)


def _changed(level: LevelResult, before: _Measure, after: _Measure, gate: Gate, *, is_cut: bool) -> tuple[Change, bool]:
    """Compare one number; also return whether it changed beyond tolerance and noise, for the worse or the better."""
    difference = after.value - before.value
    apart = _are_apart(before, after, rose=difference > 0)
    tolerance = gate.regression_tolerance * (WITHOUT_INTERVAL if apart is None else 1.0)
    beyond = abs(difference) > tolerance * before.value
    # An interval of a cut level that has no end is no interval of noise: nothing is known beyond.
    changed = beyond and (apart is True if is_cut else apart is not False)
    worse = changed and (difference < 0) == after.more_is_better
    share = difference / before.value if before.unit != "%" else difference
    by = f" ({share * 100:+.1f} %)" if before.unit != "%" and difference else ""
    width = f"the tolerance of {tolerance * 100:g} %" + (" (doubled: no interval)" if apart is None else "")
    direction = ("worse " if worse else "better ") if changed else ""
    noise = "" if apart is None or not beyond else " and noise" if apart else ", within noise"
    side = f"{direction}{'beyond' if beyond else 'within'} {width}{noise}"
    change = Change(
        metric=after.name,
        concurrency=level.concurrency,
        before=before.value,
        after=after.value,
        share=share,
        worse=worse,
        better=changed and not worse,
        sentence=f"{after.name} at {level.place}{' (cut)' if is_cut else ''} {_moved(before, after)}{by}: {side}",
    )
    return change, changed


def _moved(before: _Measure, after: _Measure) -> str:
    if after.value == before.value:
        return f"stayed at {after.written}"
    return f"{'rose' if after.value > before.value else 'fell'} from {before.written} to {after.written}"


def _are_apart(before: _Measure, after: _Measure, *, rose: bool) -> bool | None:
    if before.interval is None or after.interval is None:
        return None
    lower, upper = (before.interval.high, after.interval.low) if rose else (after.interval.high, before.interval.low)
    return None if lower is None or upper is None else lower < upper
