"""A plan's predictions in the quantities of a trial, its expected curve and its chance to meet the SLO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.units import digits, usd
from seatrial_load.slo.evaluate import latency_of, statistic_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import CurvePoint, Plan, RatePoint
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.request import Metric, PredictedLevel, Statistic
    from seatrial_load.documents.result import LevelResult, TrialResult

EDGES = "from value / (1 + share) to value × (1 + share)"
WIDEST_BAND: Final = 0.35
"""Share above which a plan asks to be measured first."""
_MOST, _LEAST = 0.99, 0.01  # beyond, the errors of a few hundred rows mean nothing


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity of a level.

    Attributes:
        field: Its field in a point of the predicted curve.
        group: Its name above columns.
        metric: The latency that it is a statistic of; `None` for throughput.
    """

    field: str
    title: str
    group: str
    unit: str = "ms"
    metric: Metric | None = None
    statistic: Statistic = "mean"

    def predicted(self, point: CurvePoint | RatePoint) -> float:
        """Return its prediction."""
        return float(getattr(point, self.field))

    def measured(self, level: LevelResult, copies: int) -> float | None:
        """Return what its prediction for one copy is held against: a share of the throughput, or the same statistic."""
        if self.metric is None:
            return None if level.output_tok_s is None else level.output_tok_s / copies
        return statistic_of(latency_of(level, self.metric), self.statistic)

    def band(self, plan: Plan) -> float:
        """Return the band of its prediction, as a share of it."""
        return plan.band.throughput if self.metric is None else plan.band.latency_of(self.metric)


THROUGHPUT = Quantity("output_tok_s", "Output throughput of one copy", "Output per copy", unit="tok/s")


MEANS = (
    Quantity("ttft_ms", "Time to first token, mean", "TTFT mean", metric="ttft_ms"),
    Quantity("tpot_ms", "Time per output token, mean", "TPOT mean", metric="tpot_ms"),
    Quantity("e2e_latency_ms", "End-to-end latency, mean", "End to end mean", metric="e2e_latency_ms"),
)


P95S = (
    Quantity("ttft_p95_ms", "Time to first token, p95", "TTFT p95", metric="ttft_ms", statistic="p95"),
    Quantity("tpot_p95_ms", "Time per output token, p95", "TPOT p95", metric="tpot_ms", statistic="p95"),
    Quantity(
        "e2e_latency_p95_ms", "End-to-end latency, p95", "End to end p95", metric="e2e_latency_ms", statistic="p95"
    ),
)


QUANTITIES = (THROUGHPUT, *MEANS, *P95S)


def edges(value: float, share: float) -> tuple[float, float]:
    """Return the band around a prediction: value / (1 + share) to value * (1 + share)."""
    return value / (1 + share), value * (1 + share)


def band_text(plan: Plan) -> str:
    """Write a plan's band and its source: `Band: throughput ±4 %, latency ±5 % (measured). ...`."""
    band = plan.band
    kind = band.kind
    shares = f"throughput ±{band.throughput * 100:.0f} %, latency ±{band.latency * 100:.0f} %"
    ttft = band.latency_of("ttft_ms")
    shares += f", TTFT ±{ttft * 100:.0f} %" if ttft > band.latency else ""
    return f"Band: {shares} ({kind}). {band.because}"


def plan_of_trial(result: TrialResult, plan: Plan | None) -> Plan | None:
    """Return the plan if the trial was made from it."""
    return plan if plan is not None and plan.digest == result.request.plan_digest else None


