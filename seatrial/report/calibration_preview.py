"""What `seatrial calibrate` would change: the predictions before and after, beside what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.planner.calibration import calibrate, chosen, measured_copy, usable
from seatrial.planner.predict.calibration import CalibrationSource, MeasuredPoint, compare
from seatrial.planner.search.capacity import trial_protocol
from seatrial.report.table import CONCURRENCY, Column, Table
from seatrial.report.values import count, digits, number, percent
from seatrial_base.errors import PlanError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.planner.document import Plan
    from seatrial.planner.predict.calibration import Compared, EndpointCalibration
    from seatrial.report.values import Cell
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.model.result import TrialResult


NO_LATENCY = "no latency per token was measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a calibration by the trial's levels would change.

    Attributes:
        entry: The calibration; None when the levels can't give one.
        before: Each level beside the prediction without it.
        after: Each level beside the prediction with it.
        refused: Why there is none; empty when there is one.
    """

    entry: EndpointCalibration | None
    before: tuple[Compared, ...] = ()
    after: tuple[Compared, ...] = ()
    refused: str = ""


def points_of(result: TrialResult) -> tuple[MeasuredPoint, ...]:
    """Return what one copy did at each level that is valid and without a failure.

    Of a trial beside users' requests none: what users sent meanwhile is part of what the copy did.
    """
    if result.request.manner != "load":
        return ()
    copies = result.live.copy_count or result.request.copy_count
    return tuple(
        MeasuredPoint(
            concurrency=level.concurrency,
            output_tok_s=level.output_tok_s / copies,
            ms_per_token_p90=level.ms_per_token.p90 if level.ms_per_token else None,
        )
        for level in result.levels
        if level.valid and level.output_tok_s and level.succeeded == level.requests
    )


def outlook_of(result: TrialResult, plan: Plan, loaded: LoadedSpec) -> Outlook:
    """Fit a calibration to the trial's levels, without writing it."""
    where = "trial result"
    try:
        points = chosen(usable(points_of(result), where), None, where)
        source = CalibrationSource(file=where, digest="", engine_note=result.engine_note)
        entry = calibrate(loaded, plan, points, source)
        copy, protocol = measured_copy(loaded, plan), trial_protocol(loaded.endpoint.trial)
        after = compare(replace(copy, calibration=entry.calibration), points, protocol)
        return Outlook(entry=entry, before=compare(copy, points, protocol), after=after)
    except (PlanError, SpecError) as error:
        return Outlook(entry=None, refused="; ".join(problem.message for problem in error.problems))


def outlook_sentence(outlook: Outlook) -> str:
    """Say what a calibration by this trial would be."""
    entry = outlook.entry
    if entry is None:
        return f"No calibration from these levels: {outlook.refused}."
    return (
        f"“seatrial calibrate” would scale the fixed time per step by {digits(entry.fixed)} and the time per sequence "
        f"and token by {digits(entry.marginal)}. The mean error of predicted throughput would change from "
        f"{percent(_mean(outlook.before))} to {percent(_mean(outlook.after))}."
    )


def outlook_table(outlook: Outlook) -> Table:
    """Return measured, predicted without and with the calibration, by level."""
    columns = (
        CONCURRENCY,
        *(Column(name, "tok/s", "Output per copy") for name in ("measured", "before", "after")),
        *(Column(name, "ms", "p90 per token") for name in ("measured", "before", "after")),
    )
    rows = tuple(tuple(_row(*pair)) for pair in zip(outlook.before, outlook.after, strict=True))
    return Table("Effect of a calibration with this trial", columns, rows)


def ratio_sentence(result: TrialResult, plan: Plan) -> str:
    """Say how measured and predicted throughput relate, and how to calibrate; empty where nothing can be compared."""
    predicted = {point.concurrency: point.output_tok_s for point in plan.curve}
    ratios = [
        point.output_tok_s / predicted[point.concurrency]
        for point in points_of(result)
        if point.concurrency in predicted
    ]
    if not ratios:
        return ""
    ratio = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    levels = "level" if len(ratios) == 1 else "levels"
    return (
        f"Measured throughput is {digits(ratio)} × the predicted, geometric mean of {len(ratios)} {levels} without a "
        "failure. “seatrial calibrate SPEC --environment "
        f"{result.request.environment} --result report.json” corrects the predictions."
    )


def _row(before: Compared, after: Compared) -> Iterator[Cell]:
    point = before.measured
    yield count(point.concurrency)
    yield from (number(value, "") for value in (point.output_tok_s, before.output_tok_s, after.output_tok_s))
    yield number(point.ms_per_token_p90, NO_LATENCY)
    yield from (number(value, "") for value in (before.ms_per_token, after.ms_per_token))


def _mean(compared: Sequence[Compared]) -> float:
    return math.fsum(one.throughput_error for one in compared) / len(compared)
