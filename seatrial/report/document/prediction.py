"""The plan's prediction: with the measurement of a real endpoint, apart from that of a local engine."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

from seatrial.report.charts import Axis, Chart, ChartBand, ChartPoint, Series, is_open
from seatrial.report.document.section import Section
from seatrial.report.planned import EDGES, MEANS, P95S, QUANTITIES, THROUGHPUT, band_text, carried_lines, edges
from seatrial.report.values import (
    NO_TOKEN_COUNT,
    count_cell,
    level_name,
    missing_cell,
    number_cell,
    percent,
    why_missing,
)
from seatrial_base.table import CONCURRENCY, Cell, Column, Table
from seatrial_base.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.documents.calibration import Compared, Outlook
    from seatrial.documents.plan import CurvePoint, Plan, RatePoint
    from seatrial.report.planned import Quantity
    from seatrial_load.documents.result import LevelResult, TrialResult

NO_LATENCY = "no latency per token was measured"
NOT_PREDICTED = "no prediction at this load"
_DIGITS = 3  # of a share of a rate


def prediction_apart(result: TrialResult, plan: Plan) -> Section:
    """Return the prediction for the planned hardware alone: the trial's numbers are of something else."""
    hardware = f"{plan.instance_type.value}, tensor parallel degree {plan.tensor_parallel_degree.value}"
    apart = (
        f"Prediction for one copy of {plan.model_name} on {hardware}, simulated with the trial's load. No comparison: "
        f"{_why_apart(result)}."
    )
    return Section(
        anchor="prediction",
        heading="Prediction for the GPU",
        paragraphs=(apart, band_text(plan), *carried_lines(plan), plan.regime.sentence),
        charts=tuple(_charts(result, plan, QUANTITIES, measured=False)),
        tables=(predicted_table(plan),),
        detail=True,
    )


def _why_apart(result: TrialResult) -> str:
    if result.request.manner == "load":
        return f"the trial measured a local engine ({result.engine_note})"
    return "the load was alongside users' requests" if result.levels else "the trial added no load"


def prediction_beside(result: TrialResult, plan: Plan, outlook: Outlook | None = None) -> Section:
    """Return predicted and measured values with difference and band, and what a calibration would change.

    The curves of the 95th percentiles are in the first figure; here are those of the means.
    """
    reading = f"Values per copy. Difference: (measured - predicted) / predicted. “Outside”: not in the band, {EDGES}."
    sentence = ratio_sentence(result, plan) if outlook is None else outlook_sentence(outlook)
    return Section(
        anchor="prediction",
        heading="Predicted and measured",
        paragraphs=(
            reading,
            *_of_local(result, plan),
            band_text(plan),
            *carried_lines(plan),
            plan.regime.sentence,
            *((sentence,) if sentence else ()),
        ),
        charts=tuple(_charts(result, plan, MEANS, measured=True)),
        tables=(
            *comparison_tables(result, plan),
            *((outlook_table(outlook),) if outlook is not None and outlook.entry is not None else ()),
        ),
        detail=True,
    )


def _of_local(result: TrialResult, plan: Plan) -> tuple[str, ...]:
    if not result.engine_note:
        return ()
    what = f"Both are of the local engine ({result.engine_note}), which calibrated the plan"
    return (f"{what}. They do not apply to {plan.instance_type.value}.",)


def predicted_table(plan: Plan) -> Table:
    """Return the plan's curve."""
    columns = (
        CONCURRENCY,
        *(Column(quantity.group, quantity.unit) for quantity in QUANTITIES),
        Column("late"),
        Column("limited by", kind="text"),
    )
    return Table("Prediction for one copy on the planned hardware", columns, tuple(map(_predicted_row, plan.curve)))


def comparison_tables(result: TrialResult, plan: Plan) -> tuple[Table, Table]:
    """Return predicted, measured and their difference by level: throughput and means, then 95th percentiles."""
    return (
        _comparison_table("Predicted and measured by level", result, plan, (THROUGHPUT, *MEANS)),
        _comparison_table("Predicted and measured by level, 95th percentiles", result, plan, P95S),
    )


def _comparison_table(caption: str, result: TrialResult, plan: Plan, quantities: Sequence[Quantity]) -> Table:
    columns = chain.from_iterable(
        (
            Column("predicted", quantity.unit, quantity.group),
            Column("measured", quantity.unit, quantity.group),
            Column("difference", group=quantity.group),
        )
        for quantity in quantities
    )
    rows = (
        (
            level_name(level),
            *chain.from_iterable(_comparison(level, point, quantity, result, plan) for quantity in quantities),
        )
        for level, point in zip(result.levels, _points(result, plan), strict=True)
    )
    return Table(caption, (CONCURRENCY, *columns), tuple(rows))


def _points(result: TrialResult, plan: Plan) -> Sequence[CurvePoint | RatePoint | None]:
    """Return what was predicted of each level: at its concurrency, or of an open loop at its share of the gate's rate.

    A share, because a candidate of one copy gets one copy's part of the rates.
    """
    if not is_open(result):
        by_concurrency = {point.concurrency: point for point in plan.curve}
        return [by_concurrency.get(level.concurrency) for level in result.levels]
    load, planned = result.request.load, plan.rates[-1].requests_per_second if plan.rates else 0.0
    by_share = {round(point.requests_per_second / planned, _DIGITS): point for point in plan.rates}
    gate = load.gate_rate_per_s or math.inf
    # Rounded, since both shares went through divisions of their own, and equal ones would differ in the last digits.
    shares = [round(rate / gate, _DIGITS) for rate in load.rates_per_s]
    return [by_share.get(shares[number]) if number < len(shares) else None for number in range(len(result.levels))]


