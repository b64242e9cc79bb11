"""Limits of an endpoint's copies, the schedules that change them, and how instances are released."""

from __future__ import annotations

import calendar
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, StringConstraints

from seatrial.specs.relations import UnknownValueError, at_most, excludes, is_set, is_value
from seatrial.specs.shapes import MOST_COPIES
from seatrial_base import bounds
from seatrial_base.frozen_model import FrozenModel, model_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.specs.relations import Fields, Rule
    from seatrial.specs.yaml_source import Document, FieldPath, Yaml
    from seatrial_base.findings import Finding


MOST_SCHEDULES = 200  # Application Auto Scaling quotas, scheduled actions of a scalable target
SHORTEST_COOLDOWN_MINUTES, LONGEST_COOLDOWN_MINUTES, MOST_STEPS = 5, 1440, 100  # API reference, ScaleInPolicy
ScheduleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=128)]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=1600)]
Timezone = Annotated[str, StringConstraints(min_length=1, max_length=1600)]
Cooldown = Annotated[int, Field(gt=0, le=bounds.MOST_SECONDS)]
Copies = Annotated[int, Field(ge=1, le=MOST_COPIES)]
CopiesOrNone = Annotated[int, Field(ge=0, le=MOST_COPIES)]
Fraction = Annotated[float, Field(gt=0, le=1)]
_AT = re.compile(r"at\(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\)")

# The service takes batches of 5 to 50 % of a component's copies (RollingUpdatePolicy.MaximumBatchSize).
_COPIES_PER_BATCH_AT_MOST = 20
_COPIES_PER_BATCH_AT_LEAST = 2
_CRON, _RATE = re.compile(r"cron\((.*)\)"), re.compile(r"rate\(([0-9]{1,9}) (minutes?|hours?|days?)\)")
_STEP, _ANY = re.compile(r"[1-9][0-9]{0,3}"), "?"
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEK = timedelta(days=7)
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class ScalingScheduleSpec(FrozenModel):
    """Other limits of scaling from some time on, until another schedule sets them again."""

    name: ScheduleName = Field(description="Name of the scheduled action.")
    schedule: Expression = Field(
        description="When: `cron(0 20 * * ? *)`, `rate(1 day)` or `at(2027-01-01T00:00:00)`, in `timezone`."
    )
    timezone: Timezone | None = Field(None, description="IANA time zone, such as `Europe/Berlin`. Default: UTC.")
    min_copies: CopiesOrNone | None = Field(None, description="Fewest copies from then on. Default: as before.")
    max_copies: Copies | None = Field(None, description="Most copies from then on. Default: as before.")


class InstanceScaleInSpec(FrozenModel):
    """How the instances go that no copy needs any more."""

    strategy: Literal["idle_release", "consolidation"] | None = Field(
        None, description="Release idle instances, or move copies together first. Default: the service's."
    )
    cooldown_minutes: Annotated[int, Field(ge=SHORTEST_COOLDOWN_MINUTES, le=LONGEST_COOLDOWN_MINUTES)] | None = Field(
        None, description="Time between two removals, in minutes. Default: the service's, 20."
    )
    max_step: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = Field(
        None, description="Most instances that are removed at a time. Default: the service's."
    )


class ScalingSpec(FrozenModel):
    """How many copies, and how fast their number changes."""

    min_copies: CopiesOrNone = Field(
        1, description="Fewest copies; 0 scales to zero: requests are refused then, and the first starts a copy."
    )
    max_copies: Copies = Field(1, description="Most copies.")
    target_utilization: Fraction = Field(0.8, description="Autoscaling target, as a share of the knee.")
    scale_out_cooldown_s: Cooldown = model_field(60, "Scale-out cooldown, in seconds.", planned=False)
    scale_in_cooldown_s: Cooldown = model_field(300, "Scale-in cooldown, in seconds.", planned=False)
    schedules: Annotated[tuple[ScalingScheduleSpec, ...], Field(max_length=MOST_SCHEDULES)] = model_field(
        (), "Other limits from some time on.", planned=False
    )
    scale_in_protection: bool = model_field(
        default=False, description="Scaling adds copies and never removes any; only `schedules` do.", planned=False
    )
    instance_scale_in: InstanceScaleInSpec = model_field(InstanceScaleInSpec(), planned=False)

    @property
    def fewest_copies(self) -> int:
        """Fewest copies at any time: those of the schedules count, too."""
        planned = (each.min_copies for each in self.schedules if each.min_copies is not None)
        return min((self.min_copies, *planned))

    @property
    def goes_to_zero(self) -> bool:
        """Whether there may be no copy at some time."""
        return self.fewest_copies == 0

    @property
    def is_fixed(self) -> bool:
        """Whether nothing changes the number of copies."""
        return self.min_copies == self.max_copies and not self.schedules


