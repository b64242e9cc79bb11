"""No text hangs a reader: CPU time, which other processes don't lengthen, grows with a text's length."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.hostile_texts import PREFIXED, PROGRAMS, READERS, REPEATED

ROOT = Path(__file__).parents[2]
LENGTH = 64 * 1024
LIMIT_S = LENGTH / 10**6
"""CPU seconds for a text: those of a megabyte are below a second, as they grow with its length."""


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, float | None]]:
    command = [sys.executable, "-m", "tests.faults.hostile_texts", str(LENGTH), str(LIMIT_S), "--few"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    answer: dict[str, dict[str, float | None]] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("reader", READERS)
def test_every_text_is_read_within_its_budget(reader: str, found: dict[str, dict[str, float | None]]) -> None:
    stopped = [name for name, spent_s in found[reader].items() if spent_s is None]
    assert stopped == []


def test_all_texts_are_read(found: dict[str, dict[str, float | None]]) -> None:
    assert set(found["secrets"]) == {*REPEATED, *PREFIXED}
    assert set(PROGRAMS) < set(found["lint"])
    assert all(len(texts) >= 7 for texts in found.values())
