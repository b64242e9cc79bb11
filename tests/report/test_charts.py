"""The charts over the load, of distributions and over time: what they draw, mark and say."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import RatePoint
from seatrial.report.charts import (
    LIBRARY,
    SCRIPT,
    Axis,
    Chart,
    ChartPoint,
    Mark,
    Region,
    Series,
    load_charts,
    scripts,
    source_hash,
)
from seatrial.report.document.levels import curves_section, distribution_charts, time_charts
from seatrial.report.document.page import page_of
from seatrial.report.document.prediction import comparison_tables
from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_load.documents.request import Objective, PredictedLevel, Prior
from seatrial_load.documents.result import Knee

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import Detector, TrialResult


def by_anchor(charts: Iterable[Chart]) -> dict[str, Chart]:
    return {chart.anchor: chart for chart in charts}


def places(series: Series) -> list[tuple[float, float | None]]:
    return [(point.x, point.y) for point in series.points]


def with_knee(result: TrialResult, concurrency: int, detector: Detector = "two_segment") -> TrialResult:
    """Return the result with a knee that sets the target, after others that don't."""
    knees = (*result.knees, Knee(detector=detector, concurrency=concurrency, because=""))
    return replace(result, knees=knees, target_detector=detector)


def test_the_main_chart_joins_throughput_and_latency_of_every_level(real: TrialResult, plan: Plan) -> None:
    p50, p95, predicted = by_anchor(load_charts(real, plan))["latency-throughput"].series
    assert [series.name for series in (p50, p95, predicted)] == ["measured p50", "measured p95", "predicted p95"]
    for (x, y), level in zip(places(p95), real.levels, strict=True):
        assert level.e2e_latency_ms
        assert (x, y) == (level.output_tok_s, level.e2e_latency_ms.p95)
    # one copy is predicted, two are measured
    assert places(predicted)[0] == (2 * plan.curve[0].output_tok_s, plan.curve[0].e2e_latency_p95_ms)


def test_the_band_of_the_main_chart_goes_round_the_predicted_curve(real: TrialResult, plan: Plan) -> None:
    (outline,) = by_anchor(load_charts(real, plan))["latency-throughput"].outlines
    x, y = 2 * plan.curve[0].output_tok_s, plan.curve[0].e2e_latency_p95_ms
    assert outline.points[0] == (x / 1.2, y * 1.2)  # the plan's ±20 %: slower on one side
    assert outline.points[-1] == (x * 1.2, y / 1.2)  # faster on the other
    assert len(outline.points) == 2 * len(plan.curve)


def test_error_bars_are_the_intervals_of_the_result(rich: TrialResult, plan: Plan) -> None:
    charts = by_anchor(load_charts(rich, plan))
    level = rich.levels[4]
    assert level.ttft_ms
    assert level.output_tok_s_interval
    p95 = charts["ttft"].series[1].points[4]
    assert (p95.low, p95.high) == (level.ttft_ms.intervals["p95"].low, level.ttft_ms.intervals["p95"].high)
    both = charts["latency-throughput"].series[1].points[4]
    assert (both.x_low, both.x_high) == (level.output_tok_s_interval.low, level.output_tok_s_interval.high)
    assert p95.hover == "concurrency 16\np95 315 ms (296–337)"
    assert charts["throughput"].series[0].points[4].hover == "concurrency 16\n997 tok/s (967–1,027)"


def test_only_the_knee_that_sets_the_target_is_marked(rich: TrialResult, plan: Plan) -> None:
    assert [knee.concurrency for knee in rich.knees] == [32, 16, 16, 24, 28]
    charts = by_anchor(load_charts(replace(rich, target_detector="two_segment"), plan))
    assert charts["ttft"].marks == (Mark(16, "gate 16", "gate"), Mark(24, "knee 24", "knee"))
    labels = [point.label for point in charts["latency-throughput"].series[1].points]
    assert labels == ["1", "2", "4", "8", "16 = gate", "24 = knee", "32", "64"]