def is_comparable(result: TrialResult, plan: Plan) -> bool:
    """Return whether the plan predicts the thing that was measured: a local engine is not the planned hardware.

    A plan that is calibrated with points of the same local engine predicts that engine. It predicts no copy that users
    load too.
    """
    return result.request.manner == "load" and result.engine_note == plan.band.engine_note


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedLevel:
    """What was predicted of one concurrency.

    Attributes:
        concurrency: Requests in flight per copy.
        output_tok_s: Of all copies together.
        latencies: Milliseconds by metric and statistic.
    """

    concurrency: int
    output_tok_s: float
    latencies: dict[tuple[Metric, Statistic], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The predicted curve.

    Attributes:
        levels: Ascending.
        throughput_share: The band of throughputs, as a share of each; None when the prediction states none.
        latency_share: Likewise of latencies.
        ttft_share: Likewise of TTFT.
    """

    levels: tuple[ExpectedLevel, ...]
    throughput_share: float | None = None
    latency_share: float | None = None
    ttft_share: float | None = None

    def share_of(self, metric: Metric) -> float | None:
        """Return the band of one latency, as a share of it."""
        return self.ttft_share if metric == "ttft_ms" else self.latency_share

    def throughputs(self) -> tuple[tuple[float, float], ...]:
        """Return the throughput by concurrency."""
        return tuple((level.concurrency, level.output_tok_s) for level in self.levels)

    def latencies(self, metric: Metric, statistic: Statistic) -> tuple[tuple[float, float], ...]:
        """Return one latency by concurrency; empty when the prediction doesn't hold it."""
        return tuple(
            (level.concurrency, level.latencies[metric, statistic])
            for level in self.levels
            if (metric, statistic) in level.latencies
        )


def expectation_of(result: TrialResult, plan: Plan | None) -> Expectation | None:
    """Return the prediction of the thing that was measured; `None` without one."""
    copies = result.request.copy_count

    def level(point: CurvePoint | PredictedLevel, latencies: dict[tuple[Metric, Statistic], float]) -> ExpectedLevel:
        tok_s = point.output_tok_s * copies
        return ExpectedLevel(concurrency=point.concurrency, output_tok_s=tok_s, latencies=latencies)

    if plan is not None:
        if not is_comparable(result, plan) or not plan.curve:
            return None
        levels = tuple(
            level(point, {(row.metric, row.statistic): row.predicted(point) for row in P95S if row.metric})
            for point in plan.curve
        )
        band = plan.band
        return Expectation(
            levels=levels,
            throughput_share=band.throughput,
            latency_share=band.latency,
            ttft_share=band.latency_of("ttft_ms"),
        )
    # Without the plan's file the request still holds its prediction: fewer quantities and no band.
    prior = result.request.prior.levels
    if result.engine_note or not prior:
        return None
    return Expectation(
        levels=tuple(
            level(point, {("ttft_ms", "p95"): point.ttft_p95_ms, ("e2e_latency_ms", "mean"): point.e2e_mean_ms})
            for point in prior
        )
    )


def chance_words(chance: float) -> str:
    """Write a chance in whole percent: `91 %`, and at the ends `over 99 %` or `under 1 %`."""
    if chance > _MOST:
        return "over 99 %"
    return "under 1 %" if chance < _LEAST else f"{chance * 100:.0f} %"


def carried_lines(plan: Plan) -> Iterator[str]:
    """Yield how likely the copies carry the offered rate, and the saturation that says it; nothing without a rate."""
    saturation, chance, share = plan.saturation_requests_per_second, plan.carried_chance, plan.band.throughput
    if saturation is None or chance is None:
        return
    planned, (low, high) = plan.rates[-1], (digits(end) for end in edges(saturation, share))
    yield f"{chance_words(chance)} to be carried; the queue diverges beyond {digits(saturation)} requests/s"
    band = f"±{share * 100:.0f} % ({low} to {high}), {digits(saturation * planned.output_tok_s / planned.per_copy)}"
    yield f"saturation of all copies: {digits(saturation)} requests/s {band} output tok/s"


def met_words(plan: Plan) -> str:
    """Write how likely the plan meets the SLO: `91 % to meet it; $0.60/h more for 99 %`; empty without a chance."""
    if plan.chance is None:
        return ""
    safer = plan.safer
    more = "" if safer is None else f"; {usd(safer.more_usd_per_hour)}/h more for {chance_words(safer.chance)}"
    return f"{chance_words(plan.chance)} to meet it{more}"


def measure_first(plan: Plan, loaded: LoadedSpec) -> str:
    """Return why to measure before anybody relies on a plan, how, and what is surer; empty for a narrow band."""
    share = max(plan.band.throughput, plan.band.latency)
    if share <= WIDEST_BAND:
        return ""
    spec = loaded.path.as_posix() if loaded.has_spec else "SPEC"
    command = f"seatrial probe {spec} -e {loaded.environment.name} --level {plan.gate_concurrency_per_copy.value}"
    words = f"first, since the band is ±{share * 100:.0f} %: {command}"
    if plan.safer is None:
        return words
    more, chance = usd(plan.safer.more_usd_per_hour), chance_words(plan.safer.chance)
    return f"{words}\nor take {plan.safer.words}: {chance} to meet the SLO, {more}/h more"


def side_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan and the deployments on both sides of it, each with its price and its chance to meet the SLO."""
    if plan.chance is not None:
        yield f"plan: {plan.deployment.words}: {chance_words(plan.chance)} to meet the SLO"
    if plan.probe is not None:
        saved, chance = usd(plan.probe.saving_usd_per_hour), chance_words(plan.probe.chance)
        yield f"cheaper: {plan.probe.words}: {chance} to meet the SLO, saves {saved}/h"
    if plan.safer is not None:
        more, chance = usd(plan.safer.more_usd_per_hour), chance_words(plan.safer.chance)
        yield f"more expensive: {plan.safer.words}: {chance} to meet the SLO, costs {more}/h more; {_measured_by(plan)}"


def _measured_by(plan: Plan) -> str:
    """Return the option by which `seatrial probe` measures the safer deployment."""
    one = plan.safer
    if one is None:
        return ""
    if (one.instance_type, one.tensor_parallel_degree) == (plan.instance_type.value, plan.tensor_parallel_degree.value):
        return f"--level {one.concurrency_per_copy} measures it"
    return f"--candidate {one.instance_type}:{one.tensor_parallel_degree} measures it"
