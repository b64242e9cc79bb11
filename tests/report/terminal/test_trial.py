"""What a trial concludes, on a terminal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.report.terminal.trial import MOST_CHANGES, conclusion_view, release_view
from seatrial_load.documents.container_metrics import Cause, ContainerMetrics
from seatrial_load.documents.result import Change, Comparison
from tests.report.rich import rich_trial
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from seatrial_load.documents.result import TrialResult
    from tests.report.terminal.conftest import Shown

GOLDEN = Path(__file__).parent / "golden"


def change(number: int, *, worse: bool = True) -> Change:
    return Change(
        metric="ttft_ms p95",
        concurrency=number,
        before=100.0,
        after=100.0 + 10 * number,
        share=number / 10,
        worse=worse,
        better=False,
        sentence="x" * 200,
    )


def compared(*changes: Change) -> Comparison:
    because = "; ".join(one.sentence for one in changes)
    return Comparison(status="worse", because=because, changes=changes)


@pytest.fixture(scope="module")
def trial() -> TrialResult:
    return rich_trial(sample_plan())


def test_the_conclusion_is_the_golden_file(trial: TrialResult, shown: Shown) -> None:
    path, text = GOLDEN / "trial.120.txt", shown(conclusion_view(trial), width=120)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_what_holds_an_endpoint_back_is_told_of_a_real_engine_alone(trial: TrialResult, shown: Shown) -> None:
    cause = Cause(kind="kv_cache_full", because="the KV cache is 99% full", mend="Give it more room.")
    told = replace(trial, engine_note="", container=ContainerMetrics(causes=(cause,), because="CloudWatch"))
    line = "held back: the KV cache is 99% full. Give it more room."
    assert line in shown(conclusion_view(told), width=120)
    assert line not in shown(conclusion_view(replace(told, engine_note="a laptop")), width=120)


def test_the_verdict_is_first_and_each_objective_has_a_row(trial: TrialResult, shown: Shown) -> None:
    lines = shown(conclusion_view(trial), width=120).splitlines()
    assert lines[0].startswith(f"verdict: {trial.verdict.status}: ")
    assert lines[1].split() == ["SLO", "measured", "bound"]
    rows = lines[2 : 2 + len(trial.verdict.checks)]
    assert all(row.rstrip().endswith(("met", "missed", "not proven")) for row in rows)


def test_a_regression_is_a_table_and_no_paragraph(trial: TrialResult, shown: Shown) -> None:
    comparison = compared(*(change(number) for number in range(1, 15)))
    verdict = replace(trial.verdict, status="fail", because=f"it was fine; regression: {comparison.because}")
    lines = shown(conclusion_view(replace(trial, verdict=verdict, comparison=comparison)), width=160).splitlines()
    assert "x" * 200 not in "".join(lines)
    assert lines[0].startswith("verdict: fail: it was fine; regression: 14 of 14 numbers worse")


def test_the_largest_changes_are_shown_and_the_rest_is_counted(shown: Shown) -> None:
    lines = shown(release_view(compared(*(change(number) for number in range(1, 15)))), width=120).splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == [str(number) for number in range(14, 14 - MOST_CHANGES, -1)]
    assert lines[-1] == "and 4 more in the report"


def test_without_a_change_there_is_no_table(shown: Shown) -> None:
    same = Comparison(status="same", because="2 numbers are as they were", changes=(change(1, worse=False),))
    assert "metric" not in shown(release_view(same))