def test_a_knee_at_the_gate_is_one_mark(rich: TrialResult, plan: Plan) -> None:
    charts = by_anchor(load_charts(replace(rich, target_detector="half_latency"), plan))
    assert charts["tpot"].marks == (Mark(16, "knee = gate 16", "knee"),)
    assert charts["latency-throughput"].series[1].points[4].label == "16 = knee and gate"


def test_a_knee_between_two_levels_is_marked_on_the_curve(real: TrialResult) -> None:
    charts = by_anchor(load_charts(with_knee(real, 12), None))
    eight, sixteen = (level for level in real.levels if level.concurrency in {8, 16})
    assert eight.output_tok_s
    assert sixteen.output_tok_s
    assert eight.e2e_latency_ms
    assert sixteen.e2e_latency_ms
    middle = (eight.output_tok_s + sixteen.output_tok_s) / 2  # 12 lies half way between 8 and 16
    latency = (eight.e2e_latency_ms.p95 + sixteen.e2e_latency_ms.p95) / 2
    (dot,) = charts["latency-throughput"].dots
    assert dot.x == pytest.approx(middle)
    assert dot.y == pytest.approx(latency)
    assert dot.label == "knee 12 (between levels)"
    assert Mark(12, "knee 12", "knee") in charts["throughput"].marks


@pytest.mark.parametrize("concurrency", [16, 100])
def test_a_knee_on_a_level_or_beyond_all_needs_no_place_on_the_curve(real: TrialResult, concurrency: int) -> None:
    assert by_anchor(load_charts(with_knee(real, concurrency), None))["latency-throughput"].dots == ()


def test_a_target_that_comes_from_no_knee_marks_none(real: TrialResult) -> None:
    charts = by_anchor(load_charts(replace(real, target_detector=None), None))
    assert charts["throughput"].marks == (Mark(16, "gate 16", "gate"),)
    assert "knee" not in curves_section(replace(real, target_detector=None), None).paragraphs[0]


def test_the_slo_is_a_region_of_the_chart_that_it_binds(real: TrialResult) -> None:
    charts = by_anchor(load_charts(real, None))
    assert charts["ttft"].regions == (Region("within SLO: p95 ≤ 2,000 ms", 2000.0, "at_most"),)
    assert charts["tpot"].regions == (Region("within SLO: p95 ≤ 60 ms", 60.0, "at_most"),)
    assert charts["throughput"].regions == ()
    objective = Objective(metric="output_tok_s", statistic="value", bound=800.0, sense="at_least")
    charts = by_anchor(load_charts(replace(real, request=replace(real.request, objectives=(objective,))), None))
    assert charts["throughput"].regions == (Region("within SLO: ≥ 800 tok/s", 800.0, "at_least"),)
    assert charts["latency-throughput"].regions[0].upright


def test_every_bounded_statistic_has_its_curve(real: TrialResult) -> None:
    objectives = (
        Objective(metric="e2e_latency_ms", statistic="p99", bound=9000.0, sense="at_most"),
        Objective(metric="ttft_ms", statistic="p90", bound=900.0, sense="at_most"),
    )
    charts = by_anchor(load_charts(replace(real, request=replace(real.request, objectives=objectives)), None))
    assert [series.name for series in charts["ttft"].series] == ["p50", "p95", "p90"]
    assert [series.name for series in charts["end-to-end-latency"].series] == ["p50", "p95", "p99"]
    assert charts["latency-throughput"].regions == (Region("within SLO: p99 ≤ 9,000 ms", 9000.0, "at_most"),)


def test_a_void_level_is_hollow(rich: TrialResult, plan: Plan) -> None:
    for chart in load_charts(rich, plan):
        assert [point.void for point in chart.series[0].points] == [*[""] * 7, "void"]
    assert "(void)" in by_anchor(load_charts(rich, plan))["ttft"].series[0].points[-1].hover


def test_the_description_tells_the_chart_to_those_who_do_not_see_it(rich: TrialResult, plan: Plan) -> None:
    described = by_anchor(load_charts(rich, plan))["latency-throughput"].description
    assert described.startswith("p95 by concurrency per copy: 8,641 ms at 1, ")
    assert described.endswith("21,977 ms at 64 (void).")


