"""Schedule expressions of Amazon EventBridge Scheduler: `cron(…)` with six fields in UTC, and `rate(…)`.

Source: "Schedule types" of the EventBridge Scheduler User Guide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CRON, _RATE = re.compile(r"cron\((.*)\)"), re.compile(r"rate\(([0-9]{1,9}) (minutes?|hours?|days?)\)")
_STEP, _ANY = re.compile(r"[1-9][0-9]{0,3}"), "?"
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


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
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}
LONGEST_WINDOW_MINUTES = 1440  # EventBridge Scheduler API reference, FlexibleTimeWindow


def schedule_error(expression: str) -> str | None:
    """Return what is wrong with a schedule expression; `None` when EventBridge would take it."""
    if rate := _RATE.fullmatch(expression):
        return _rate_error(int(rate[1]), rate[2])
    if cron := _CRON.fullmatch(expression):
        return _cron_error(cron[1].split())
    return "is neither cron(…) nor rate(…)"


def rate_minutes(expression: str) -> int | None:
    """Return the minutes from one time of a `rate(…)` to the next; `None` for another expression."""
    rate = _RATE.fullmatch(expression)
    return None if rate is None else int(rate[1]) * _MINUTES[rate[2].removesuffix("s")]


def _rate_error(value: int, unit: str) -> str | None:
    if value == 0:
        return "has the rate 0"
    if (value == 1) == unit.endswith("s"):
        return f"needs the {'singular' if value == 1 else 'plural'} of {unit} after {value}"
    return None


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
