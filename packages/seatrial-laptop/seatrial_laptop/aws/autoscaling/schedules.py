"""When a scheduled action is due: `at(...)`, `rate(...)` and `cron(...)` of Application Auto Scaling.

Cron fields are read by MiniStack's EventBridge, through two private names; `tests/laptop` holds the contract.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ministack.services import eventbridge

from seatrial_laptop.aws.api import invalid

UNITS: Final = {"minute": 60, "hour": 3600, "day": 86_400}
"""Seconds of the units of a rate."""
AT: Final = re.compile(r"at\((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})\)")
RATE: Final = re.compile(r"rate\((\d+)\s+(minute|hour|day)s?\)")


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
