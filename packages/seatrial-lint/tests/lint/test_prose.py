"""The words of the findings, in one file; UPDATE_GOLDEN=1 writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

from tests.lint import test_conflicts, test_defaults, test_keys, test_values

GOLDEN = Path(__file__).parent / "golden" / "findings.txt"
TABLES = (test_conflicts.CASES, test_defaults.CASES, test_keys.CASES, test_values.CASES)


def test_the_words_of_the_findings_are_the_golden_file() -> None:
    lines = dict.fromkeys(f"{case.rule}: {text}" for cases in TABLES for case in cases for text in case.says())
    text = "".join(f"{line}\n" for line in sorted(lines))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