def test_without_a_plan_the_prior_is_drawn_without_a_band(real: TrialResult) -> None:
    levels = tuple(
        PredictedLevel(concurrency=at, output_tok_s=40.0 * at, ttft_p95_ms=100.0, e2e_mean_ms=6000.0) for at in (1, 8)
    )
    result = replace(real, request=replace(real.request, prior=Prior(levels=levels, batch_limit=28)))
    charts = by_anchor(load_charts(result, None))
    assert places(charts["throughput"].series[1]) == [(1, 80.0), (8, 640.0)]  # two copies
    assert charts["throughput"].bands == ()
    assert charts["latency-throughput"].series[2].name == "predicted mean"
    assert charts["tpot"].series[-1].name == "p95"  # the prior says nothing of it


def test_a_prior_says_nothing_of_a_local_engine(local: TrialResult) -> None:
    level = PredictedLevel(concurrency=1, output_tok_s=40.0, ttft_p95_ms=100.0, e2e_mean_ms=6000.0)
    result = replace(local, request=replace(local.request, prior=Prior(levels=(level,))))
    assert [series.name for series in by_anchor(load_charts(result, None))["throughput"].series] == ["measured"]


def test_what_gave_no_value_has_no_chart(real: TrialResult, empty: TrialResult) -> None:
    silent = tuple(replace(level, ttft_ms=None) for level in real.levels)
    assert "ttft" not in by_anchor(load_charts(replace(real, levels=silent), None))
    assert load_charts(empty, None) == ()


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
    return replace(real, levels=levels, knees=knees, target_detector="slo", request=replace(real.request, load=load))


def test_an_open_loop_is_drawn_over_the_rate_that_it_offered(opened: TrialResult, plan: Plan) -> None:
    charts = by_anchor(load_charts(opened, plan))
    assert charts["ttft"].x == Axis(label="offered load, requests/s", scale="log2", ticks=(0.5, 1.0, 2.0))
    assert [x for x, _ in places(charts["ttft"].series[0])] == [0.5, 1.0, 2.0]
    assert [series.name for series in charts["throughput"].series] == ["measured"]  # the plan predicts a closed loop
    assert charts["ttft"].marks[0].label == "gate 2/s"
    assert charts["throughput"].description.startswith(
        "output throughput by offered requests per second: 89.8 tok/s at"
    )


def test_the_rates_of_an_open_loop_stand_beside_those_of_the_plan(opened: TrialResult, plan: Plan) -> None:
    """The plan has half and all of the rate; the trial's gate is its last one."""
    figures = dict.fromkeys(RatePoint.model_fields, 1.0)
    rates = tuple(
        RatePoint(**{**figures, "requests_per_second": rate, "ttft_ms": ttft_ms})
        for rate, ttft_ms in ((4.0, 90.0), (8.0, 120.0))
    )
    load = replace(opened.request.load, gate_rate_per_s=2.0)
    gated = replace(opened, request=replace(opened.request, load=load))
    means, _ = comparison_tables(gated, plan.model_copy(update={"rates": rates}))

    assert [row[4].text for row in means.rows] == ["–", "90.0", "120"]


def test_a_knee_of_an_open_loop_stands_at_a_rate(opened: TrialResult) -> None:
    knees = (Knee(detector="slo", concurrency=2, because=""),)  # a third of the way from 1 (at 1/s) to 4 (at 2/s)
    (_, knee) = by_anchor(load_charts(replace(opened, knees=knees), None))["ttft"].marks
    assert knee.at == pytest.approx(4 / 3)


def test_the_key_figures_of_an_open_loop_are_those_of_its_highest_rate(opened: TrialResult) -> None:
    throughput = page_of(opened, None).key_figures[1]
    assert throughput.aside == "at 2 requests/s offered"
    assert throughput.value.exact == str(opened.levels[-1].output_tok_s)


