"""The report in real Chromium: what it draws, logs, fetches, prints, and what a screen reader meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.bench.result import TrialResult
from seatrial.measure.distribution import Interval
from seatrial.report import write_report
from tests.browser.look import Look, look_at

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.plan.document import Plan


@pytest.fixture(scope="module")
def folder(rich: TrialResult, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(rich, plan, folder)
    return folder


@pytest.fixture(scope="module")
def look(folder: Path) -> Look:
    return look_at(folder / "report.html")


@pytest.fixture(scope="module")
def read(folder: Path) -> TrialResult:
    return TrialResult.from_json((folder / "report.json").read_text(encoding="utf-8"))


def test_nothing_is_logged_and_nothing_but_the_page_is_fetched(look: Look, folder: Path) -> None:
    assert look.console == []
    assert look.requests == [(folder / "report.html").as_uri()]
    assert look.failed == []


def test_every_curve_has_a_point_for_each_level(look: Look) -> None:
    points = {figure.title: figure.points for figure in look.figures}
    assert points == {
        "End-to-end latency over output throughput, 2 copies together (ms) by output throughput": {
            "measured p50": 8,
            "measured p95": 8,
            "predicted p95": 7,
        },
        "Output throughput (tok/s, 2 copies together) by concurrency per copy": {"measured": 8, "predicted": 7},
        "Time to first token, p95 (ms) by concurrency per copy": {"p95": 8, "predicted": 7},
        "Time per output token, p95 (ms) by concurrency per copy": {"p95": 8, "predicted": 7},
        "Time to first token, mean (ms) by concurrency per copy": {"measured": 8, "predicted": 7},
        "Time per output token, mean (ms) by concurrency per copy": {"measured": 8, "predicted": 7},
        "End-to-end latency, mean (ms) by concurrency per copy": {"measured": 8, "predicted": 7},
    }


def test_the_void_level_is_hollow_in_every_curve(look: Look) -> None:
    assert [figure.hollow for figure in look.figures] == [2, 1, 1, 1, 1, 1, 1]


def test_no_name_leaves_its_picture(look: Look) -> None:
    assert {figure.title: figure.outside for figure in look.figures if figure.outside} == {}
    assert min(figure.width for figure in look.figures) > 300


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


@pytest.mark.parametrize("width", ["375", "1280"])
def test_no_text_overflows(look: Look, width: str) -> None:
    assert look.overflow[width] == []


def test_the_dark_scheme_applies(look: Look) -> None:
    assert (look.light, look.dark) == ("rgb(255, 255, 255)", "rgb(18, 23, 29)")


def test_it_prints(look: Look) -> None:
    assert 5 <= look.pdf_pages <= 20


def test_headings_are_in_order_and_every_landmark_is_there(look: Look) -> None:
    assert look.headings == [1, *[2] * 14]
    assert look.landmarks == ["header", "nav", "main", "footer"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_of_accessibility_is_broken(look: Look, scheme: str) -> None:
    assert look.accessibility[scheme] == []
