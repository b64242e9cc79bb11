"""An alarm on the real server sees its own component's metrics only, and MiniStack leaves it alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3

from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def state(name: str) -> str:
    return str(boto3.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"][0]["StateValue"])


def test_an_alarm_follows_the_latency_of_its_component_which_has_no_first_chunks(
    laptop: Laptop, host: str, chat: str, control: Callable[..., dict[str, object]]
) -> None:
    names = {whose: laptop.name("latency") for whose in (chat, "another")}
    cloudwatch = boto3.client("cloudwatch")
    for whose, name in names.items():
        cloudwatch.put_metric_alarm(
            AlarmName=name,
            Namespace="AWS/SageMaker",
            MetricName="ModelLatency",
            Dimensions=[{"Name": "InferenceComponentName", "Value": whose}],
            ExtendedStatistic="p95",
            Period=10,
            EvaluationPeriods=1,
            Threshold=0.0,
            ComparisonOperator="GreaterThanThreshold",
            TreatMissingData="ignore",
        )
    control(clock_speed=60)
    body = json.dumps({"inputs": "hi", "stream": True, "parameters": {"max_new_tokens": 2}})
    answer = laptop.runtime.invoke_endpoint_with_response_stream(
        EndpointName=host, InferenceComponentName=chat, Body=body, ContentType="application/json"
    )
    assert list(answer["Body"]) != []
    until(lambda: state(names[chat]) == "ALARM", "the alarm")
    assert state(names["another"]) == "INSUFFICIENT_DATA"
    published = cloudwatch.list_metrics(Dimensions=[{"Name": "InferenceComponentName", "Value": chat}])["Metrics"]
    assert not [each["MetricName"] for each in published if each["MetricName"].startswith("FirstChunk")]
    history = cloudwatch.describe_alarm_history(AlarmName=names[chat])["AlarmHistoryItems"]
    assert "Alarm updated from INSUFFICIENT_DATA to ALARM" in [item["HistorySummary"] for item in history]
    cloudwatch.delete_alarms(AlarmNames=list(names.values()))
