"""Which plan belongs to a trial, and what was predicted: by that plan, else by the prior in the trial's request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from seatrial.planner.document import CurvePoint, Plan
    from seatrial_load.model.request import Metric, PredictedLevel
    from seatrial_load.model.result import TrialResult

Statistic: TypeAlias = Literal["mean", "p50", "p95"]


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
    """

    levels: tuple[ExpectedLevel, ...]
    throughput_share: float | None = None
    latency_share: float | None = None

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
    """Return what was predicted of the thing that was measured; None when nothing was.

    Args:
        result: The trial.
        plan: Its own plan; None when it wasn't given.
    """
    copies = result.request.copy_count
    if plan is not None:
        if not is_comparable(result, plan) or not plan.curve:
            return None
        levels = tuple(_of_plan(point, copies) for point in plan.curve)
        band = plan.band
        return Expectation(levels=levels, throughput_share=band.throughput, latency_share=band.latency)
    prior = result.request.prior.levels
    if result.engine_note or not prior:
        return None
    return Expectation(levels=tuple(_of_prior(level, copies) for level in prior))


def _of_plan(point: CurvePoint, copies: int) -> ExpectedLevel:
    return ExpectedLevel(
        concurrency=point.concurrency,
        output_tok_s=point.output_tok_s * copies,
        latencies={
            ("ttft_ms", "p95"): point.ttft_p95_ms,
            ("tpot_ms", "p95"): point.tpot_p95_ms,
            ("e2e_latency_ms", "p95"): point.e2e_latency_p95_ms,
        },
    )


def _of_prior(level: PredictedLevel, copies: int) -> ExpectedLevel:
    return ExpectedLevel(
        concurrency=level.concurrency,
        output_tok_s=level.output_tok_s * copies,
        latencies={("ttft_ms", "p95"): level.ttft_p95_ms, ("e2e_latency_ms", "mean"): level.e2e_mean_ms},
    )
