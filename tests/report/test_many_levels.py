"""A trial of many levels: what is written grows with them no faster than its tables, and what is left out is told."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from seatrial.report.charts import load_charts
from seatrial.report.document.levels import distribution_charts, time_charts
from seatrial.report.document.page import render_json
from seatrial.report.values import MOST_DRAWN, drawn
from seatrial_load.documents.strict_json import write_document
from tests.report.rich import rich_level, rich_request
from tests.report.samples import concluded

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import TrialResult

MANY = 3 * MOST_DRAWN


@pytest.fixture(scope="module")
def many(plan: Plan) -> TrialResult:
    return concluded(rich_request(plan), [rich_level(concurrency) for concurrency in range(1, MANY + 1)], "")


def test_so_many_curves_are_drawn_as_can_be_told_apart(many: TrialResult) -> None:
    charts = (*distribution_charts(many), *time_charts(many))
    assert len(charts) == 6
    for chart in charts:
        assert len(chart.series) == MOST_DRAWN
        assert chart.description.endswith(f"Of {MANY} levels, {MOST_DRAWN} are drawn; the table has all.")


def test_the_first_and_the_last_level_are_drawn(many: TrialResult) -> None:
    for chart in (*distribution_charts(many), *time_charts(many)):
        assert chart.series[0].name.startswith("concurrency 1")
        assert chart.series[-1].name.startswith(f"concurrency {MANY}")


def test_the_charts_over_the_load_have_every_level_and_a_few_ticks(many: TrialResult) -> None:
    for chart in load_charts(many, None):
        assert len(chart.series[0].points) == MANY
        assert len(chart.x.ticks) <= MOST_DRAWN


@pytest.mark.parametrize("count", [0, 1, 2, MOST_DRAWN - 1, MOST_DRAWN, MOST_DRAWN + 1, 1000])
def test_what_is_drawn_is_in_order_and_without_repetition(count: int) -> None:
    chosen = drawn(range(count))
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) == min(count, MOST_DRAWN)
    assert not count or (chosen[0], chosen[-1]) == (0, count - 1)


def test_a_result_is_written_as_dataclasses_and_json_do(many: TrialResult) -> None:
    text = write_document(many)
    assert text == json.dumps(dataclasses.asdict(many), separators=(",", ":"), allow_nan=False)
    assert render_json(many) == json.dumps(json.loads(text), indent=2) + "\n"
