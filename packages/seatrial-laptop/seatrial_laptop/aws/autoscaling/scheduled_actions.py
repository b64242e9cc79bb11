"""Scheduled actions: at their time they set the capacities of a scalable target."""

from __future__ import annotations

import math
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from botocore.utils import parse_to_aware_datetime
from ministack.services import eventbridge

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.json_document import Document, child, number, text_member, whole
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Mapping


UNITS: Final = {"minute": 60, "hour": 3600, "day": 86_400}
"""Seconds of the units of a rate."""
AT: Final = re.compile(r"at\((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})\)")
RATE: Final = re.compile(r"rate\((\d+)\s+(minute|hour|day)s?\)")
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
    place = f"resource/{text_member(request, 'ServiceNamespace')}/{text_member(request, 'ResourceId')}"
    name = text_member(request, "ScheduledActionName")
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
        raise invalid(f"Schedule {text_member(action, 'Schedule')} is in the past.")
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
    return parsed_schedule(text_member(action, "Schedule"), text_member(action, "Timezone"), start_s)


def _seconds(written: object) -> float:
    if isinstance(written, int | float):
        return float(written)
    try:
        return float(parse_to_aware_datetime(str(written)).timestamp())
    except (ValueError, OverflowError) as error:
        raise invalid(f"{written} is no time.") from error


@dataclass(frozen=True, slots=True)
class AtSchedule:
    """Once, at a moment."""

    at_s: float

    def next_s(self, after_s: float) -> float | None:
        """Return the next moment after another one, in seconds since the epoch."""
        return self.at_s if self.at_s > after_s else None


@dataclass(frozen=True, slots=True)
class RateSchedule:
    """Again and again after the same time."""

    start_s: float
    every_s: float

    def next_s(self, after_s: float) -> float | None:
        """Return the next moment after another one, in seconds since the epoch."""
        times = max(1, math.floor((after_s - self.start_s) / self.every_s) + 1)
        return self.start_s + times * self.every_s


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """At the times of a cron expression, in a time zone."""

    expression: str
    zone: tzinfo

    def next_s(self, after_s: float) -> float | None:
        """Return the next moment after another one, in seconds since the epoch; None for no more within 4 years."""
        fields = eventbridge._parse_cron_fields(self.expression)  # noqa: SLF001 (the contract)
        found = eventbridge._cron_next_fire(fields, datetime.fromtimestamp(after_s, self.zone))  # noqa: SLF001 (the contract)
        return float(found.timestamp()) if found else None


Schedule = AtSchedule | RateSchedule | CronSchedule


def parsed_schedule(expression: str, timezone: str, start_s: float) -> Schedule:
    """Return what a schedule expression says.

    Args:
        expression: `at(...)`, `rate(...)` or `cron(...)`.
        timezone: A name of the IANA database; empty for UTC. A rate has none.
        start_s: When a rate begins, in seconds since the epoch.

    Raises:
        ApiError: ValidationException, the expression or the time zone isn't valid.
    """
    zone = _zone(timezone)
    if found := AT.fullmatch(expression):
        return AtSchedule(_moment(found[1], expression).replace(tzinfo=zone).timestamp())
    if (found := RATE.fullmatch(expression)) and int(found[1]) > 0:
        return RateSchedule(start_s, int(found[1]) * UNITS[found[2]])
    if eventbridge._parse_cron_fields(expression) is not None:  # noqa: SLF001 (the contract)
        return CronSchedule(expression, zone)
    raise _wrong(expression)


def _moment(written: str, expression: str) -> datetime:
    try:
        return datetime.fromisoformat(written)
    except ValueError as error:
        raise _wrong(expression) from error


def _wrong(expression: str) -> Exception:
    return invalid(f"Schedule expression {expression} is not valid: use at(...), rate(...) or cron(...).")


def _zone(timezone: str) -> tzinfo:
    if not timezone:
        return UTC
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise invalid(f"Timezone {timezone} is not valid.") from error
