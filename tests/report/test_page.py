from __future__ import annotations

import base64
import csv
import io
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.report.charts import scripts, source_hash
from seatrial.report.document.page import page_of, render_csv, render_html, render_json
from seatrial.report.document.prediction import prediction_beside
from seatrial_base.units import usd
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.documents.result import TrialResult
from tests.report.reading import Tables

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.plan import Plan


MINUS = "\N{MINUS SIGN}"


def test_a_page_tells_endpoint_environment_and_verdict_first(real_page: str) -> None:
    assert "<title>✓ Pass: sample-chat in dev – Seatrial</title>" in real_page
    place = real_page.index('<p class="verdict pass"><strong>✓ Pass:</strong> <span>All 3 objectives met; 96 of 96')
    assert real_page.index("<h1>sample-chat in dev</h1>") < place < real_page.index("<main>")


def test_every_throughput_cell_is_the_value_of_the_json(rich: TrialResult, rich_page: str) -> None:
    rows = Tables(rich_page).by_caption["Requests and throughput by level, 2 copies together"]
    read = TrialResult.from_json(rich.to_json()).levels
    assert [[float(exact) for _, exact in row[:7]] for row in rows] == [
        [
            level.concurrency,
            level.requests,
            level.error_rate,
            level.output_tok_s,
            level.total_tok_s,
            level.requests_per_s,
            level.goodput_requests_per_s,
        ]
        for level in read
    ]


def test_every_percentile_cell_is_the_value_of_the_json(real: TrialResult, real_page: str) -> None:
    rows = Tables(real_page).by_caption["End-to-end latency, ms"]
    for row, level in zip(rows, TrialResult.from_json(real.to_json()).levels, strict=True):
        values = level.e2e_latency_ms
        assert values
        exact = [values.mean, values.p50, values.p90, values.p95, values.p99, values.max]
        assert [float(exact) for _, exact in row] == [level.concurrency, values.count, *exact]


def test_an_interval_stands_below_its_value(rich_page: str) -> None:
    # 207 ms is the mean of the level at 16; its interval was made up as 0.94 and 1.07 times it
    assert (
        '<data value="207.0">207</data> <small class="interval"><data value="194.57999999999998">195</data>–<data '
        'value="221.49">221</data></small>'
    ) in rich_page
    assert '<small class="interval">≥ <data value="315.0333">315</data></small>' in rich_page  # p99 has no upper end


def test_every_shown_number_rounds_its_exact_one(real_page: str) -> None:
    for caption in ("Time to first token (TTFT), ms", "End-to-end latency per output token, ms"):
        for text, exact in (cell for row in Tables(real_page).by_caption[caption] for cell in row):
            assert float(text.replace(",", "")) == pytest.approx(float(exact), rel=0.005)


def test_the_checks_stand_beside_their_bounds(real_page: str) -> None:
    texts = [
        [text for text, _ in row] for row in Tables(real_page).by_caption["Objectives, measured against their bounds"]
    ]
    assert texts == [
        ["TTFT p95", "≤ 2,000 ms", "315.0 ms", "✓ met"],  # (61.4 + 9.1 × 16) × 1.5219
        ["TPOT p95", "≤ 60 ms", "47.6 ms", "✓ met"],  # (21.37 + 0.62 × 16) × 1.5219
        ["error rate", "≤ 1 %", "0.00 %", "✓ met"],
    ]


def test_a_page_is_the_same_each_time(real: TrialResult, plan: Plan, real_page: str) -> None:
    assert render_html(real, plan) == real_page


def test_a_page_needs_nothing_from_elsewhere(real_page: str) -> None:
    for script in scripts():
        real_page = real_page.replace(script, "")
    assert re.findall(r"https?://[^\s\"'<>]*", real_page) == []
    assert not re.findall(r"<(link|img|iframe|object|embed)|@import|url\(|<script src| on\w+=", real_page)