@cache
def _timezones() -> frozenset[str]:
    return frozenset(available_timezones())  # it opens a thousand files


def _schedules(fields: Fields) -> Iterator[Finding]:
    """Yield schedules that AWS would refuse, that change nothing, or whose limits contradict those of scaling."""
    limits: dict[str, int] = {}
    for bound in ("min_copies", "max_copies"):
        with suppress(UnknownValueError):
            limits[bound] = fields.value(f"scaling.{bound}")
    low, high = limits.get("min_copies"), limits.get("max_copies")
    schedules = fields.written("scaling.schedules")
    names: set[Yaml] = set()
    for index, schedule in enumerate(schedules if isinstance(schedules, list) else ()):
        if isinstance(schedule, dict):
            yield from _schedule(fields.document, index, schedule, low, high)
            name = schedule.get("name")
            if isinstance(name, str) and name in names:
                path = ("scaling", "schedules", index, "name")
                message = f"two schedules are called {name}"
                yield fields.document.problem(path, "SEA135", message, "give each its own name")
            names |= {name} if isinstance(name, str) else set()


def _schedule(
    document: Document, index: int, each: dict[str, Yaml], low: int | None, high: int | None
) -> Iterator[Finding]:
    path = ("scaling", "schedules", index)
    expression, timezone = each.get("schedule"), each.get("timezone")
    if isinstance(expression, str) and (wrong := expression_error(expression)) is not None:
        hint = "as in cron(0 20 * * ? *), rate(1 day) or at(2027-01-01T00:00:00)"
        yield document.problem((*path, "schedule"), "SEA123", f"{expression} {wrong}", hint)
    known = _timezones()
    # Where the system has no time zones and Python no tzdata, none is known: then nothing is refused.
    if isinstance(timezone, str) and known and timezone not in known:
        hint = "a name of the IANA time zone database, as Europe/Berlin"
        yield document.problem((*path, "timezone"), "SEA135", f"the time zone {timezone} is unknown", hint)
    yield from _schedule_limits(document, path, each, low, high)


def _schedule_limits(
    document: Document, path: FieldPath, each: dict[str, Yaml], low: int | None, high: int | None
) -> Iterator[Finding]:
    fewest, most = each.get("min_copies"), each.get("max_copies")
    if fewest is None and most is None:
        yield document.problem(path, "SEA135", "the schedule changes nothing", "give min_copies or max_copies")
    if isinstance(most, int) and high is not None and most > high:
        message = f"max_copies {most} exceeds scaling.max_copies {high}, which the instances have room for"
        yield document.problem((*path, "max_copies"), "SEA135", message, f"raise scaling.max_copies to {most}")
    if fewest is None and most is None:
        return
    fewest, most = low if fewest is None else fewest, high if most is None else most
    if isinstance(fewest, int) and isinstance(most, int) and fewest > most:
        message = f"min_copies {fewest} exceeds max_copies {most} from then on"
        yield document.problem(path, "SEA135", message, "give the schedule both limits")


def expression_error(expression: str) -> str | None:
    """Return what is wrong with an expression; `None` when Application Auto Scaling would take it."""
    if expression.startswith("at("):
        return None if _is_time(expression) else "is not at(YYYY-MM-DDThh:mm:ss)"
    wrong = schedule_error(expression)
    return "is neither cron(…), rate(…) nor at(…)" if wrong == "is neither cron(…) nor rate(…)" else wrong


def _is_time(expression: str) -> bool:
    """Return whether `at(…)` has a time that the calendar has."""
    try:
        return _AT.fullmatch(expression) is not None and datetime.fromisoformat(expression[3:-1]) is not None
    except ValueError:
        return False


def _zero_of_a_variant(fields: Fields) -> Iterator[Finding]:
    """Yield each limit of 0 of a model in a production variant: one that answers in real time can't go to zero."""
    if fields.value("hosting.kind") != "single_model" or fields.written("hosting.asynchronous") is not None:
        return
    schedules = fields.written("scaling.schedules")
    limits: list[tuple[FieldPath, Yaml]] = [(("scaling", "min_copies"), fields.written("scaling.min_copies"))]
    limits += [
        (("scaling", "schedules", index, "min_copies"), schedule.get("min_copies"))
        for index, schedule in enumerate(schedules if isinstance(schedules, list) else ())
        if isinstance(schedule, dict)
    ]
    for path, fewest in limits:
        if fewest == 0:
            message = "a model in a production variant keeps at least one instance"
            hint = "set min_copies: 1, or hosting.asynchronous, or hosting.kind: inference_component"
            yield fields.document.problem(path, "SEA134", message, hint)


