"""What the report concludes: the comparison with the last release, the cost, the article's table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest
from rich.console import Console

from seatrial.report.document.baseline import compared_section, comparison_section, comparison_sentence
from seatrial.report.document.cost import cost_section, level_cost_section, level_cost_table
from seatrial.report.document.jumpstart import jumpstart_section, jumpstart_table, last_before_timeout
from seatrial.report.document.page import page_of
from seatrial.report.document.slo import checks_table, knees_section
from seatrial.report.terminal.trial import jumpstart_view
from seatrial_load.documents.result import Check, Comparison
from tests.report.samples import failed_level

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial_base.table import Table
    from seatrial_load.documents.result import TrialResult


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


@pytest.fixture
def jumpstart(real: TrialResult) -> TrialResult:
    """Return a trial by the article's protocol, whose highest level had requests that were not answered."""
    load = replace(real.request.load, protocol="jumpstart-2024", warmup_requests=0)
    return replace(real, request=replace(real.request, load=load))


def test_what_changed_stands_before_what_did_not(rich: TrialResult) -> None:
    section = comparison_section(rich)
    assert texts(section.tables[0]) == [
        ["16", "output throughput, tok/s", "1,133", "997", "\N{MINUS SIGN}12.0 %", "✗ worse"]
    ]
    assert texts(compared_section(rich).tables[0])[1] == ["16", "TTFT p95, ms", "306", "315", "+3.0 %", "≈ same"]
    assert compared_section(rich).facts[0].value.text == "s3://results/passed/sample-chat/1f0c/config/model.json"
    assert {fact.name: fact.value.text for fact in section.facts} == {
        "This trial is": "✗ worse",
        "Its plan": "1f0c77aa",
        "Last release measured": "2026-10-20 09:00:00Z",
    }


def test_what_is_better_beyond_the_tolerance_says_so(rich: TrialResult) -> None:
    assert rich.comparison
    faster = replace(rich.comparison.changes[1], better=True)
    comparison = replace(rich.comparison, changes=(faster, rich.comparison.changes[0]))
    rows = texts(comparison_section(replace(rich, comparison=comparison)).tables[0])
    assert [row[-1] for row in rows] == ["✗ worse", "✓ better"]  # the worse first


def test_only_the_largest_changes_stand_above_the_fold(rich: TrialResult) -> None:
    assert rich.comparison
    changes = tuple(replace(rich.comparison.changes[0], share=-0.1 * number) for number in range(1, 10))
    result = replace(rich, comparison=replace(rich.comparison, changes=changes))
    shown = [row[4] for row in texts(comparison_section(result).tables[0])]
    assert shown == [f"\N{MINUS SIGN}{percent}.0 %" for percent in (90, 80, 70, 60, 50, 40)]
    assert len(compared_section(result).tables[0].rows) == 9


def test_a_rate_changes_by_points_and_a_cost_is_money(rich: TrialResult) -> None:
    assert rich.comparison
    first = replace(rich.comparison.changes[0], metric="error_rate", before=0.01, after=0.04, share=0.03)
    second = replace(first, metric="usd_per_million_output_tokens", before=0.5, after=0.6, share=0.2)
    comparison = replace(rich.comparison, changes=(first, second))
    rows = texts(comparison_section(replace(rich, comparison=comparison)).tables[0])
    assert [row[1:5] for row in rows] == [
        ["cost of a million output tokens", "$0.50", "$0.60", "+20.0 %"],
        ["error rate", "1.0 %", "4.0 %", "+3.0 points"],
    ]


def test_many_changes_are_counted_and_not_repeated(rich: TrialResult) -> None:
    assert rich.comparison
    changes = rich.comparison.changes * 18
    because = "; ".join(change.sentence for change in changes)
    said = comparison_sentence(replace(rich.comparison, changes=changes, because=because))
    assert [int(word) for word in said.replace(",", "").split() if word.isdigit()] == [18, 36, 0, 18]
    assert len(said) < 120


@pytest.mark.parametrize(
    ("status", "shown"),
    [("same", "≈ same"), ("better", "✓ better"), ("worse", "✗ worse"), ("incomparable", "? not comparable")],
)
def test_every_status_has_a_sign(
    real: TrialResult, status: Literal["same", "better", "worse", "incomparable"], shown: str
) -> None:
    section = comparison_section(replace(real, comparison=Comparison(status=status, because="so it is")))
    assert section.facts[0].value.text == shown
    assert section.tables == ()


def test_without_a_comparison_its_section_is_left_out(real: TrialResult) -> None:
    assert comparison_section(real).is_empty
    assert "comparison" not in [section.anchor for section in page_of(real, None).sections]


