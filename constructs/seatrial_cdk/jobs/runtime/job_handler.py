"""The one function of an environment's optimization jobs: each of its tasks is told by the form of its event."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, cast

from seatrial_cdk.jobs.runtime.job_calls import Aws
from seatrial_cdk.jobs.runtime.job_requests import JobAnswer, artifacts_answer, job_answer, start_again
from seatrial_cdk.jobs.runtime.job_steps import Next, create, poll, refused
from seatrial_cdk.jobs.runtime.jobs import JobPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_cdk.jobs.runtime.job_requests import JobEvent
    from seatrial_cdk.jobs.runtime.job_steps import JobOrder
    from seatrial_cdk.jobs.runtime.jobs import JobCalls

    Respond: TypeAlias = Callable[[str, bytes], None]

PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)
TIMEOUT_S: Final = 10.0
LONGEST_REASON: Final = 900  # consoles show 1 KB of a reason; the answer as a whole may have 4 KB

_cloud: Final = cache(Aws)
"""A warm function has its clients, which take long to make."""


class StepEvent(TypedDict):
    """A step of the workflow."""

    Step: str
    Order: JobOrder
    Failure: Mapping[str, str]


class StartEvent(TypedDict):
    """A job that `seatrial jobs start` asks for, by its digest."""

    Start: str
    RequestId: str


def handler(event: JobEvent | StepEvent | StartEvent, _context: object) -> Next | dict[str, str] | None:
    """Do one task in this function's region."""
    place = JobPlace(os.environ["BUCKET"], os.environ["KEY_ARN"], os.environ["PARAMETERS"])
    return dispatch(event, _cloud(place.bucket, os.environ["STATE_MACHINE"]), place, put_answer)


def dispatch(
    event: JobEvent | StepEvent | StartEvent, cloud: JobCalls, place: JobPlace, respond: Respond
) -> Next | dict[str, str] | None:
    """Do the task of an event: a request of CloudFormation, a step, or a start by hand."""
    if "Step" in event:
        return _step(cast("StepEvent", event), cloud, place)
    if "Start" in event:
        asked = cast("StartEvent", event)
        state = start_again(asked["Start"], asked["RequestId"], cloud, place)
        return {"Job": state.job, "State": state.state}
    _answer(event, cloud, place, respond)
    return None


def _step(event: StepEvent, cloud: JobCalls, place: JobPlace) -> Next:
    if event["Step"] == "create":
        return create(event["Order"], cloud, place)
    if event["Step"] == "poll":
        return poll(event["Order"], cloud, place)
    return refused(event["Order"], _why(event["Failure"]), cloud, place)


def _why(failure: Mapping[str, str]) -> str:
    """Return the message of a step that failed; AWS Step Functions tells it as JSON."""
    cause = failure.get("Cause", failure.get("Error", "unknown"))
    try:
        document = json.loads(cause)
    except ValueError:
        return cause
    return f"{document.get('errorMessage', cause)}" if isinstance(document, dict) else cause


def _answer(event: JobEvent, cloud: JobCalls, place: JobPlace, respond: Respond) -> None:
    properties = event["ResourceProperties"]
    try:
        if properties["Phase"] == "job":
            given = job_answer(event, cloud, place)
        else:
            given = artifacts_answer(event, cloud, place, now=datetime.now(UTC))
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: CloudFormation must learn of any failure)
        print(f"{error!r}")  # noqa: T201 (the function's log)
        given = JobAnswer({}, f"The optimization job's request failed: {error!r}")
    body: dict[str, object] = {
        "Status": "SUCCESS" if given.failed_because is None else "FAILED",
        "PhysicalResourceId": f"{properties['Phase']}-{properties['Name']}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {**given.data},
    }
    if given.failed_because is not None:
        body["Reason"] = given.failed_because[:LONGEST_REASON]
    respond(event["ResponseURL"], json.dumps(body).encode())


def put_answer(url: str, body: bytes) -> None:
    """Put an answer to CloudFormation's presigned URL, again and again for a while when it is not taken.

    Raises:
        OSError: It was not taken; Lambda then calls again.
    """
    request = urllib.request.Request(url, body, {"Content-Type": ""}, method="PUT")  # noqa: S310 (of CloudFormation)
    for pause_s in (*PAUSES_S, None):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 (of CloudFormation)
                return
        except OSError:
            if pause_s is None:
                raise
            time.sleep(pause_s)