def test_only_the_two_scripts_of_the_page_may_run(real_page: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', real_page)
    hashes = " ".join(map(source_hash, scripts())).replace("'", "&#39;")
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}"
    assert re.findall(r"<script(?! type=.application/json.)[^>]*>", real_page) == ["<script>", "<script>"]


def test_every_id_is_unique_and_every_link_leads_to_one(rich_page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', rich_page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', rich_page)) <= set(ids)


def test_every_chart_carries_its_data(rich: TrialResult, plan: Plan, rich_page: str) -> None:
    page = page_of(rich, plan)
    charts = [chart for section in (*page.sections, *page.details) for chart in section.charts]
    assert len(charts) == 4 + 3 + 3 + 3  # over the load, of distributions, over time, predicted means
    data = re.findall(r'<script type="application/json">(.*?)</script>', rich_page)
    assert [json.loads(one)["anchor"] for one in data] == [chart.anchor for chart in charts]


def test_without_the_chart_library_the_page_says_so_and_keeps_its_tables(
    rich: TrialResult, plan: Plan, rich_page: str, tmp_path: Path
) -> None:
    page = render_html(rich, plan, library=tmp_path / "plot.min.js")
    assert "run “make install”" in page
    assert "<script" not in page
    assert "<figure" not in page
    assert "script-src &#39;none&#39;" in page
    assert Tables(page).by_caption == Tables(rich_page).by_caption


def test_what_decides_is_open_and_the_rest_is_folded(rich: TrialResult, plan: Plan) -> None:
    page = page_of(rich, plan)
    assert [section.anchor for section in page.sections] == ["curve", "slo", "cost", "levels", "comparison"]
    assert [section.anchor for section in page.details] == [
        "latencies",
        "time",
        "failures",
        "prediction",
        "knee",
        "measurement",
        "level-cost",
        "compared",
        "client",
        "service",
        "live",
        "decisions",
        "reproduce",
    ]


def test_an_empty_section_is_left_out(empty: TrialResult) -> None:
    page = page_of(empty, None)
    assert [section.anchor for section in (*page.sections, *page.details)] == [
        "curve",
        "slo",
        "levels",
        "knee",
        "live",
        "reproduce",
    ]


def test_the_downloads_are_the_result_and_its_levels(rich: TrialResult, plan: Plan, rich_page: str) -> None:
    names = {download.name: download.uri for download in page_of(rich, plan).downloads}
    files = {name: base64.b64decode(uri.partition(",")[2]).decode() for name, uri in names.items()}
    assert TrialResult.from_json(files["report.json"]) == rich
    assert files["report.json"] == render_json(rich)
    rows = list(csv.DictReader(io.StringIO(files["report.csv"])))
    assert [int(row["concurrency"]) for row in rows] == [level.concurrency for level in rich.levels]
    assert rich.levels[4].ttft_ms
    assert float(rows[4]["ttft_ms_p95"]) == rich.levels[4].ttft_ms.p95
    assert float(rows[4]["ttft_ms_p95_low"]) == rich.levels[4].ttft_ms.intervals["p95"].low
    assert rows[4]["ttft_ms_p99_high"] == ""
    assert all(uri in rich_page.replace("&#43;", "+") for uri in names.values())


def test_a_csv_without_a_level_has_its_headings(empty: TrialResult) -> None:
    assert render_csv(empty).startswith("concurrency,")
    assert len(render_csv(empty).splitlines()) == 1


def test_every_table_has_a_caption_and_scopes(real_page: str) -> None:
    assert real_page.count("<table") == real_page.count("<caption>") == 16
    assert not re.search(r"<th(?![^>]*scope=)[ >]", real_page)


def test_a_cell_says_its_heading_on_a_phone(real_page: str) -> None:
    assert '<th role="rowheader" scope="row" data-label="concurrency (per copy)">' in real_page
    assert 'data-label="TTFT p95 (ms)"' in real_page


