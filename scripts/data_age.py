"""The age of the catalog's facts, and the command that renews each table.

    python scripts/data_age.py [TODAY]     exit 1 where a table is older than 90 days

The day is an input: no test of the gate looks at the calendar. `make data-age` does.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_DAYS: Final = 90
# What renews a table whose rows have dates; `seatrial prices refresh` renews a team's own prices.
RENEWAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accelerators.json": "python scripts/renew.py accelerators --write",
        "engine_choice.json": "python scripts/renew.py engine_choice --write",
        "engine_limits.json": "python scripts/build_engine_limits.py",
        "engine_options.json": "python scripts/build_engine_options.py",
        "engines.json": "python -m benchmarks.planner_accuracy.fit_engines --write",
        "images.json": "python scripts/build_images.py --date DATE",
        "instances.json": "python scripts/build_catalog.py",
        "jumpstart.json": "python scripts/build_jumpstart.py CHECKOUT DATE",
        "licences.json": "python scripts/renew.py licences --write",
        "models.json": "python scripts/renew.py models --write",
        "neuron.json": "python scripts/renew.py neuron --write",
        "optimizations.json": "python scripts/renew.py optimizations --write",
        "parsers.json": "python scripts/renew.py parsers --write",
        "regions.json": "python scripts/renew.py regions --write",
        "replacement.json": "python scripts/renew.py replacement --write",
        "resource_schemas.json": "python scripts/build_resource_schemas.py",
        "service_authorization.json": "python scripts/build_service_authorization.py",
        "speculation.json": "python -m benchmarks.planner_accuracy.fit_speculation --write",
        "symptoms.json": "python scripts/renew.py symptoms --write",
    }
)
_DATE: Final = re.compile(r'"date": ?"(\d{4})-(\d\d)(?:-(\d\d))?"')


@dataclass(frozen=True, slots=True)
class DataAge:
    """A table of the catalog.

    Attributes:
        newest: When the youngest of its facts was read; the first of a month where no day is told.
        days: Days since then.
        renewal: What renews it.
    """

    file: str
    newest: date
    days: int
    renewal: str

    @property
    def is_old(self) -> bool:
        """Whether it should be renewed."""
        return self.days > MOST_DAYS


def newest_date(text: str) -> date | None:
    """Return the youngest date of a table's rows; `None` where they have none."""
    return max((date(int(year), int(month), int(day or 1)) for year, month, day in _DATE.findall(text)), default=None)


def data_ages(today: date) -> tuple[DataAge, ...]:
    """Return every table whose rows have dates, the oldest first."""
    tables = [each for each in files("seatrial_base.catalog").joinpath("data").iterdir() if each.name in RENEWAL]
    dated = [(each.name, newest_date(each.read_text("utf-8"))) for each in tables]
    ages = [DataAge(name, newest, (today - newest).days, RENEWAL[name]) for name, newest in dated if newest]
    return tuple(sorted(ages, key=lambda age: (-age.days, age.file)))


def _main(arguments: Sequence[str]) -> int:
    today = date.fromisoformat(arguments[0]) if arguments else datetime.now(UTC).date()
    ages = data_ages(today)
    for age in ages:
        mark = "OLD" if age.is_old else "   "
        sys.stdout.write(f"{mark} {age.days:4} days  {age.newest}  {age.file:28} {age.renewal}\n")
    return int(any(age.is_old for age in ages))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
