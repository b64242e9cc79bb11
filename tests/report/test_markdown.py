from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.documents.simulation import CopyStart, StartPart
from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import page_of
from seatrial_load.documents.result import StartTime

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import TrialResult


def test_the_verdict_comes_first(real: TrialResult, plan: Plan) -> None:
    lines = render_markdown(real, plan).splitlines()
    assert lines[0] == "## Sea trial of sample-chat in dev: pass"
    assert lines[2] == "**PASS**: All 3 objectives met; 96 of 96 requests succeeded at concurrency 16 per copy."


def test_levels_checks_and_knees_are_tables(real: TrialResult, plan: Plan) -> None:
    text = render_markdown(real, plan)
    assert "| 16 | 96 | 0 % | 997 | 190 | 315 | 28.7 | 47.6 | 12,458 | ✓ met |" in text
    assert "| TPOT p95 | ≤ 60 ms | 47.6 ms | ✓ met |" in text
    assert "| kneedle | 32 | no | " in text
    assert "Scaling target: 22.4 requests in flight per copy." in text  # the knee at 32 × the target utilization 0.7


def test_the_scaling_target_is_written_with_the_digits_that_are_set(real: TrialResult, plan: Plan) -> None:
    assert "Scaling target: 12.75 requests" in render_markdown(replace(real, target_concurrency_per_copy=12.75), plan)


def test_every_row_has_as_many_cells_as_its_table(hopeless: TrialResult, plan: Plan) -> None:
    tables = [block for block in render_markdown(hopeless, plan).split("\n\n") if block.startswith("|")]
    assert len(tables) == 7
    for table in tables:
        assert len({line.replace(r"\|", "").count("|") for line in table.splitlines()}) == 1


def test_a_local_engine_is_named_and_not_compared(local: TrialResult, plan: Plan) -> None:
    text = render_markdown(local, plan)
    assert "> Local engine: " in text
    assert "“local-cpu-random-llama (not the model named)”" in text
    assert "beside measured" not in text


def test_the_start_of_a_copy_is_a_chapter_of_page_and_pull_request(real: TrialResult, plan: Plan) -> None:
    part = StartPart(part="engine", seconds=300, further=True, source="assumed", likely_s=47, likely_source="published")
    start = CopyStart(parts=(part,), totals=(), shortcuts=(), waits="SageMaker waits", warnings=("SEA571: Long.",))
    measured = StartTime(created_at="", seconds=412.4, instances_added=1, because="a candidate", simulated=True)
    result = replace(real, start=measured)
    text = render_markdown(result, plan, start)
    (section,) = (each for each in page_of(result, plan, start=start).details if each.anchor == "start")
    trial = "The copy on trial: simulated, 412 s with a new instance, a candidate."
    assert section.paragraphs == (trial, "SageMaker waits.", "SEA571: Long.")
    assert all(words in text for words in (*section.paragraphs, "| engine | 300 | 47 | assumed; published |"))
    # Without the plan that was tried, its start is left out; the trial's own stays.
    alone = render_markdown(result, None, start)
    assert (trial in alone, "SEA571" in alone) == (True, False)


def test_a_real_endpoint_is_compared(real: TrialResult, plan: Plan) -> None:
    text = render_markdown(real, plan)
    assert "<summary>Predicted and measured</summary>" in text
    assert "Band: throughput ±20 %, latency ±20 % (assumed)." in text


def test_an_empty_trial_says_what_happened(empty: TrialResult) -> None:
    text = render_markdown(empty, None)
    assert "No level was measured in full: the budget of 600 s was used up." in text
    assert "> No plan was given" in text


def test_missing_values_are_explained_below_their_table(hopeless: TrialResult, plan: Plan) -> None:
    text = render_markdown(hopeless, plan)
    assert "| 16 | 3 | 100.0 % | – | – | – | – | – | – | ✗ none succeeded |\n\n– : no request succeeded at 16\n" in text


def test_the_text_is_the_same_each_time(real: TrialResult, plan: Plan) -> None:
    assert render_markdown(real, plan) == render_markdown(replace(real), plan)


def test_a_void_level_says_so(rich: TrialResult, plan: Plan) -> None:
    text = render_markdown(rich, plan)
    assert "> Void (○): at concurrency 64 " in text
    assert "| ○ 64 | 384 | 6.2 % | 990 | 4,187 | 6,946 | 35.5 | 58.9 | 21,977 | ○ void |" in text


def test_the_comparison_stands_above_the_fold(rich: TrialResult, plan: Plan) -> None:
    unfolded = render_markdown(rich, plan).partition("<details>")[0]
    assert "### Against the last release\n\n1 of 2 numbers worse" in unfolded
    assert "| 16 | output throughput, tok/s | 1,133 | 997 | \N{MINUS SIGN}12.0 % | ✗ worse |" in unfolded


def test_the_rest_is_folded(rich: TrialResult, plan: Plan) -> None:
    text = render_markdown(rich, plan)
    assert re.findall("<summary>(.*)</summary>", text) == [
        "Knee detectors",
        "Throughput, TTFT and requests in flight over time",
        "Failed requests",
        "Predicted and measured",
        "Cost by level",
        "All numbers compared with the last release",
        "Client health",
    ]
    assert text.count("<details>") == text.count("</details>") == 7


def test_without_a_plan_the_cost_is_that_of_the_levels(rich: TrialResult) -> None:
    text = render_markdown(rich, None)
    assert "| 16 | 498 | \\$0.675 | \\$0.169 |" in text  # 1.212 USD per hour / (3600 × 498.4 tok/s) × 10⁶, then / 4
