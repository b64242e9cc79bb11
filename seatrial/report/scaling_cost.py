"""What schedules and zero copies cost: a week at the minimum and at the maximum, a wake-up and its idle tail."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seatrial.deployment.starts import start_parts
from seatrial.specs.scaling import limits_over
from seatrial_base.autoscaling import IDLE_MINUTES, LOW_WINDOW_S
from seatrial_base.units import S_PER_HOUR, S_PER_MINUTE, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.scaling import ScalingSpec

BEGIN: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday: nothing here has a clock. Of two weeks the second counts, before which each weekly schedule was due."""
_WEEK_S = 7 * 86_400
_REFUSED = (
    "At zero a request is refused, not queued: HTTP 400, ValidationError, “Inference Component has no capacity to "
    "process this request.” Its client must send it again until a copy serves; the first one starts it."
)


def scaling_cost_lines(plan: Plan, loaded: LoadedSpec, *, whole: bool = False) -> Iterator[str]:
    """Yield what the hours of schedules cost, and a wake-up from zero; nothing without either.

    Between its limits the cost depends on the load: `seatrial simulate` has it. `whole`: tell too what a client does.
    """
    scaling, is_asynchronous = loaded.endpoint.scaling, bool(loaded.endpoint.hosting.asynchronous)
    hourly = None if plan.cost.usd_per_hour is None else plan.cost.usd_per_hour / plan.instance_count.value
    # Hours of a Savings Plan or of a reservation are paid whether they are used or not.
    elsewhere = "" if plan.cost.purchase == "on_demand" else "; if others use the hours that are bought"
    if scaling.schedules:
        yield f"{_week(plan, scaling, hourly)}{elsewhere}"
    if scaling.goes_to_zero and scaling.scale_in_protection:
        yield "never at zero: scale_in_protection keeps the last copy"
    elif scaling.goes_to_zero:
        parts = start_parts(plan, loaded)
        start_min = sum(part.seconds if part.likely_s is None else part.likely_s for part in parts) / S_PER_MINUTE
        idle_min = 0 if plan.hosting_kind else scaling.instance_scale_in.cooldown_minutes or IDLE_MINUTES
        tail_min = LOW_WINDOW_S / S_PER_MINUTE + idle_min
        wake, tail = (f"{_cost(hourly, of / 60)} ({of:.3g} min)" for of in (start_min, tail_min))
        fate = "wait" if is_asynchronous else "are refused"
        yield f"at zero requests {fate}; wake-up {wake}, idle tail {tail}{elsewhere}"
        if whole and not is_asynchronous:
            yield _REFUSED


def _week(plan: Plan, scaling: ScalingSpec, hourly: float | None) -> str:
    """Return what a week costs between the fewest copies and the most that schedules set."""
    # As it is deployed: the instances that the plan starts with stay, unless scaling goes to zero.
    stays = 0 if plan.hosting_kind or scaling.goes_to_zero else plan.instance_count.value
    fewest, highest, kept = defaultdict[int, float](float), defaultdict[int, float](float), plan.copy_count.value
    for (at_s, least, most), (end_s, *_) in pairwise((*limits_over(scaling, BEGIN, 14), (2.0 * _WEEK_S, 0, 0))):
        # Protected copies are those of before, as far as the maximum lets them.
        kept = min(max(kept, least), most) if scaling.scale_in_protection else least
        if (of := (end_s - max(at_s, _WEEK_S)) / S_PER_HOUR) > 0:
            fewest[kept] += of
            highest[most] += of

    def cost(hours: Mapping[int, float]) -> str:
        per_instance = plan.copies_per_instance.value
        return _cost(hourly, sum(max(stays, math.ceil(copies / per_instance)) * of for copies, of in hours.items()))

    words = ", ".join(f"{round(of, 1):g} h at {copies}" for copies, of in sorted(fewest.items()))
    return f"a week from {cost(fewest)} ({words}) to {cost(highest)} (max_copies)"


def _cost(hourly: float | None, instance_hours: float) -> str:
    return "unknown" if hourly is None else usd(hourly * instance_hours)
