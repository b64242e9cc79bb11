from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from botocore.exceptions import EndpointConnectionError

from seatrial_load.aws.cloudwatch import users_load
from seatrial_load.documents.request import TrialTarget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient

    from seatrial_load.documents.result import UsersLoad

UNTIL = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)
TARGET = TrialTarget(endpoint_name="chat", inference_component="chat-copy", region="eu-west-1")


@dataclass
class Counted:
    """A CloudWatch that knows how many requests users sent."""

    values: list[float]
    error: Exception | None = None
    asked: list[tuple[Sequence[Mapping[str, object]], datetime, datetime]] = field(default_factory=list)

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's names)
        StartTime: datetime,  # noqa: N803 (likewise)
        EndTime: datetime,  # noqa: N803 (likewise)
    ) -> dict[str, object]:
        self.asked.append((MetricDataQueries, StartTime, EndTime))
        if self.error is not None:
            raise self.error
        return {"MetricDataResults": [{"Id": "users", "Values": self.values}]}


def load_of(cloudwatch: Counted, target: TrialTarget = TARGET) -> UsersLoad:
    return users_load(target, until=UNTIL, cloudwatch=cast("CloudWatchClient", cloudwatch))


def test_the_highest_of_the_last_minutes_counts() -> None:
    cloudwatch = Counted([1.5, 6.25, 2.0])
    users = load_of(cloudwatch)
    assert users.concurrency_per_copy == 6.25
    assert users.because == "CloudWatch ConcurrentRequestsPerCopy: at most 6.25 per copy in the 300 s before the trial"
    ((query,), start, end) = cloudwatch.asked[0]
    assert (start, end) == (UNTIL - timedelta(minutes=5), UNTIL)
    assert query["MetricStat"] == {
        "Metric": {
            "Namespace": "AWS/SageMaker",
            "MetricName": "ConcurrentRequestsPerCopy",
            "Dimensions": [{"Name": "InferenceComponentName", "Value": "chat-copy"}],
        },
        "Period": 10,
        "Stat": "Maximum",
    }


def test_a_load_of_zero_is_known() -> None:
    assert load_of(Counted([0.0, 0.0])).concurrency_per_copy == 0.0


def test_no_datapoint_is_unknown_and_not_zero() -> None:
    users = load_of(Counted([]))
    assert users.concurrency_per_copy is None
    assert "no ConcurrentRequestsPerCopy datapoint" in users.because


def test_a_cloudwatch_that_does_not_answer_is_unknown() -> None:
    error = EndpointConnectionError(endpoint_url="https://monitoring.example")
    users = load_of(Counted([], error))
    assert users.concurrency_per_copy is None
    assert f"{error}" in users.because


def test_an_endpoint_without_components_is_not_asked_for() -> None:
    cloudwatch = Counted([1.0])
    users = load_of(cloudwatch, replace(TARGET, inference_component=None))
    assert (users.concurrency_per_copy, cloudwatch.asked) == (None, [])
