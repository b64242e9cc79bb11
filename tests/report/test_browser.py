"""The report in real Chromium: what it draws, logs, fetches, prints, and what a screen reader meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.report.document.page import render_csv
from seatrial.report.write import write_trial_report
from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.result import TrialResult
from tests.browser.look import Look, look_at

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.plan import Plan


@pytest.fixture(scope="module")
def folder(rich: TrialResult, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_trial_report(rich, plan, folder)
    return folder


@pytest.fixture(scope="module")
def look(folder: Path) -> Look:
    return look_at(folder / "report.html")


@pytest.fixture(scope="module")
def read(folder: Path) -> TrialResult:
    return TrialResult.from_json((folder / "report.json").read_text(encoding="utf-8"))


def test_nothing_is_logged_and_nothing_but_the_page_is_fetched(look: Look, folder: Path) -> None:
    assert look.console == []
    assert [address for address in look.requests if not address.startswith("data:")] == [
        (folder / "report.html").as_uri()
    ]
    assert [address for address in look.failed if not address.startswith("data:")] == []


def test_what_decides_ends_before_3000_px(look: Look) -> None:
    assert look.folded
    assert look.decisive_px <= 3000


def test_every_chart_is_drawn_with_all_its_points(look: Look) -> None:
    # 8 measured levels, p50 and p95, and 7 predicted
    assert {figure.anchor: figure.points for figure in look.figures if figure.points} == {
        "latency-throughput": 23,
        "throughput": 15,
        "ttft": 23,
        "tpot": 23,
        "predicted-ttft-ms": 15,
        "predicted-tpot-ms": 15,
        "predicted-e2e-latency-ms": 15,
    }
    assert {figure.anchor: figure.curves for figure in look.figures if not figure.points} == {
        "cdf-ttft-ms": 8,
        "cdf-tpot-ms": 8,
        "cdf-e2e-latency-ms": 8,
        "time-throughput": 8,
        "time-ttft": 8,
        "time-in-flight": 8,
    }
    assert {figure.role for figure in look.figures} == {"img"}
    assert all(figure.label for figure in look.figures)


def test_error_bars_knee_and_gate_are_drawn(look: Look) -> None:
    drawn = {figure.anchor: figure for figure in look.figures}
    assert drawn["ttft"].bars == 16  # 8 levels, p50 and p95
    assert drawn["latency-throughput"].bars == 32  # of throughput too
    assert drawn["ttft"].labels == ["gate 16", "knee 32"]
    assert set(drawn["latency-throughput"].labels) == {"1", "2", "4", "8", "16 = gate", "24", "32 = knee", "64"}


def test_the_void_level_and_what_is_predicted_are_hollow(look: Look) -> None:
    drawn = {figure.anchor: figure for figure in look.figures}
    assert drawn["throughput"].hollow == 1 + 7
    assert drawn["ttft"].hollow == 2 + 7


def test_no_name_leaves_its_chart_or_touches_another(look: Look) -> None:
    for figure in (*look.figures, *look.narrow_figures):
        assert figure.outside == [], figure.anchor
        assert figure.overlapping == [], figure.anchor
    assert min(figure.width for figure in look.figures) > 300


def test_a_chart_is_as_wide_as_a_phone_allows(look: Look) -> None:
    assert {round(figure.width) for figure in look.narrow_figures} == {350}  # 390 less the page's margins


def test_values_are_shown_under_the_pointer(look: Look, read: TrialResult) -> None:
    level = next(level for level in read.levels if level.concurrency == 4)  # the third point
    values = level.e2e_latency_ms
    assert values
    assert look.hover[0] == "concurrency 4"
    assert look.hover[1].startswith(f"p95 {values.p95:,.0f} ms (")
    assert look.hover[2].startswith(f"{level.output_tok_s:,.0f} tok/s (")


def test_the_downloads_are_the_files(look: Look, folder: Path, read: TrialResult) -> None:
    assert look.downloads["report.json"] == (folder / "report.json").read_text(encoding="utf-8")
    assert look.downloads["report.csv"] == render_csv(read)


def test_a_link_into_a_folded_part_opens_it(look: Look) -> None:
    assert look.opened


def test_the_navigation_stays_in_sight(look: Look) -> None:
    assert look.sticky == 0


def test_every_percentile_is_the_value_of_the_json(look: Look, read: TrialResult) -> None:
    for caption, field in (
        ("Time to first token (TTFT), ms", "ttft_ms"),
        ("Time per output token (TPOT), ms", "tpot_ms"),
        ("Gaps between token events (ITL), ms", "itl_ms"),
        ("End-to-end latency, ms", "e2e_latency_ms"),
        ("End-to-end latency per output token, ms", "ms_per_token"),
    ):
        for row, level in zip(look.tables[caption], read.levels, strict=True):
            values = getattr(level, field)
            exact = [values.count, *(getattr(values, name) for name in ("mean", "p50", "p90", "p95", "p99", "max"))]
            assert [float(cell.exact) for cell in row] == [level.concurrency, *exact]
            for cell, name in zip(row[2:7], ("mean", "p50", "p90", "p95", "p99"), strict=True):
                ends = values.intervals.get(name, Interval(low=None, high=None))
                assert [float(end) for end in cell.interval] == [end for end in (ends.low, ends.high) if end]


def test_every_throughput_is_the_value_of_the_json(look: Look, read: TrialResult) -> None:
    rows = look.tables["Requests and throughput by level, 2 copies together"]
    for row, level in zip(rows, read.levels, strict=True):
        assert [float(cell.exact) for cell in row[:7]] == [
            level.concurrency,
            level.requests,
            level.error_rate,
            level.output_tok_s,
            level.total_tok_s,
            level.requests_per_s,
            level.goodput_requests_per_s,
        ]


def test_every_number_that_is_shown_rounds_the_exact_one(look: Look) -> None:
    cells = [cell for rows in look.tables.values() for row in rows for cell in row if cell.exact]
    plain = [cell for cell in cells if cell.shown.replace(",", "").replace(".", "").isdigit()]
    assert len(plain) > 500
    for cell in plain:
        assert float(cell.shown.replace(",", "")) == pytest.approx(float(cell.exact), rel=0.05), cell


@pytest.mark.parametrize("width", ["390", "1280"])
def test_no_text_overflows(look: Look, width: str) -> None:
    assert look.overflow[width] == []


def test_the_dark_scheme_applies(look: Look) -> None:
    assert (look.light, look.dark) == ("rgb(255, 255, 255)", "rgb(18, 23, 29)")


def test_it_prints(look: Look) -> None:
    assert 5 <= look.pdf_pages <= 20


def test_headings_are_in_order_and_every_landmark_is_there(look: Look) -> None:
    assert look.headings == [1, *[2] * 6, 3, 3]
    assert look.landmarks == ["header", "nav", "main", "footer"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_of_accessibility_is_broken(look: Look, scheme: str) -> None:
    assert look.accessibility[scheme] == []