def test_predicted_stands_beside_measured_of_a_real_endpoint(real: TrialResult, plan: Plan, real_page: str) -> None:
    row = Tables(real_page).by_caption["Predicted and measured by level"][-1]
    predicted, measured, difference = row[1:4]
    assert float(predicted[1]) == plan.curve[-1].output_tok_s  # 28 × 256000 / (28 × 9 + 70 + 255 × 36.8) = 738.5
    assert predicted[0] == "739"
    assert float(measured[1]) == pytest.approx((real.levels[-1].output_tok_s or 0) / 2)  # both copies give 990.0
    assert measured[0] == "495"
    assert difference[0] == f"{MINUS}33.0 % outside"  # 495.0 / 738.5 - 1, and the plan states ±20 %


def test_a_predicted_p95_stands_beside_the_measured_p95(real: TrialResult, plan: Plan, real_page: str) -> None:
    row = Tables(real_page).by_caption["Predicted and measured by level, 95th percentiles"][0]
    measured = real.levels[0].ttft_ms
    assert measured
    assert [float(exact) for _, exact in row[1:3]] == [plan.curve[0].ttft_p95_ms, measured.p95]
    assert row[3][0] == f"{MINUS}3.0 %"  # 70.5 × 1.5219 / (79 × 1.4) - 1


def test_the_band_and_the_regime_of_the_prediction_are_told(plan: Plan, real_page: str, local_page: str) -> None:
    for page in (real_page, local_page):
        assert f"Band: throughput ±20 %, latency ±20 % (assumed). {plan.band.because}" in page
        assert plan.regime.sentence in page


def test_the_band_of_a_calibrated_plan_says_by_how_many_points(real: TrialResult, plan: Plan) -> None:
    because = "Calibrated by 2 measured points of this endpoint."
    shares = {"throughput": 0.04, "latency": 0.06, "points": 2}
    band = plan.band.model_copy(update={**shares, "measured": True, "because": because})
    calibrated = plan.model_copy(update={"band": band})
    result = replace(real, request=replace(real.request, plan_digest=calibrated.digest))
    page = render_html(result, calibrated)
    assert f"Band: throughput ±4 %, latency ±6 % (measured). {because}" in page
    row = Tables(page).by_caption["Predicted and measured by level"][0]
    assert row[6][0] == f"{MINUS}10.8 % outside"  # 70.5 / 79 - 1: within ±20 %, and not within ±6 %


def test_ttft_has_a_wider_band_of_its_own_where_left_out_rows_gave_it(real: TrialResult, plan: Plan) -> None:
    band = plan.band.model_copy(update={"throughput": 0.04, "latency": 0.06, "measured": True})
    earned = plan.model_copy(update={"band": band})
    page = render_html(replace(real, request=replace(real.request, plan_digest=earned.digest)), earned)

    assert "Band: throughput ±4 %, latency ±6 %, TTFT ±90 % (measured)." in page
    assert "prediction ±90%" in page
    row = Tables(page).by_caption["Predicted and measured by level"][0]
    assert row[6][0] == f"{MINUS}10.8 %"  # of TTFT


def test_a_difference_within_the_band_is_not_marked(real_page: str) -> None:
    row = Tables(real_page).by_caption["Predicted and measured by level"][0]
    assert row[4:7] == [("79.0", "79.0"), ("70.5", "70.5"), (f"{MINUS}10.8 %", "")]  # 70.5 / 79 - 1


def test_a_real_endpoint_has_a_measured_cost(real: TrialResult, real_page: str) -> None:
    row = Tables(real_page).by_caption["Cost, planned and measured"][-2]
    cost = real.usd_per_million_output_tokens
    assert cost == pytest.approx(0.5027, abs=1e-4)  # 1.212 USD per hour / (3600 × 1339.4 / 2 tok/s) × 10⁶
    assert row[:2] == [("measured, per million output tokens", ""), (usd(cost or 0), str(cost))]


