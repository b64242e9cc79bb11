"""What `seatrial calibrate` would change: the predictions before and after, beside what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.documents.calibration import CalibrationSource, MeasuredPoint, Outlook
from seatrial.planner.calibration import calibrate_endpoint, chosen, measured_copy, usable
from seatrial.planner.predict.calibration import compare_points
from seatrial.planner.search.capacity import trial_protocol
from seatrial_base.errors import PlanError, SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.documents.calibration import EndpointCalibration
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import TrialResult


def points_of_trial(result: TrialResult) -> tuple[MeasuredPoint, ...]:
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
        points = chosen(usable(points_of_trial(result), where), None, where)
        source = CalibrationSource(file=where, digest="", engine_note=result.engine_note)
        entry = calibrate_endpoint(loaded, plan, points, source)
        return outlook_of_entry(entry, points, plan, loaded)
    except (PlanError, SpecError) as error:
        return Outlook(entry=None, refused="; ".join(problem.message for problem in error.problems))


def outlook_of_entry(
    entry: EndpointCalibration, points: Sequence[MeasuredPoint], plan: Plan, loaded: LoadedSpec
) -> Outlook:
    """Return what a fitted calibration changes at the measured points."""
    copy, protocol = measured_copy(loaded, plan), trial_protocol(loaded.endpoint.trial)
    after = compare_points(replace(copy, calibration=entry.calibration), points, protocol)
    return Outlook(entry=entry, before=compare_points(copy, points, protocol), after=after)
