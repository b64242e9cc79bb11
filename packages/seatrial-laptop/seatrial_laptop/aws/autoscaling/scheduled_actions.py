"""Scheduled actions: at their time they set the capacities of a scalable target."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from botocore.utils import parse_to_aware_datetime

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.autoscaling.schedules import AtSchedule, parsed_schedule
from seatrial_laptop.aws.json_document import Document, child, number, text, whole
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_laptop.aws.autoscaling.schedules import Schedule


CAPACITIES: Final = ("MinCapacity", "MaxCapacity")
LOOKED: Final = "LookedUntil"
"""The member of a kept action that tells up to which virtual date it was looked at; never told outside."""


def kept_action(old: Document, request: Document, now_s: float) -> Document:
    """Return a scheduled action to keep; a later request replaces the members that it gives.

    Args:
        old: The action of the same name, empty for none.
        request: PutScheduledAction.
        now_s: The virtual date and time, in seconds since the epoch.

    Raises:
        ApiError: ValidationException, the schedule, the capacities or the times are not valid.
    """
    place = f"resource/{text(request, 'ServiceNamespace')}/{text(request, 'ResourceId')}"
    name = text(request, "ScheduledActionName")
    owner = f"arn:aws:autoscaling:{REGION}:{own_account()}:scheduledAction:{uuid.uuid4()}"
    arn = f"{owner}:{place}:scheduledActionName/{name}"
    times = {key: _seconds(request[key]) for key in ("StartTime", "EndTime") if key in request}
    new = {"ScheduledActionARN": arn, "CreationTime": now_s}
    action: Document = {**new, **old, **request, **times, LOOKED: now_s}
    _check(action)
    return action


def view_of(action: Document) -> Document:
    """Return what DescribeScheduledActions says."""
    return {key: value for key, value in action.items() if key != LOOKED}


def is_due(action: Document, now_s: float) -> bool:
    """Return whether an action came due since it was looked at, at a virtual date and time in seconds."""
    due_s = _schedule(action).next_s(number(action, LOOKED))
    first_s = number(action, "StartTime") if "StartTime" in action else float("-inf")
    last_s = number(action, "EndTime") if "EndTime" in action else float("inf")
    if due_s is not None and due_s < first_s:
        due_s = _schedule(action).next_s(first_s - 1)
    return due_s is not None and due_s <= min(now_s, last_s)


def is_over(action: Document, now_s: float) -> bool:
    """Return whether an action never comes due again: Application Auto Scaling then deletes it."""
    next_s = _schedule(action).next_s(now_s)
    return next_s is None or ("EndTime" in action and next_s > number(action, "EndTime"))


def capacities_of(action: Document) -> Mapping[str, int]:
    """Return the capacities that an action sets."""
    wanted = child(action, "ScalableTargetAction")
    return {name: whole(wanted, name) for name in CAPACITIES if name in wanted}


def _check(action: Document) -> None:
    if "Schedule" not in action:
        raise invalid("Schedule is required to create a scheduled action.")
    schedule = _schedule(action)
    if isinstance(schedule, AtSchedule) and schedule.at_s <= number(action, LOOKED):
        raise invalid(f"Schedule {text(action, 'Schedule')} is in the past.")
    wanted = capacities_of(action)
    if not wanted:
        raise invalid("ScalableTargetAction must set MinCapacity, MaxCapacity or both.")
    if any(value < 0 for value in wanted.values()):
        raise invalid("MinCapacity and MaxCapacity must be 0 or more.")
    if len(wanted) == len(CAPACITIES) and wanted["MinCapacity"] > wanted["MaxCapacity"]:
        raise invalid("MaxCapacity must be greater than or equal to MinCapacity.")
    if {"StartTime", "EndTime"} <= action.keys() and number(action, "StartTime") >= number(action, "EndTime"):
        raise invalid("EndTime must be later than StartTime.")


def _schedule(action: Document) -> Schedule:
    start_s = number(action, "StartTime") if "StartTime" in action else number(action, "CreationTime")
    return parsed_schedule(text(action, "Schedule"), text(action, "Timezone"), start_s)


def _seconds(written: object) -> float:
    if isinstance(written, int | float):
        return float(written)
    try:
        return float(parse_to_aware_datetime(str(written)).timestamp())
    except (ValueError, OverflowError) as error:
        raise invalid(f"{written} is no time.") from error