def test_a_discount_is_told_with_the_price(real: TrialResult, plan: Plan) -> None:
    discounted = plan.model_copy(update={"cost": plan.cost.model_copy(update={"discount": 0.2})})
    result = replace(real, request=replace(real.request, plan_digest=discounted.digest))
    assert "Price: AWS price list, 2026-10-01, less the spec&#39;s discount of 20.0 %." in render_html(
        result, discounted
    )
    assert "Price: AWS price list, 2026-10-01." in render_html(real, plan)
    elsewhere = plan.model_copy(update={"cost": plan.cost.model_copy(update={"price_region": "us-east-1"})})
    result = replace(real, request=replace(real.request, plan_digest=elsewhere.digest))
    assert "2026-10-01 (the price of us-east-1: this region&#39;s is not known)." in render_html(result, elsewhere)


def test_a_local_engine_is_named_before_any_number(local_page: str) -> None:
    caution = local_page.index('<p class="caution" role="note">Local engine: ')
    assert "“local-cpu-random-llama (not the model named)”" in local_page
    assert caution < local_page.index("<dl")


def test_a_local_engine_is_not_compared_with_the_prediction(local_page: str) -> None:
    assert "Predicted and measured" not in local_page
    assert "difference" not in local_page
    assert "Prediction for the GPU" in local_page
    data = [json.loads(one) for one in re.findall(r'<script type="application/json">(.*?)</script>', local_page)]
    names = {series["name"] for chart in data if chart["anchor"].startswith("predicted") for series in chart["series"]}
    assert names == {"predicted"}


def test_beside_a_local_engine_that_calibrated_the_plan_it_is_said_what_both_are_of(
    real: TrialResult, local: TrialResult, plan: Plan
) -> None:
    assert "local-cpu-random-llama (not the model named)" in prediction_beside(local, plan).paragraphs[1]
    assert "local engine" not in "".join(prediction_beside(real, plan).paragraphs)


def test_a_local_engine_gives_no_cost(local: TrialResult, local_page: str) -> None:
    rows = Tables(local_page).by_caption["Cost, planned and measured"]
    assert [row[0][0].partition(",")[0] for row in rows] == ["planned"] * 4
    assert str(local.usd_per_million_output_tokens) not in local_page  # but in the JSON, which stands as base64


def test_what_came_over_the_network_is_shown_and_not_obeyed(hopeless: TrialResult, plan: Plan) -> None:
    page = render_html(hopeless, plan)
    assert "<script>alert" not in page
    assert "HTTP 424: &lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;" in page
    Tables(page)


def test_a_missing_value_is_a_dash_with_its_reason(hopeless: TrialResult, plan: Plan) -> None:
    page = render_html(hopeless, plan)
    row = Tables(page).by_caption["Time to first token (TTFT), ms"][0]
    assert row == [("16", "16"), *[("–", "")] * 7]
    assert page.count('<abbr title="no request succeeded at 16">–</abbr>') >= 16
    assert "<li>no request succeeded at 16</li>" in page


def test_every_decision_is_shown_with_its_reason(plan: Plan, real_page: str) -> None:
    rows = {
        name[0]: (value[0], because[0])
        for name, value, because in Tables(real_page).by_caption["Decisions of the plan"]
    }
    assert rows["max num seqs"] == ("28", "The KV cache holds 28 sequences of 512 tokens.")
    assert rows["image"] == (plan.image.value.uri, plan.image.because)
    assert rows["concurrency levels"] == ("1, 2, 4, 8, 16, 32, 64", "Powers of two up to four times the gate.")
    assert rows["inference ami version"][0] == "–"
    assert rows["surge instances"] == ("2", "An update doubles the copies.")
    assert len(rows) == 22


def test_the_request_can_be_copied_from_the_page(real: TrialResult, real_page: str) -> None:
    written = re.findall(r"<pre tabindex=.0.>(.*?)</pre>", real_page, re.DOTALL)
    assert (
        written[0] == "seatrial bench SPEC --environment dev --levels 1,2,4,8,16,32,64 --start together --output report"
    )
    request = written[1].replace("&#34;", '"')
    assert read_trial_request(request) == real.request
