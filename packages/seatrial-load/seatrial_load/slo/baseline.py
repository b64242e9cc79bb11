"""This trial compared with the last release's: numbers that are worse beyond tolerance and noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial_base.units import fine_percent, tenths
from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.result import Change, Comparison
from seatrial_load.knee.scaling_target import cost_at, without_price

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.request import Gate, TrialRequest
    from seatrial_load.documents.result import LevelResult, TrialResult, Verdict


WITHOUT_INTERVAL = 2.0  # times the tolerance, where no interval separates noise from change (an assumption)


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
    met its SLO, since past that it promised nothing. A number is worse when it is worse by more than the request's
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
        _changed(level, earlier, measure, now.request.gate)
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


def with_regression(verdict: Verdict, comparison: Comparison, gate: Gate) -> Verdict:
    """Return the verdict, failed when the comparison is worse and the gate is set to fail on it."""
    if comparison.status != "worse" or gate.on_regression != "fail":
        return verdict
    return replace(verdict, status="fail", because=f"{verdict.because}; regression: {comparison.because}")


def _difference(now: TrialRequest, before: TrialRequest) -> str | None:
    """Return what makes two trials incomparable; None when nothing does."""
    pairs: dict[str, tuple[object, object]] = {
        "endpoint": (now.endpoint, before.endpoint),
        "environment": (now.environment, before.environment),
        "workload": (now.workload, before.workload),
        "manner": (now.manner, before.manner),
        "arrival": (now.load.arrival, before.load.arrival),
        "protocol": (now.load.protocol, before.load.protocol),
        "number of copies": (now.copy_count, before.copy_count),
    }
    other = [name for name, (after, earlier) in pairs.items() if after != earlier]
    return f"the last release was measured with a different {', '.join(other)}" if other else None


def _common_levels(now: TrialResult, before: TrialResult) -> list[tuple[LevelResult, LevelResult]]:
    """Pair the levels to compare, the gate's first."""
    earlier = {level.offered_load: level for level in before.levels if level.valid and level.succeeded}
    gate = now.request.gate_concurrency
    pairs = [
        (level, earlier[level.offered_load])
        for level in now.levels
        if level.valid and level.succeeded and level.offered_load in earlier
    ]
    wanted = [(level, base) for level, base in pairs if base.meets_slo or level.concurrency == gate]
    return sorted(wanted, key=lambda pair: pair[0].concurrency != gate)


def _pairs_of(
    now: TrialRequest, before: TrialRequest, level: LevelResult, base: LevelResult
) -> Iterator[tuple[_Measure, _Measure]]:
    """Pair the numbers that both levels have, the earlier first; only the error rate has a change from 0."""
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
    """Turn the interval of throughput into that of the cost, which falls as throughput rises."""
    interval = level.output_tok_s_interval
    if interval is None:
        return None
    low, high = (
        None if tok_s is None else cost_at(request, replace(level, output_tok_s=tok_s))
        for tok_s in (interval.high, interval.low)
    )
    return Interval(low=low, high=high)


def _changed(level: LevelResult, before: _Measure, after: _Measure, gate: Gate) -> tuple[Change, bool]:
    """Compare one number; also return whether it changed beyond tolerance and noise, for the worse or the better."""
    difference = after.value - before.value
    apart = _are_apart(before, after, rose=difference > 0)
    tolerance = gate.regression_tolerance * (WITHOUT_INTERVAL if apart is None else 1.0)
    beyond = abs(difference) > tolerance * before.value
    changed = beyond and apart is not False
    worse = changed and (difference < 0) == after.more_is_better
    share = difference / before.value if before.unit != "%" else difference
    by = f" ({share * 100:+.1f} %)" if before.unit != "%" and difference else ""
    width = f"the tolerance of {tolerance * 100:g} %" + (" (doubled: no interval)" if apart is None else "")
    direction = ("worse " if worse else "better ") if changed else ""
    noise = "" if apart is None or not beyond else " and noise" if apart else ", within noise"
    side = f"{direction}{'beyond' if beyond else 'within'} {width}{noise}"
    moved = f"{'rose' if difference > 0 else 'fell'} from {before.written} to {after.written}"
    moved = moved if difference else f"stayed at {after.written}"
    change = Change(
        metric=after.name,
        concurrency=level.concurrency,
        before=before.value,
        after=after.value,
        share=share,
        worse=worse,
        better=changed and not worse,
        sentence=f"{after.name} at {level.place} {moved}{by}: {side}",
    )
    return change, changed


def _are_apart(before: _Measure, after: _Measure, *, rose: bool) -> bool | None:
    """Return whether the intervals don't overlap; None when an end that this takes is unknown."""
    if before.interval is None or after.interval is None:
        return None
    lower, upper = (before.interval.high, after.interval.low) if rose else (after.interval.high, before.interval.low)
    return None if lower is None or upper is None else lower < upper
