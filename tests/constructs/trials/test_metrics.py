"""The line against the specification of the embedded metric format (Amazon CloudWatch user guide)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.trials.runtime.report import UNITS, metrics_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import TrialResult

NOW_S = 1_763_690_000.25
SOME_UNITS = {"Seconds", "Milliseconds", "Count", "Count/Second", "Percent", "None"}
"""Of those that MetricDatum of the CloudWatch API knows."""


def test_a_trial_that_passed(passed: TrialResult) -> None:
    assert json.loads(metrics_line(passed, now_s=NOW_S)) == {
        "_aws": {
            "Timestamp": 1_763_690_000_250,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Seatrial",
                    "Dimensions": [["Endpoint", "Environment"]],
                    "Metrics": [
                        {"Name": "TtftP95Ms", "Unit": "Milliseconds"},
                        {"Name": "TpotP95Ms", "Unit": "Milliseconds"},
                        {"Name": "E2eP95Ms", "Unit": "Milliseconds"},
                        {"Name": "OutputTokensPerSecond", "Unit": "Count/Second"},
                        {"Name": "KneeConcurrencyPerCopy", "Unit": "Count"},
                        {"Name": "ErrorRate", "Unit": "None"},
                        {"Name": "UsdPerMillionOutputTokens", "Unit": "None"},
                        {"Name": "Passed", "Unit": "Count"},
                    ],
                }
            ],
        },
        "Endpoint": "chat",
        "Environment": "dev",
        "TtftP95Ms": 812.25,
        "TpotP95Ms": 45.5,
        "E2eP95Ms": 45.5,
        "OutputTokensPerSecond": 410.5,
        "KneeConcurrencyPerCopy": 16,
        "ErrorRate": 0.0,
        "UsdPerMillionOutputTokens": 1.0251725,
        "Passed": 1,
    }


@pytest.mark.parametrize("status", ["fail", "inconclusive"])
def test_what_is_not_a_pass_counts_0(
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult], status: Literal["fail", "inconclusive"]
) -> None:
    assert json.loads(metrics_line(missed(status), now_s=NOW_S))["Passed"] == 0


def test_what_was_not_measured_is_no_metric(passed: TrialResult) -> None:
    failed = replace(passed.verdict, status="fail")
    result = replace(passed, levels=(), target_detector=None, usd_per_million_output_tokens=None, verdict=failed)
    root = json.loads(metrics_line(result, now_s=NOW_S))
    assert [metric["Name"] for metric in root["_aws"]["CloudWatchMetrics"][0]["Metrics"]] == ["Passed"]
    assert set(root) == {"_aws", "Endpoint", "Environment", "Passed"}


def test_the_specification_is_kept(passed: TrialResult) -> None:
    line = metrics_line(passed, now_s=NOW_S)
    assert "\n" not in line, "one event of the log is one line, with nothing before or behind the object"
    assert len(line.encode()) < 256 * 1024
    root = json.loads(line)
    assert isinstance(root["_aws"]["Timestamp"], int), "milliseconds since the epoch"
    (directive,) = root["_aws"]["CloudWatchMetrics"]
    assert set(directive) == {"Namespace", "Dimensions", "Metrics"}
    (dimensions,) = directive["Dimensions"]
    assert len(dimensions) <= 30
    assert all(isinstance(root[name], str) and 0 < len(root[name]) <= 1024 for name in dimensions)
    assert 0 < len(directive["Metrics"]) <= 100
    for metric in directive["Metrics"]:
        assert set(metric) == {"Name", "Unit"}
        assert metric["Unit"] in SOME_UNITS
        assert isinstance(root[metric["Name"]], (int, float))


def test_each_metric_has_its_unit() -> None:
    assert set(UNITS.values()) <= SOME_UNITS