def copies_replaced_at_once(min_copies: int, max_copies: int) -> int | None:
    """Return the smallest batch of a rolling update that is valid however many copies run.

    `None` when there is none, as always with a single copy: the service then starts as many new copies as old ones run.
    """
    # The least batch that is valid at the most copies has to be valid at the fewest too.
    batch = math.ceil(max_copies / _COPIES_PER_BATCH_AT_MOST)
    return batch if batch * _COPIES_PER_BATCH_AT_LEAST <= min_copies else None


RULES: tuple[Rule, ...] = (
    at_most("SEA108", "scaling.min_copies", "scaling.max_copies", hint="set max_copies to at least {0}"),
    _schedules,
    _zero_of_a_variant,
    excludes(
        "SEA134",
        is_value("hosting.kind", "single_model"),
        is_set("scaling.instance_scale_in"),
        message="instance_scale_in belongs to the instances of inference components",
        hint="remove it, or set hosting.kind: inference_component",
    ),
)
"""What contradicts itself in the limits of an endpoint."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a cron expression: its name, its lowest and highest value, the names of values, further forms.

    One of the two fields of days is `?`, and no other field.
    """

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    special: str = r"(?!)"  # matches nothing
    is_day: bool = False

    def number(self, word: str) -> int | None:
        """Return the value of a number or name; `None` when it is neither or out of range."""
        if word in self.names:
            return self.low + self.names.index(word)
        value = int(word) if word.isascii() and word.isdigit() and len(word) <= 4 else None  # noqa: PLR2004 (a year)
        return value if value is not None and self.low <= value <= self.high else None


_FIELDS = (
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("day of month", 1, 31, special=r"L|LW|([1-9]|[12][0-9]|3[01])W", is_day=True),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 1, 7, _DAYS, special=rf"L|([1-7]|{'|'.join(_DAYS)})(L|#[1-5])", is_day=True),
    _Field("year", 1970, 2199),
)
_DAY_OF_MONTH, _DAY_OF_WEEK = 2, 4
LONGEST_WINDOW_MINUTES = 1440  # EventBridge Scheduler API reference, FlexibleTimeWindow


def schedule_error(expression: str) -> str | None:
    """Return what is wrong with a schedule expression; `None` when EventBridge would take it."""
    if rate := _RATE.fullmatch(expression):
        value = int(rate[1])
        unit = rate[2]
        if value == 0:
            return "has the rate 0"
        if (value == 1) == unit.endswith("s"):
            return f"needs the {'singular' if value == 1 else 'plural'} of {unit} after {value}"
        return None
    if cron := _CRON.fullmatch(expression):
        return _cron_error(cron[1].split())
    return "is neither cron(…) nor rate(…)"


def rate_minutes(expression: str) -> int | None:
    """Return the minutes from one time of a `rate(…)` to the next; `None` for another expression."""
    rate = _RATE.fullmatch(expression)
    return None if rate is None else int(rate[1]) * {"minute": 1, "hour": 60, "day": 1440}[rate[2].removesuffix("s")]


def _cron_error(words: list[str]) -> str | None:
    if len(words) != len(_FIELDS):
        return f"has {len(words)} fields; cron takes {len(_FIELDS)}: {', '.join(field.name for field in _FIELDS)}"
    for field, word in zip(_FIELDS, words, strict=True):
        if not (field.is_day and word == _ANY) and not all(_is_item(field, item) for item in word.split(",")):
            return f"has {word} as its {field.name}: {field.low} to {field.high}"
    if (words[_DAY_OF_MONTH] == _ANY) == (words[_DAY_OF_WEEK] == _ANY):
        return "needs a ? as its day of month or its day of week, but not as both"
    return None


def _is_item(field: _Field, item: str) -> bool:
    if re.fullmatch(field.special, item):
        return True
    base, slash, step = item.partition("/")
    if slash and not (_STEP.fullmatch(step) and int(step) <= field.high):
        return False
    low, dash, high = base.partition("-")
    if not dash:
        return base == "*" or field.number(base) is not None
    return field.number(low) is not None and field.number(high) is not None