def _predicted_row(point: CurvePoint) -> tuple[Cell, ...]:
    values = (number_cell(quantity.predicted(point), NOT_PREDICTED) for quantity in QUANTITIES)
    return count_cell(point.concurrency), *values, Cell(percent(point.late), exact=str(point.late)), Cell(point.limit)


def _comparison(
    level: LevelResult, point: CurvePoint | RatePoint | None, quantity: Quantity, result: TrialResult, plan: Plan
) -> Iterator[Cell]:
    expected = None if point is None else quantity.predicted(point)
    measured = quantity.measured(level, result.request.copy_count)
    otherwise = NO_TOKEN_COUNT if quantity is THROUGHPUT else "not measured"
    yield number_cell(expected, NOT_PREDICTED)
    yield number_cell(measured, why_missing(level, otherwise))
    yield _difference(expected, measured, quantity.band(plan))


def _difference(expected: float | None, measured: float | None, share: float) -> Cell:
    if not expected or measured is None:
        return missing_cell("both values are needed")
    relative = (measured - expected) / expected
    text = f"{relative * 100:+.1f} %".replace("-", "−")  # noqa: RUF001 (the minus sign, as wide as the plus)
    low, high = edges(expected, share)
    return Cell(text) if low <= measured <= high else Cell(f"{text} outside", tone="unknown")


def _charts(result: TrialResult, plan: Plan, quantities: Sequence[Quantity], *, measured: bool) -> Iterator[Chart]:
    for quantity in quantities if plan.curve else ():
        points = tuple((point.concurrency, quantity.predicted(point)) for point in plan.curve)
        unit, share = quantity.unit, quantity.band(plan)
        predicted = tuple(
            ChartPoint(x=x, y=y, hover=f"concurrency {x}\npredicted {digits(y)} {unit}") for x, y in points
        )
        series = (
            *_measured(result, quantity, measured=measured),
            Series(name="predicted", style="predicted", points=predicted),
        )
        places = sorted({point.x for curve in series for point in curve.points})
        yield Chart(
            anchor=f"predicted-{quantity.field.replace('_', '-')}",
            title=quantity.title,
            description=f"Predicted by the plan: {', '.join(f'{digits(y)} {unit} at {x}' for x, y in points)}.",
            x=Axis(label="concurrency, requests in flight per copy", scale="log2", ticks=tuple(places)),
            y=Axis(label=unit),
            series=series,
            bands=(ChartBand(f"prediction ±{share:.0%}", tuple((x, *edges(y, share)) for x, y in points)),),
        )


def _measured(result: TrialResult, quantity: Quantity, *, measured: bool) -> Iterator[Series]:
    if measured:
        copies, unit = result.request.copy_count, quantity.unit
        points = tuple(
            ChartPoint(
                x=level.concurrency,
                y=value,
                hover=f"concurrency {level.concurrency}\nmeasured {digits(value or 0)} {unit}",
                void=level.mark,
            )
            for level in result.levels
            for value in (quantity.measured(level, copies),)
        )
        series = Series(name="measured", points=points)
        if series.known:
            yield series


def outlook_sentence(outlook: Outlook) -> str:
    """Return the calibration by this trial in words."""
    entry = outlook.entry
    if entry is None:
        return f"No calibration from these levels: {outlook.refused}."
    return (
        f"“seatrial calibrate” would scale the fixed time per step by {digits(entry.fixed)} and the time per sequence "
        f"and token by {digits(entry.marginal)}. The mean error of predicted throughput would change from "
        f"{percent(_mean_error(outlook.before))} to {percent(_mean_error(outlook.after))}."
    )


def outlook_table(outlook: Outlook) -> Table:
    """Return measured, predicted without and with the calibration, by level."""
    columns = (
        CONCURRENCY,
        *(Column(name, "tok/s", "Output per copy") for name in ("measured", "before", "after")),
        *(Column(name, "ms", "p90 per token") for name in ("measured", "before", "after")),
    )
    rows = tuple(tuple(_outlook_row(*pair)) for pair in zip(outlook.before, outlook.after, strict=True))
    return Table("Effect of a calibration with this trial", columns, rows)


def ratio_sentence(result: TrialResult, plan: Plan) -> str:
    """Return measured over predicted throughput, and how to calibrate; empty where nothing can be compared."""
    predicted = {point.concurrency: point.output_tok_s for point in plan.curve}
    copies = result.live.copy_count or result.request.copy_count
    ratios = [
        level.output_tok_s / copies / predicted[level.concurrency]
        for level in result.levels
        if level.output_tok_s and (level.valid and level.succeeded == level.requests) and level.concurrency in predicted
    ]
    if not ratios:
        return ""
    # Geometric, so that twice as fast and half as fast cancel out.
    ratio = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    levels = "level" if len(ratios) == 1 else "levels"
    return (
        f"Measured throughput is {digits(ratio)} × the predicted, geometric mean of {len(ratios)} {levels} without a "
        "failure. “seatrial calibrate SPEC --environment "
        f"{result.request.environment} --result report.json” corrects the predictions."
    )


def _outlook_row(before: Compared, after: Compared) -> Iterator[Cell]:
    point = before.measured
    yield count_cell(point.concurrency)
    yield from (number_cell(value, "") for value in (point.output_tok_s, before.output_tok_s, after.output_tok_s))
    yield number_cell(point.ms_per_token_p90, NO_LATENCY)
    yield from (number_cell(value, "") for value in (before.ms_per_token, after.ms_per_token))


def _mean_error(compared: Sequence[Compared]) -> float:
    return math.fsum(row.throughput_error for row in compared) / len(compared)