def test_cost_follows_from_each_valid_levels_throughput(rich: TrialResult) -> None:
    rows = texts(level_cost_table(rich))
    assert [row[0] for row in rows] == ["1", "2", "4", "8", "16", "24", "32"]  # 64 is void
    assert rows[4] == ["16", "498", "$0.675", "$0.169"]  # 1.212 USD per hour / (3600 × 498.4) × 10⁶, then / 4


def test_a_local_engine_has_no_cost_by_level(local: TrialResult, real: TrialResult) -> None:
    assert cost_section(local, None).is_empty
    assert not cost_section(real, None).is_empty
    assert cost_section(replace(real, request=replace(real.request, usd_per_hour_per_copy=None)), None).is_empty


def test_with_a_plan_the_cost_by_level_is_folded(real: TrialResult, plan: Plan) -> None:
    assert level_cost_section(real, None).is_empty
    section = level_cost_section(real, plan)
    assert section.detail
    assert [table.caption for table in section.tables] == ["Measured cost by level"]


def test_an_objective_shows_the_interval_that_proved_it(real: TrialResult) -> None:
    (check, *_) = real.verdict.checks
    proven = replace(check, bound_low=290.0, bound_high=341.0)
    cell = checks_table(replace(real, verdict=replace(real.verdict, checks=(proven,)))).rows[0][2]
    assert cell.text == "315.0 ms"
    assert cell.low
    assert cell.high
    assert (cell.low.text, cell.high.text) == ("290.0 ms", "341.0 ms")


def test_an_objective_whose_interval_reaches_over_the_bound_is_not_proven(real: TrialResult) -> None:
    (objective, *_) = real.request.objectives
    reaching = Check(objective=objective, measured=1990.0, met=None, sentence="s", bound_low=1900.0, bound_high=2100.0)
    nothing = Check(objective=objective, measured=None, met=None, sentence="s")
    table = checks_table(replace(real, verdict=replace(real.verdict, checks=(reaching, nothing))))
    assert [row[3] for row in texts(table)] == ["? not proven", "? not measured"]


def test_the_detector_that_sets_the_target_is_named(rich: TrialResult) -> None:
    rows = texts(knees_section(replace(rich, target_detector="two_segment")).tables[0])
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("slo", "32", "no"),
        ("kneedle", "16", "no"),
        ("half_latency", "16", "no"),
        ("two_segment", "24", "✓ yes"),
        ("theory", "28", "no"),
    ]


def test_the_articles_table_has_its_units(jumpstart: TrialResult, plan: Plan) -> None:
    table = jumpstart_table(jumpstart, plan)
    assert table.caption == "sample/sample-7b-chat on ml.g5.2xlarge, 512 total tokens, 256 of them output"
    assert [column.heading for column in table.columns] == [
        "concurrency (per copy)",
        "throughput (tok/s)",
        "latency p90 (ms/token)",
        "latency p50 (ms/token)",
        "requests",
        "answered in time",
    ]
    assert texts(table)[0] == ["1", "89.8", "29.3", "20.4", "6", "✓ all"]
    assert texts(table)[-1] == ["64", "990", "74.5", "51.9", "384", "✗ 360 of 384"]


def test_the_articles_table_ends_before_a_request_was_not_answered(jumpstart: TrialResult) -> None:
    assert last_before_timeout(jumpstart) == 32
    assert jumpstart_section(jumpstart, None).remarks == (
        "The article's table ends at 32: above it, a request failed.",
    )
    whole = replace(jumpstart, levels=jumpstart.levels[:3])
    assert jumpstart_section(whole, None).remarks == ("Every request succeeded up to 4, the highest level measured.",)
    nothing = replace(jumpstart, levels=(failed_level(1, "HTTP 424"),))
    assert jumpstart_section(nothing, None).remarks == (
        "No level was answered in full, so the article's table would be empty.",
    )


def test_only_a_trial_by_the_articles_protocol_has_the_articles_table(
    jumpstart: TrialResult, real: TrialResult, plan: Plan
) -> None:
    assert "jumpstart" in [section.anchor for section in page_of(jumpstart, plan).sections]
    assert "jumpstart" not in [section.anchor for section in page_of(real, plan).sections]


def test_the_articles_table_fits_a_terminal(jumpstart: TrialResult, local: TrialResult) -> None:
    console = Console(width=80, record=True, color_system=None)
    console.print(jumpstart_view(replace(jumpstart, engine_note=local.engine_note)))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[1] == "sample-chat, 512 total tokens, 256 of them output"
    assert lines[4].split() == ["1", "89.8", "29.3", "20.4", "6", "✓", "all"]
    assert lines[-1] == "measured on: local-cpu-random-llama (not the model named)"
    assert max(map(len, lines)) <= 80
