"""The latency-throughput curve and the panels over concurrency: what they draw, name and say."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.bench.prior import PredictedLevel, Prior
from seatrial.bench.request import Objective
from seatrial.bench.result import Knee
from seatrial.report.chart.panel import Box, Label, Panel, Series
from seatrial.report.curves import curves_section
from seatrial.report.marks import LONGEST, marks_of
from seatrial.report.page import page_of

if TYPE_CHECKING:
    from seatrial.bench.result import Detector, TrialResult
    from seatrial.plan.document import Plan

SVG = "{http://www.w3.org/2000/svg}"
DETECTORS: tuple[Detector, ...] = ("slo", "half_latency", "kneedle", "two_segment", "theory")


def panels_of(result: TrialResult, plan: Plan | None) -> dict[str, Panel]:
    return {panel.anchor: panel for panel in curves_section(result, plan).panels}


def drawn(panel: Panel) -> ET.Element:
    return ET.fromstring(panel.svg)  # noqa: S314 (our own text)


def test_the_trade_joins_throughput_and_latency_of_every_level(real: TrialResult, plan: Plan) -> None:
    p50, p95, predicted = panels_of(real, plan)["latency-throughput"].series
    assert [series.name for series in (p50, p95, predicted)] == ["measured p50", "measured p95", "predicted p95"]
    for (x, y), level in zip(p95.points, real.levels, strict=True):
        assert level.e2e_latency_ms
        assert (x, y) == (level.output_tok_s, level.e2e_latency_ms.p95)
    # one copy is predicted, two are measured
    assert predicted.points[0] == (2 * plan.curve[0].output_tok_s, plan.curve[0].e2e_latency_p95_ms)


def test_the_band_of_the_trade_reaches_to_both_sides(real: TrialResult, plan: Plan) -> None:
    box = panels_of(real, plan)["latency-throughput"].boxes[0]
    x, y = 2 * plan.curve[0].output_tok_s, plan.curve[0].e2e_latency_p95_ms
    assert box == Box(x / 1.2, x * 1.2, y / 1.2, y * 1.2)  # the plan's ±20 %


def test_gate_and_knees_are_named_at_their_points(rich: TrialResult, plan: Plan) -> None:
    texts = [label.text for label in panels_of(rich, plan)["latency-throughput"].labels]
    assert texts == [
        "1",
        "2",
        "4",
        "8",
        "16 · gate · knee (kneedle, half_latency)",
        "24 · knee (two_segment)",
        "32 · knee (slo)",
        "64",
    ]


def test_the_description_tells_the_curve_to_those_who_do_not_see_it(rich: TrialResult, plan: Plan) -> None:
    described = panels_of(rich, plan)["latency-throughput"].description
    assert described.startswith("p95 by output throughput, with the concurrency per copy: 8,641 ms at 89.8 tok/s (1), ")
    assert described.endswith("21,977 ms at 990 tok/s (64, void).")


def test_a_void_level_is_hollow_and_not_joined(rich: TrialResult, plan: Plan) -> None:
    throughput = panels_of(rich, plan)["throughput"].series[0]
    assert throughput.hollow == {64}
    assert [len(run) for run in throughput.runs] == [7]
    circles = [circle.get("class") for circle in drawn(panels_of(rich, plan)["throughput"]).iter(f"{SVG}circle")]
    assert circles.count("symbol first void") == 1


def test_that_a_point_is_void_is_said(rich: TrialResult, real: TrialResult, plan: Plan) -> None:
    assert "Hollow points are void" in curves_section(rich, plan).paragraphs[0]
    assert "Hollow" not in curves_section(real, plan).paragraphs[0]


def test_a_bound_on_throughput_stands_upright_in_the_trade(real: TrialResult) -> None:
    objective = Objective(metric="output_tok_s", statistic="value", bound=800.0, sense="at_least")
    result = replace(real, request=replace(real.request, objectives=(objective,)))
    (mark,) = panels_of(result, None)["latency-throughput"].marks
    assert (mark.at, mark.label, mark.kind) == (800.0, "SLO ≥ 800 tok/s", "bound")


def test_without_a_plan_the_prior_is_drawn_without_a_band(real: TrialResult) -> None:
    levels = tuple(
        PredictedLevel(concurrency=at, output_tok_s=40.0 * at, ttft_p95_ms=100.0, e2e_mean_ms=6000.0) for at in (1, 8)
    )
    result = replace(real, request=replace(real.request, prior=Prior(levels=levels, batch_limit=28)))
    panels = panels_of(result, None)
    assert panels["throughput"].series[1].points == ((1, 80.0), (8, 640.0))  # two copies
    assert panels["throughput"].bands == ()
    assert panels["latency-throughput"].series[2].name == "predicted mean"
    assert panels["tpot"].series[-1].name == "p95"  # the prior says nothing of it


def test_a_prior_says_nothing_of_a_local_engine(local: TrialResult) -> None:
    level = PredictedLevel(concurrency=1, output_tok_s=40.0, ttft_p95_ms=100.0, e2e_mean_ms=6000.0)
    result = replace(local, request=replace(local.request, prior=Prior(levels=(level,))))
    assert [series.name for series in panels_of(result, None)["throughput"].series] == ["measured"]


def test_many_detectors_at_one_place_take_more_than_one_row(real: TrialResult) -> None:
    knees = tuple(Knee(detector=name, concurrency=16, because="") for name in DETECTORS)
    marks = marks_of(replace(real, knees=knees))
    assert [mark.label for mark in marks] == [
        "gate and knee (slo) at 16",
        "knee (half_latency) at 16",
        "knee (kneedle) at 16",
        "knee (two_segment) at 16",
        "knee (theory) at 16",
    ]


@given(st.lists(st.sampled_from(DETECTORS), unique=True), st.sampled_from([1, 16, 512]), st.sampled_from([1, 16, 512]))
def test_every_detector_is_named_once_and_no_label_is_too_long(
    real: TrialResult, found: list[Detector], at: int, gate: int
) -> None:
    knees = tuple(Knee(detector=name, concurrency=at, because="") for name in found)
    result = replace(real, knees=knees, request=replace(real.request, gate_concurrency=gate))
    labels = [mark.label for mark in marks_of(result)]
    assert sorted(name for label in labels for name in DETECTORS if f"{name}" in label) == sorted(found)
    assert sum("gate" in label for label in labels) == 1
    assert max(len(label) for label in labels) <= LONGEST


@pytest.mark.parametrize("crowd", [1, 3, 12])
def test_names_of_points_neither_overlap_nor_leave_the_paper(crowd: int) -> None:
    points = tuple((900.0 + 10 * index, 5000.0 + 20 * index) for index in range(crowd))
    labels = tuple(
        Label(x, y, f"{index} · gate · knee (kneedle, half_latency)", "knee") for index, (x, y) in enumerate(points[:3])
    )
    panel = Panel(
        anchor="a",
        title="T",
        unit="ms",
        description="d",
        series=(Series("p95", "first", points),),
        labels=(*labels, *(Label(x, y, "plain name") for x, y in points)),
        over="throughput",
        wide=True,
    )
    texts = [one for one in drawn(panel).iter(f"{SVG}text") if str(one.get("class")).startswith("point-label")]
    assert len([one for one in texts if one.get("class") == "point-label knee"]) == len(labels)
    boxes = [(float(one.get("x", "")), float(one.get("y", "")), 6.1 * len(one.text or "")) for one in texts]
    assert all(left >= 0 and left + width <= 440 for left, _, width in boxes)
    for (left, y, width), (other_left, other_y, other_width) in itertools.combinations(boxes, 2):
        assert abs(y - other_y) >= 10 or left + width <= other_left or other_left + other_width <= left


@pytest.fixture
def opened(real: TrialResult) -> TrialResult:
    """Return a trial of an open loop: two rates have the same mean in flight."""
    offered = ((0.5, 1), (1.0, 1), (2.0, 4))
    levels = tuple(
        replace(real.levels[index], concurrency=concurrency, arrival="poisson", offered_requests_per_s=rate)
        for index, (rate, concurrency) in enumerate(offered)
    )
    knees = (Knee(detector="slo", concurrency=1, because=""), Knee(detector="theory", concurrency=28, because=""))
    load = replace(real.request.load, arrival="poisson", rates_per_s=(0.5, 1.0, 2.0))
    return replace(real, levels=levels, knees=knees, request=replace(real.request, load=load))


def test_an_open_loop_is_drawn_over_the_rate_that_it_offered(opened: TrialResult, plan: Plan) -> None:
    panels = panels_of(opened, plan)
    assert panels["ttft"].over == "rate"
    assert [x for x, _ in panels["ttft"].series[0].points] == [0.5, 1.0, 2.0]
    assert [series.name for series in panels["throughput"].series] == ["measured"]  # the plan predicts a closed loop
    assert [mark.label for mark in panels["ttft"].marks] == ["knee (slo) at 0.5/s", "gate at 2/s"]
    assert panels["throughput"].description.startswith(
        "output throughput by offered requests per second: 89.8 tok/s at"
    )
    texts = [text.text for text in drawn(panels["ttft"]).iter(f"{SVG}text")]
    assert "offered load (requests/s, log₂)" in texts
    assert [label.text for label in panels["latency-throughput"].labels] == ["0.5/s · knee (slo)", "1/s", "2/s · gate"]
    assert "named by its rate offered" in curves_section(opened, plan).paragraphs[0]


def test_the_key_figures_of_an_open_loop_are_those_of_its_highest_rate(opened: TrialResult) -> None:
    throughput = page_of(opened, None).key_figures[1]
    assert throughput.aside == "at 2 requests/s offered"
    assert throughput.value.exact == str(opened.levels[-1].output_tok_s)
