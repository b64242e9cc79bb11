"""What the plan predicted: beside the measurement of a real endpoint, apart from that of a local engine."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Literal

from seatrial.report.cell import Cell, count, digits, missing, number
from seatrial.report.chart.panel import Band, Panel, Series
from seatrial.report.level_values import NO_TOKEN_COUNT, latency_of, statistic_of, why_missing
from seatrial.report.levels import CONCURRENCY
from seatrial.report.section import Section
from seatrial.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.bench.request import Metric
    from seatrial.bench.result import LevelResult, TrialResult
    from seatrial.plan.document import CurvePoint, Plan

Quantity = Literal["output_tok_s", "ttft_ms", "tpot_ms", "e2e_latency_ms"]
LATENCIES: tuple[Metric, ...] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")
QUANTITIES: Mapping[Quantity, tuple[str, str]] = {
    "output_tok_s": ("Output throughput of one copy", "tok/s"),
    "ttft_ms": ("Time to first token, mean", "ms"),
    "tpot_ms": ("Time per output token, mean", "ms"),
    "e2e_latency_ms": ("End-to-end latency, mean", "ms"),
}
NOT_PREDICTED = "the plan predicts nothing at this concurrency"


def prediction_apart(result: TrialResult, plan: Plan) -> Section:
    """Return the prediction for the planned hardware alone: a local engine's numbers are of something else."""
    hardware = f"{plan.instance_type.value}, tensor parallel degree {plan.tensor_parallel_degree.value}"
    apart = (
        f"Predicted by the plan for one copy of {plan.model_name} on {hardware}; means, each ±{plan.uncertainty:.0%}. "
        "Nothing here was measured. It is not compared with the trial above, because that one loaded a local engine "
        f"({result.engine_note}) and not this hardware."
    )
    return Section(
        anchor="prediction",
        heading="What the plan predicts for the GPU",
        paragraphs=(apart,),
        panels=tuple(_panels(result, plan, measured=False)),
        tables=(predicted_table(plan),),
    )


def prediction_beside(result: TrialResult, plan: Plan) -> Section:
    """Return predicted beside measured, with the relative difference and the uncertainty."""
    beside = (
        f"Both for one copy, means. The plan states ±{plan.uncertainty:.0%}; the difference is (measured - predicted) "
        "/ predicted, and is marked where it lies outside that band."
    )
    return Section(
        anchor="prediction",
        heading="Predicted beside measured",
        paragraphs=(beside,),
        panels=tuple(_panels(result, plan, measured=True)),
        tables=(comparison_table(result, plan),),
    )


def predicted_table(plan: Plan) -> Table:
    """Return the plan's curve."""
    columns = (
        CONCURRENCY,
        Column("output", "tok/s"),
        Column("TTFT", "ms"),
        Column("TPOT", "ms"),
        Column("end to end", "ms"),
        Column("limited by", kind="text"),
    )
    return Table("Prediction for one copy on the planned hardware", columns, tuple(map(_predicted_row, plan.curve)))


def comparison_table(result: TrialResult, plan: Plan) -> Table:
    """Return predicted, measured and their difference by level."""
    groups = (("Output per copy", "tok/s"), ("TTFT mean", "ms"), ("TPOT mean", "ms"), ("End to end mean", "ms"))
    columns = chain.from_iterable(
        (Column("predicted", unit, group), Column("measured", unit, group), Column("difference", group=group))
        for group, unit in groups
    )
    predicted = {point.concurrency: point for point in plan.curve}
    rows = tuple(
        (count(level.concurrency), *_comparison(level, predicted.get(level.concurrency), result, plan.uncertainty))
        for level in result.levels
    )
    return Table("Predicted beside measured by level", (CONCURRENCY, *columns), rows)


def measured_per_copy(level: LevelResult, quantity: Quantity, copies: int) -> float | None:
    """Return what a prediction for one copy is held against: a share of the throughput, or a mean latency."""
    if quantity == "output_tok_s":
        return None if level.output_tok_s is None else level.output_tok_s / copies
    return statistic_of(latency_of(level, quantity), "mean")


def predicted(point: CurvePoint, quantity: Quantity) -> float:
    """Return one prediction of a point."""
    by_name: Mapping[Quantity, float] = {
        "output_tok_s": point.output_tok_s,
        "ttft_ms": point.ttft_ms,
        "tpot_ms": point.tpot_ms,
        "e2e_latency_ms": point.e2e_latency_ms,
    }
    return by_name[quantity]


def _predicted_row(point: CurvePoint) -> tuple[Cell, ...]:
    values = (number(predicted(point, quantity), NOT_PREDICTED) for quantity in QUANTITIES)
    return count(point.concurrency), *values, Cell(point.limit)


def _comparison(
    level: LevelResult, point: CurvePoint | None, result: TrialResult, uncertainty: float
) -> Iterator[Cell]:
    for quantity in QUANTITIES:
        expected = None if point is None else predicted(point, quantity)
        measured = measured_per_copy(level, quantity, result.request.copy_count)
        yield number(expected, NOT_PREDICTED)
        otherwise = NO_TOKEN_COUNT if quantity == "output_tok_s" else "no answer gave one"
        yield number(measured, why_missing(level, otherwise))
        yield _difference(expected, measured, uncertainty)


def _difference(expected: float | None, measured: float | None, uncertainty: float) -> Cell:
    if not expected or measured is None:
        return missing("both values are needed")
    relative = (measured - expected) / expected
    text = f"{relative * 100:+.1f} %".replace("-", "−")  # noqa: RUF001 (the minus sign, as wide as the plus)
    return Cell(text) if abs(relative) <= uncertainty else Cell(f"{text} outside", tone="unknown")


def _panels(result: TrialResult, plan: Plan, *, measured: bool) -> Iterator[Panel]:
    for quantity, (title, unit) in QUANTITIES.items():
        points = tuple((point.concurrency, predicted(point, quantity)) for point in plan.curve)
        if points:
            yield Panel(
                anchor=f"predicted-{quantity.replace('_', '-')}",
                title=title,
                unit=unit,
                description=f"Predicted by the plan: {', '.join(f'{digits(y)} {unit} at {x}' for x, y in points)}.",
                series=(*_measured(result, quantity, measured=measured), Series("predicted", "predicted", points)),
                bands=(_band(points, plan.uncertainty),),
            )


def _measured(result: TrialResult, quantity: Quantity, *, measured: bool) -> Iterator[Series]:
    if measured:
        copies = result.request.copy_count
        points = tuple((level.concurrency, measured_per_copy(level, quantity, copies)) for level in result.levels)
        series = Series("measured", "first", points)
        if series.known:
            yield series


def _band(points: tuple[tuple[int, float], ...], uncertainty: float) -> Band:
    edges = tuple((x, y * max(0.0, 1 - uncertainty), y * (1 + uncertainty)) for x, y in points)
    return Band(f"±{uncertainty:.0%}", edges)
