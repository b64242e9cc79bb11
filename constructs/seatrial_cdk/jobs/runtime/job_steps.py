"""The steps of the workflow that creates a job and follows it to its end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypedDict

from seatrial_cdk.jobs.runtime.jobs import (
    ENDED,
    LONGEST_REASON,
    JobState,
    NotFoundError,
    attempt_name,
    state_of,
    told,
)

if TYPE_CHECKING:
    from seatrial_cdk.jobs.runtime.jobs import JobCalls, JobPlace

SHORTEST_WAIT_S: Final = 2
LONGEST_WAIT_S: Final = 300
SHARE: Final = 0.25
"""The next look is after this share of a job's age: a bad source is seen soon, and a long job asked seldom."""


class JobOrder(TypedDict):
    """The job and the attempt that an execution makes."""

    Digest: str
    Name: str
    RoleArn: str
    Request: str
    Attempt: int


class Next(TypedDict):
    """What follows."""

    Next: str
    Seconds: int
    Order: JobOrder


def create(order: JobOrder, cloud: JobCalls, place: JobPlace) -> Next:
    """Create the attempt, or find it there."""
    name = attempt_name(order["Name"], order["Attempt"])
    output = {"S3OutputLocation": place.uri(order["Digest"], order["Attempt"]), "KmsKeyId": place.key_arn}
    request = json.loads(order["Request"])
    cloud.create_job({"OptimizationJobName": name, "RoleArn": order["RoleArn"], "OutputConfig": output, **request})
    return {"Next": "wait", "Seconds": SHORTEST_WAIT_S, "Order": order}


def poll(order: JobOrder, cloud: JobCalls, place: JobPlace) -> Next:
    """Tell where the attempt stands."""
    described = cloud.describe_job(attempt_name(order["Name"], order["Attempt"]))
    state = state_of(place, order["Digest"], order["Attempt"], described)
    told(cloud, place, order["Digest"], state)
    if state.state in ENDED:
        return {"Next": "end", "Seconds": 0, "Order": order}
    return {"Next": "wait", "Seconds": _wait_s(state), "Order": order}


def refused(order: JobOrder, why: str, cloud: JobCalls, place: JobPlace) -> Next:
    """Tell why the attempt could not be created."""
    attempt, digest = order["Attempt"], order["Digest"]
    name = attempt_name(order["Name"], attempt)
    state = JobState(name, attempt, "FAILED", place.uri(digest, attempt), failure_reason=f"{why}"[:LONGEST_REASON])
    try:
        cloud.describe_job(name)
    except NotFoundError:
        told(cloud, place, digest, state)
    return {"Next": "end", "Seconds": 0, "Order": order}


def _wait_s(state: JobState) -> int:
    if not state.created:
        return SHORTEST_WAIT_S
    age_s = (datetime.now(UTC) - datetime.fromisoformat(state.created)).total_seconds()
    return round(min(LONGEST_WAIT_S, max(SHORTEST_WAIT_S, SHARE * age_s)))
