from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest
from botocore import exceptions

from seatrial_load.aws.cloudwatch import Measured, overhead_of, service_overhead
from seatrial_load.documents.request import TrialTarget
from seatrial_load.documents.result import ServiceOverhead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient

START = datetime(2026, 11, 21, 12, 0, 40, tzinfo=UTC)
MEASURED = Measured(start=START, end=START + timedelta(seconds=95), requests=30, mean_ms=1250.0, streamed=False)
COMPONENT = TrialTarget(endpoint_name="chat", inference_component="chat-copy", region="eu-west-1")
VARIANT = replace(COMPONENT, inference_component=None)
TWO_MINUTES = {
    "model_sum": [24_000_000.0, 12_000_000.0],
    "model_count": [20.0, 10.0],
    "overhead_sum": [600_000.0, 300_000.0],
    "overhead_count": [20.0, 10.0],
}


@dataclass
class FakeCloudWatch:
    """Answers with the given values and keeps what it was asked."""

    values: Mapping[str, Sequence[float]]
    refusal: Exception | None = None
    asked: dict[str, object] = field(default_factory=dict)

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's names)
        StartTime: datetime,  # noqa: N803 (likewise)
        EndTime: datetime,  # noqa: N803 (likewise)
    ) -> dict[str, object]:
        if self.refusal is not None:
            raise self.refusal
        self.asked = {"queries": MetricDataQueries, "start": StartTime, "end": EndTime}
        return {"MetricDataResults": [{"Id": name, "Values": list(found)} for name, found in self.values.items()]}


@dataclass
class Clock:
    now: datetime
    slept_s: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)


def ask(
    target: TrialTarget,
    cloudwatch: FakeCloudWatch,
    *,
    after_s: float = 0.0,
    patience_s: float = 70.0,
    variant: str = "",
) -> tuple[ServiceOverhead, list[float]]:
    clock = Clock(MEASURED.end + timedelta(seconds=after_s))
    overhead = service_overhead(
        target,
        MEASURED,
        variant_name=variant or None,
        patience_s=patience_s,
        cloudwatch=cast("CloudWatchClient", cloudwatch),
        now=lambda: clock.now,
        sleep=clock.sleep,
    )
    return overhead, clock.slept_s


def test_overhead_is_the_clients_mean_less_the_models() -> None:
    """36 s of ModelLatency over 30 invocations are 1,200 ms each; the client saw 1,250 ms."""
    assert overhead_of(MEASURED, TWO_MINUTES) == ServiceOverhead(
        client_mean_ms=1250.0,
        model_latency_mean_ms=1200.0,
        overhead_latency_mean_ms=30.0,
        overhead_ms=50.0,
        because="CloudWatch means over the minutes of the measurement, 30 invocations",
    )


def test_other_invocations_in_the_same_minutes_are_told() -> None:
    because = overhead_of(replace(MEASURED, requests=28), TWO_MINUTES).because
    assert because == (
        "CloudWatch means over the minutes of the measurement, 30 invocations; the trial sent 28: they include "
        "warm-up, failed or other clients' requests, or the last minute is missing"
    )


def test_of_a_stream_it_is_told_what_is_not_known() -> None:
    because = overhead_of(replace(MEASURED, streamed=True), TWO_MINUTES).because
    assert because.endswith("; AWS does not document whether ModelLatency of a stream ends with its first or last part")


def test_without_a_mean_of_the_client_there_is_no_overhead() -> None:
    told = overhead_of(replace(MEASURED, mean_ms=None), TWO_MINUTES)
    assert (told.overhead_ms, told.model_latency_mean_ms) == (None, 1200.0)


@pytest.mark.parametrize("found", [{}, {"model_sum": [], "model_count": []}])
def test_what_cloudwatch_does_not_have_is_missing(found: dict[str, list[float]]) -> None:
    assert overhead_of(MEASURED, found) == ServiceOverhead(
        client_mean_ms=1250.0,
        model_latency_mean_ms=None,
        overhead_latency_mean_ms=None,
        overhead_ms=None,
        because="CloudWatch has no ModelLatency datapoint for that time yet",
    )


def test_a_component_is_asked_for_by_its_name_over_whole_minutes() -> None:
    cloudwatch = FakeCloudWatch(TWO_MINUTES)
    overhead, _ = ask(COMPONENT, cloudwatch)
    assert overhead.overhead_ms == 50.0
    assert cloudwatch.asked["start"] == datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
    assert cloudwatch.asked["end"] == datetime(2026, 11, 21, 12, 3, tzinfo=UTC)
    assert cloudwatch.asked["queries"] == [
        {
            "Id": name,
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/SageMaker",
                    "MetricName": metric,
                    "Dimensions": [{"Name": "InferenceComponentName", "Value": "chat-copy"}],
                },
                "Period": 60,
                "Stat": stat,
            },
        }
        for name, metric, stat in (
            ("model_sum", "ModelLatency", "Sum"),
            ("model_count", "ModelLatency", "SampleCount"),
            ("overhead_sum", "OverheadLatency", "Sum"),
            ("overhead_count", "OverheadLatency", "SampleCount"),
        )
    ]


@pytest.mark.parametrize(
    ("target", "variant"), [(VARIANT, "AllTraffic"), (replace(VARIANT, target_variant="AllTraffic"), "")]
)
def test_without_a_component_it_is_endpoint_and_variant(target: TrialTarget, variant: str) -> None:
    cloudwatch = FakeCloudWatch(TWO_MINUTES)
    ask(target, cloudwatch, variant=variant)
    assert "{'Name': 'EndpointName', 'Value': 'chat'}, {'Name': 'VariantName', 'Value': 'AllTraffic'}" in str(
        cloudwatch.asked["queries"]
    )


@pytest.mark.parametrize(
    ("after_s", "patience_s", "slept_s"), [(0.0, 70.0, 70.0), (50.0, 70.0, 20.0), (0.0, 12.0, 12.0), (100.0, 70.0, 0.0)]
)
def test_it_waits_for_late_datapoints_as_long_as_it_may(after_s: float, patience_s: float, slept_s: float) -> None:
    _, slept = ask(COMPONENT, FakeCloudWatch(TWO_MINUTES), after_s=after_s, patience_s=patience_s)
    assert slept == [slept_s]


@pytest.mark.parametrize(
    ("target", "because"),
    [
        (VARIANT, "the endpoint has no inference component, and the name of its variant is unknown"),
        (replace(VARIANT, kind="openai"), "this server does not report to CloudWatch"),
    ],
)
def test_what_cannot_be_asked_is_not_waited_for(target: TrialTarget, because: str) -> None:
    overhead, slept = ask(target, FakeCloudWatch(TWO_MINUTES))
    assert (overhead.because, overhead.model_latency_mean_ms, slept) == (because, None, [])


def test_a_refusal_of_cloudwatch_is_data() -> None:
    denied = exceptions.ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetMetricData")
    overhead, _ = ask(COMPONENT, FakeCloudWatch({}, refusal=denied))
    assert overhead.overhead_ms is None
    assert overhead.because == (
        "CloudWatch did not respond: An error occurred (AccessDenied) when calling the GetMetricData operation: no"
    )
