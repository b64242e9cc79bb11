from __future__ import annotations

import pytest

from seatrial_laptop.aws.alarms import AlarmRule, StateValue, alarm_rule
from seatrial_laptop.aws.runtime.telemetry import KEPT_S, MetricHistory, metric_dimensions, statistic

CHAT = frozenset({("InferenceComponentName", "chat")})
OTHER = frozenset({("InferenceComponentName", "other")})
X, O = 9.0, 1.0  # noqa: E741 (breaches and doesn't, as CloudWatch's tables write it)


def rule(*, missing: str = "missing", periods: int = 5, datapoints: int = 3, statistic: str = "Maximum") -> AlarmRule:
    return AlarmRule("ModelLatency", CHAT, statistic, 60.0, periods, datapoints, 5.0, "GreaterThanThreshold", missing)


@pytest.mark.parametrize(
    ("datapoints", "missing", "state"),
    [
        ([O, X, X, O, X], "missing", "ALARM"),
        ([O, X, O, O, X], "missing", "OK"),
        ([None, None, X, None, None], "missing", "ALARM"),
        ([None, None, None, X, None], "missing", "OK"),
        ([O, None, X, None, None], "missing", "ALARM"),
        ([None, None, X, O, None], "missing", "OK"),
        ([None] * 5, "missing", "INSUFFICIENT_DATA"),
        ([None] * 5, "ignore", None),
        ([None] * 5, "breaching", "ALARM"),
        ([None] * 5, "notBreaching", "OK"),
        ([None, None, X, None, None], "ignore", None),
        ([None, None, X, None, None], "breaching", "ALARM"),
        ([None, None, X, None, None], "notBreaching", "OK"),
        ([None, X, X, None, X], "notBreaching", "ALARM"),
        ([O, None, None, None, None], "ignore", "OK"),
    ],
)
def test_m_of_n_datapoints_and_missing_ones(datapoints: list[float | None], missing: str, state: str | None) -> None:
    assert rule(missing=missing).state(datapoints) == state


@pytest.mark.parametrize(
    ("comparison", "at_threshold"),
    [
        ("GreaterThanThreshold", "OK"),
        ("GreaterThanOrEqualToThreshold", "ALARM"),
        ("LessThanThreshold", "OK"),
        ("LessThanOrEqualToThreshold", "ALARM"),
    ],
)
def test_the_threshold_itself_belongs_to_one_side(comparison: str, at_threshold: str) -> None:
    one = AlarmRule("ModelLatency", CHAT, "Sum", 60.0, 1, 1, 5.0, comparison)
    assert one.state([5.0]) == StateValue(at_threshold)


def test_a_rule_sees_its_own_metric_in_whole_periods() -> None:
    history = MetricHistory()
    for end_s in range(10, 190, 10):
        history.add(CHAT, end_s, {"ModelLatency": [float(end_s), 0.0]})
        history.add(OTHER, end_s, {"ModelLatency": [1e9]})
    looked = rule(periods=3)
    assert looked.look(history, 185.0) == [60.0, 120.0, 180.0]
    assert looked.look(history, 239.9) == [60.0, 120.0, 180.0]
    assert looked.look(history, 240.0) == [120.0, 180.0, None]
    assert looked.look(history, 59.0) == [None, None, None]


def test_samples_are_kept_for_three_hours() -> None:
    history = MetricHistory()
    history.add(CHAT, 10.0, {"ModelLatency": [1.0]})
    history.add(CHAT, 20.0 + KEPT_S, {"ModelLatency": [2.0]})
    assert [each.end_s for each in history.samples(CHAT, after_s=0, until_s=1e6)] == [20.0 + KEPT_S]
    history.forget(CHAT)
    assert history.samples(CHAT, after_s=0, until_s=1e6) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("Sum", 10.0), ("Average", 2.5), ("Maximum", 4.0), ("Minimum", 1.0), ("SampleCount", 4.0)],
        *[("p50", 2.5), ("p90", 3.7), ("p100", 4.0), ("p0", 1.0)],
    ],
)
def test_statistics(name: str, value: float) -> None:
    assert statistic(name, [3.0, 1.0, 4.0, 2.0]) == pytest.approx(value)
    assert statistic(name, []) is None


@pytest.mark.parametrize("name", ["tm90", "p", "p101", "IQM", "pp9"])
def test_a_statistic_that_is_not_computed_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"no statistic {name}"):
        statistic(name, [1.0])


def test_an_alarm_is_read_as_cloudwatch_keeps_it() -> None:
    alarm = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "ModelLatency",
        "Dimensions": [{"Name": "InferenceComponentName", "Value": "chat"}],
        "Statistic": "Average",
        "ExtendedStatistic": "p95",
        "Period": 60,
        "EvaluationPeriods": 5,
        "DatapointsToAlarm": 3,
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
    }
    assert alarm_rule(alarm) == rule(missing="notBreaching", statistic="p95")
    found = alarm_rule({**alarm, "Period": 1, "ExtendedStatistic": None})
    assert found is not None
    assert (found.period_s, found.statistic) == (10.0, "Average")
    assert alarm_rule({**alarm, "ComparisonOperator": "GreaterThanUpperThreshold"}) is None
    assert alarm_rule({**alarm, "ExtendedStatistic": "tm90"}) is None
    assert metric_dimensions([]) == frozenset()