def test_a_distribution_is_the_histogram_of_its_level(rich: TrialResult) -> None:
    charts = by_anchor(distribution_charts(rich))
    assert set(charts) == {"cdf-ttft-ms", "cdf-tpot-ms", "cdf-e2e-latency-ms"}
    series = charts["cdf-ttft-ms"].series
    assert [one.name for one in series][-2:] == ["concurrency 32", "concurrency 64 (void)"]
    level = rich.levels[4]
    assert level.ttft_ms
    shares = {point.y: point.x for point in series[4].points}
    assert shares[0.5] == pytest.approx(level.ttft_ms.p50, rel=0.01)
    assert shares[0.95] == pytest.approx(level.ttft_ms.p95, rel=0.02)
    assert [point.x for point in series[4].points] == sorted(point.x for point in series[4].points)


def test_without_a_histogram_there_is_no_distribution(real: TrialResult) -> None:
    assert distribution_charts(real) == ()


def test_levels_follow_each_other_over_time_as_they_were_measured(rich: TrialResult) -> None:
    charts = by_anchor(time_charts(rich))
    assert set(charts) == {"time-throughput", "time-ttft", "time-in-flight"}
    throughput = charts["time-throughput"]
    assert [mark.label for mark in throughput.marks] == [str(step.concurrency) for step in rich.search]
    assert [mark.at for mark in throughput.marks] == [24.0 * index for index in range(8)]
    first = next(level for level in rich.levels if level.concurrency == 16)
    assert first.timeline
    assert [point.y for point in throughput.series[0].points] == list(first.timeline.output_tokens)  # bins of 1 s
    assert throughput.series[1].points[0].x == 24.5


def test_tokens_of_a_bin_are_a_rate(rich: TrialResult) -> None:
    level = rich.levels[0]
    assert level.timeline
    halved = replace(rich, levels=(replace(level, timeline=replace(level.timeline, bin_s=0.5)),), search=())
    points = time_charts(halved)[0].series[0].points
    assert points[4].y == level.timeline.output_tokens[4] / 0.5


def test_a_result_without_a_timeline_has_no_chart_over_time(real: TrialResult) -> None:
    assert time_charts(real) == ()


def test_the_data_of_a_chart_is_json_that_ends_no_element() -> None:
    series = (
        Series(name="</script><!--", points=(ChartPoint(x=1, y=None, hover="<b>"), ChartPoint(x=2, y=3.0, hover=""))),
    )
    chart = Chart(anchor="a", title="t", description="d", x=Axis(label="x"), y=Axis(label="y"), series=series)
    assert "<" not in chart.data
    read = json.loads(chart.data)
    assert read["series"][0]["name"] == "</script><!--"
    assert read["series"][0]["points"][0] == {"x": 1, "hover": "<b>"}


def test_no_number_of_a_chart_is_infinite(rich: TrialResult, plan: Plan) -> None:
    for chart in (*load_charts(rich, plan), *distribution_charts(rich), *time_charts(rich)):
        assert all(math.isfinite(point.x) for series in chart.series for point in series.points)


def test_the_legend_names_curves_band_and_slo_once(real: TrialResult, plan: Plan) -> None:
    legend = list(by_anchor(load_charts(real, plan))["ttft"].legend)
    assert legend == [
        ("first", "0%", "p50"),
        ("second", "0%", "p95"),
        ("predicted", "0%", "predicted p95"),
        ("band", "0%", "prediction ±20%"),
        ("region", "0%", "within SLO: p95 ≤ 2,000 ms"),
    ]


def test_the_library_was_built_into_this_checkout() -> None:
    assert LIBRARY.is_file(), "make install builds it"
    library, script = scripts()
    assert script == SCRIPT.read_text(encoding="utf-8")
    assert "@observablehq/plot 0.6.17: Copyright" in library
    assert "Permission to use, copy, modify, and/or distribute" in library
    assert len(library) + len(script) < 300_000


def test_the_scripts_pass_the_page_unchanged() -> None:
    for script in scripts():
        assert printable(redacted(script)) == script
        assert "</script" not in script.lower()


def test_a_script_is_allowed_by_its_hash() -> None:
    # echo -n 'alert(1)' | openssl dgst -sha256 -binary | base64
    assert source_hash("alert(1)") == "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