def fire_times(expression: str, zone: tzinfo, first: date, days: int) -> Iterator[datetime]:
    """Yield the times of a valid expression on some days of a time zone, ascending.

    `rate(…)` counts from the first midnight. A time that the clock skips in spring is the one an hour later.
    """
    midnight = datetime.combine(first, time(), zone)
    if (every := rate_minutes(expression)) is not None:
        for count in range(1, days * 1440 // every + 1):
            yield datetime.fromtimestamp(midnight.timestamp() + 60 * every * count, zone)
    elif expression.startswith("at("):
        at = datetime.fromisoformat(expression[3:-1]).replace(tzinfo=zone)
        if first <= at.date() < first + timedelta(days=days):
            yield at
    else:
        words = expression[len("cron(") : -1].split()
        minutes, hours, _, months, _, years = (_values(*each) for each in zip(_FIELDS, words, strict=True))
        for day in (first + timedelta(days=count) for count in range(days)):
            if day.month in months and day.year in years and _is_day(day, words[_DAY_OF_MONTH], words[_DAY_OF_WEEK]):
                yield from (datetime.combine(day, time(hour, minute), zone) for hour in hours for minute in minutes)


def limits_over(scaling: ScalingSpec, begin: datetime, days: int) -> Iterator[tuple[float, int, int]]:
    """Yield the limits that hold at `begin`, and those of each schedule that comes due within some days.

    Each has its seconds from `begin`, the fewest and the most copies. At `begin` hold those that schedules of the week
    before left. Limits that contradict are refused and not made.
    """
    due: list[tuple[float, ScalingScheduleSpec]] = []
    for each in scaling.schedules:
        zone = ZoneInfo(each.timezone or "UTC")
        # Where it is another day than at `begin`, the last of these days ends later.
        first = begin.astimezone(zone).date()
        times = (*fire_times(each.schedule, zone, first - _WEEK, 7), *fire_times(each.schedule, zone, first, days + 1))
        after = ((at.timestamp() - begin.timestamp(), each) for at in times)
        due += [(at_s, schedule) for at_s, schedule in after if at_s < days * 86_400]
    least, most, is_begun = scaling.min_copies, scaling.max_copies, False
    for at_s, schedule in sorted(due, key=lambda one: one[0]):
        if at_s > 0 and not is_begun:
            yield 0.0, least, most
            is_begun = True
        fewest = least if schedule.min_copies is None else schedule.min_copies
        highest = most if schedule.max_copies is None else schedule.max_copies
        least, most = (fewest, highest) if fewest <= highest else (least, most)
        if at_s > 0:
            yield at_s, least, most
    if not is_begun:
        yield 0.0, least, most


def _values(field: _Field, word: str) -> list[int]:
    """Return the values that a field of an expression stands for, ascending, but for forms that depend on the date."""
    values: set[int] = set()
    for item in word.split(","):
        if item == _ANY or re.fullmatch(field.special, item):
            continue
        base, slash, step = item.partition("/")
        low, dash, high = base.partition("-")
        start = field.low if low == "*" else field.number(low)
        end = field.number(high) if dash else field.high if slash or low == "*" else start
        if start is None or end is None:
            raise ValueError(f"{word} is not a checked {field.name}")
        # FRI-MON goes on past the end of the week.
        wrapped = [*range(start, field.high + 1), *range(field.low, end + 1)] if end < start else range(start, end + 1)
        values.update(wrapped[:: int(step or 1)])
    return sorted(values)


def _is_day(day: date, of_month: str, of_week: str) -> bool:
    """Return whether a day is one of an expression's two fields of days, of which one is `?`."""
    length, number = calendar.monthrange(day.year, day.month)[1], day.isoweekday() % 7 + 1
    if day.day in _values(_FIELDS[_DAY_OF_MONTH], of_month) or number in _values(_FIELDS[_DAY_OF_WEEK], of_week):
        return True
    for item in of_month.split(","):
        wanted = length if item in {"L", "LW"} else min(int(item[:-1]), length) if item.endswith("W") else 0
        if wanted and day.day == (_nearest_weekday(day.replace(day=wanted), length) if "W" in item else wanted):
            return True
    for item in of_week.split(","):
        name, nth, which = (
            item.partition("#") if "#" in item else (item.removesuffix("L"), "L" * item.endswith("L"), "")
        )
        if nth and number == (_FIELDS[_DAY_OF_WEEK].number(name) or 7):
            week = (day.day - 1) // 7 + 1
            if not name or (week == int(which) if which else day.day + 7 > length):
                return True
    return False


def _nearest_weekday(day: date, length: int) -> int:
    """Return the day of the same month that is the weekday nearest to a day."""
    moved = {6: -1 if day.day > 1 else 2, 7: 1 if day.day < length else -2}
    return day.day + moved.get(day.isoweekday(), 0)
