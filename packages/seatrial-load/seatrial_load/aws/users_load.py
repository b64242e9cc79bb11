"""What users send to a component while it is tried in place: CloudWatch's concurrent requests per copy.

Facts (AWS documentation, "Amazon SageMaker AI metrics in Amazon CloudWatch"): `ConcurrentRequestsPerCopy` in namespace
`AWS/SageMaker`, by `InferenceComponentName`, a datapoint every 10 s: the concurrent requests that a component receives,
over its copies.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from seatrial_load.aws.cloudwatch import cloudwatch_client, cloudwatch_errors, dimensions_of, metric_query
from seatrial_load.model.result import UsersLoad

if TYPE_CHECKING:
    from datetime import datetime

    from seatrial_load.aws.cloudwatch import CloudWatch
    from seatrial_load.model.request import TrialTarget


METRIC = "ConcurrentRequestsPerCopy"
PERIOD_S = 10
WINDOW_S = 300
"""Seconds before the trial's first request that are looked at."""


def users_load(target: TrialTarget, *, until: datetime, cloudwatch: CloudWatch | None = None) -> UsersLoad:
    """Ask for the highest number of concurrent requests per copy of the last minutes.

    Args:
        target: The endpoint; users' load is known of an inference component only.
        until: The time of day before the trial's first request, in UTC.
        cloudwatch: CloudWatch's client; made by boto3 for the target's region when not given.

    Returns:
        The load; an unknown one, with the reason, where there is no datapoint or CloudWatch can't be asked.
    """
    if target.kind != "sagemaker" or target.inference_component is None:
        return _unknown("the endpoint has no inference component that CloudWatch counts requests of")
    dimensions = dimensions_of(target) or []
    query = metric_query("users", METRIC, "Maximum", dimensions, period_s=PERIOD_S)
    try:
        client = cloudwatch_client(target.region) if cloudwatch is None else cloudwatch
        answer = client.get_metric_data(
            MetricDataQueries=[query], StartTime=until - timedelta(seconds=WINDOW_S), EndTime=until
        )
    except cloudwatch_errors() as refused:
        return _unknown(f"CloudWatch did not answer: {refused}")
    values = [value for result in answer["MetricDataResults"] for value in result["Values"]]
    window = f"the {WINDOW_S} s before the trial"
    if not values:
        return _unknown(f"CloudWatch has no {METRIC} datapoint of {window}")
    highest = max(values)
    return UsersLoad(
        concurrency_per_copy=highest,
        because=f"CloudWatch {METRIC}: at most {highest:g} per copy in {window}",
    )


def not_asked() -> UsersLoad:
    """Say that users' load is unknown, since nobody asks CloudWatch."""
    return _unknown("CloudWatch is not asked")


def _unknown(because: str) -> UsersLoad:
    return UsersLoad(concurrency_per_copy=None, because=f"the users' load is unknown: {because}")
