"""What the report concludes: the comparison with the last release, the cost, the article's table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest
from rich.console import Console

from seatrial.bench.judgement import Check, Comparison
from seatrial.report.comparison import comparison_section, signed_percent
from seatrial.report.cost import has_cost, level_cost_table
from seatrial.report.judgement import checks_table, knees_section
from seatrial.report.jumpstart import jumpstart_section, jumpstart_table, last_before_timeout
from seatrial.report.page import page_of
from seatrial.report.terminal.jumpstart import jumpstart_view
from tests.report.samples import failed_level

if TYPE_CHECKING:
    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan
    from seatrial.report.table import Table


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.cells]


@pytest.fixture
def jumpstart(real: TrialResult) -> TrialResult:
    """Return a trial by the article's protocol, whose highest level had requests that were not answered."""
    load = replace(real.request.load, protocol="jumpstart-2024", warmup_requests=0)
    return replace(real, request=replace(real.request, load=load))


def test_before_and_now_stand_side_by_side(rich: TrialResult) -> None:
    section = comparison_section(rich)
    assert section.paragraphs == (
        "output_tok_s at concurrency 16 per copy fell by 12.0 %, more than 10.0 % and noise.",
    )
    assert [row[:6] for row in texts(section.tables[0])] == [
        ["16", "output_tok_s", "1,133", "997", "\N{MINUS SIGN}12.0 %", "✗ worse"],
        ["16", "ttft_ms p95", "306", "315", "+3.0 %", "within bounds"],
    ]
    assert {fact.name: fact.value.text for fact in section.facts} == {
        "This trial is": "✗ worse",
        "Its plan": "1f0c77aa",
        "Measured": "2026-10-20 09:00:00Z",
        "Its result": "s3://results/passed/sample-chat/1f0c/config/model.json",
    }


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


def test_no_comparison_is_said(real: TrialResult) -> None:
    assert comparison_section(real).paragraphs == ("This trial was compared with no other.",)


@pytest.mark.parametrize(("share", "written"), [(0.031, "+3.1 %"), (-0.12, "\N{MINUS SIGN}12.0 %"), (0.0, "+0.0 %")])
def test_a_change_has_its_sign(share: float, written: str) -> None:
    assert signed_percent(share) == written


def test_cost_follows_from_each_valid_levels_throughput(rich: TrialResult) -> None:
    rows = texts(level_cost_table(rich))
    assert [row[0] for row in rows] == ["1", "2", "4", "8", "16", "24", "32"]  # 64 is void
    assert rows[4] == ["16", "498", "$0.675", "$0.169"]  # 1.212 USD per hour / (3600 × 498.4) × 10⁶, then / 4


def test_a_local_engine_has_no_cost_by_level(local: TrialResult, real: TrialResult) -> None:
    assert not has_cost(local, None)
    assert has_cost(real, None)
    assert not has_cost(replace(real, request=replace(real.request, usd_per_hour_per_copy=None)), None)


def test_an_objective_shows_the_interval_that_proved_it(real: TrialResult) -> None:
    (check, *_) = real.verdict.checks
    proven = replace(check, bound_low=290.0, bound_high=341.0)
    cell = checks_table(replace(real, verdict=replace(real.verdict, checks=(proven,)))).cells[0][2]
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


def test_every_detector_that_looked_is_explained(rich: TrialResult) -> None:
    assert knees_section(rich).paragraphs[1] == (
        "The detectors: slo, the highest load that meets the SLO; kneedle, where throughput bends; half_latency, where "
        "latency is twice the unloaded one (the queueing rule); two_segment, where two straight lines through "
        "throughput meet; theory, what the plan says, nothing measured."
    )


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
        "The article's table ends at 32: above it, a request was not answered.",
    )
    whole = replace(jumpstart, levels=jumpstart.levels[:3])
    assert jumpstart_section(whole, None).remarks == (
        "Every request was answered up to 4, the highest level measured.",
    )
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
