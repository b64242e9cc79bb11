"""Facts that age: each table says when it was read, and what renews it."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from scripts.data_age import MOST_DAYS, RENEWAL, data_ages, newest_date
from scripts.renewal.tables import TABLES

ROOT = Path(__file__).parents[4]
DATA = ROOT / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data"
DAY = date(2026, 11, 25)


def test_every_table_with_dates_says_what_renews_it() -> None:
    dated = {file.name for file in DATA.glob("*.json") if newest_date(file.read_text("utf-8"))}
    assert dated == set(RENEWAL)


@pytest.mark.parametrize(("file", "command"), sorted(RENEWAL.items()))
def test_a_command_that_renews_is_there(file: str, command: str) -> None:
    script = re.search(r"python (?:(scripts/\w+\.py)|-m ([\w.]+))(?: (\w+))?", command)
    assert script
    path, module, table = script.groups()
    assert (ROOT / (path or f"{module.replace('.', '/')}.py")).is_file()
    assert path != "scripts/renew.py" or TABLES[table].file == file


def test_a_table_is_old_after_ninety_days() -> None:
    read = next(age for age in data_ages(DAY) if age.file == "images.json").newest
    for days, is_old in ((MOST_DAYS, False), (MOST_DAYS + 1, True)):
        found = {age.file: age for age in data_ages(read + timedelta(days=days))}
        assert (found["images.json"].days, found["images.json"].is_old) == (days, is_old)


def test_the_youngest_date_counts_and_a_month_is_its_first_day() -> None:
    assert newest_date('{"date": "2026-08-21"}, {"date": "2026-11"}') == date(2026, 11, 1)
    assert newest_date('{"rows": []}') is None


def test_the_command_tells_what_is_old_on_a_day() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "data_age.py"), "2036-01-01"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.count("OLD")) == (1, len(RENEWAL))
