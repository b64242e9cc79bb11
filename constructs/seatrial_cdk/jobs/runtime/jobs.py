"""Optimization jobs by the name of their content: the attempts of one, where it writes, and its published state.

The first attempt has the name, a later one its number behind it. A completed attempt whose artifacts are there is never
made again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    Document = Mapping[str, object]
    from collections.abc import Mapping


COMPLETED: Final = "COMPLETED"
RUNNING: Final = ("STARTING", "INPROGRESS")
ENDED: Final = (COMPLETED, "FAILED", "STOPPED")
FOLDER: Final = "optimized"
LONGEST_REASON: Final = 500
S_PER_HOUR: Final = 3600.0

NOT_STARTED: Final = "NOT STARTED"
LONGEST_EXECUTION_NAME: Final = 80
DIGITS: Final = 16
SHORTEST_WAIT_S: Final = 2
LONGEST_WAIT_S: Final = 300
SHARE: Final = 0.25
"""The next look is after this share of a job's age: a bad source is seen soon, and a long job is polled seldom."""


class NotFoundError(Exception):
    """There is no such job or parameter."""


class JobCalls(Protocol):
    """The calls of AWS that are made here."""

    def describe_job(self, name: str) -> Document:
        """Return a job.

        Raises:
            NotFoundError: There is none.
        """

    def create_job(self, request: Document) -> None:
        """Create a job; one that is there stays as it is."""

    def stop_job(self, name: str) -> None:
        """Stop a job; one that has ended stays as it is."""

    def has_objects(self, prefix: str) -> bool:
        """Return whether the bucket has an object under a prefix."""

    def write_parameter(self, name: str, text: str) -> None:
        """Write a parameter."""

    def read_parameter(self, name: str) -> str:
        """Return a parameter.

        Raises:
            NotFoundError: There is none.
        """

    def start_workflow(self, name: str, order: Document) -> None:
        """Start an execution; one of this name stays as it is."""

    def stop_workflows(self, prefix: str) -> None:
        """Stop the executions whose names begin so."""


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where jobs write, and where their state is published.

    Attributes:
        bucket: The bucket of the artifacts.
        key_arn: Key of the artifacts.
        parameters: Path of the parameters, as `/seatrial/dev/optimizations`.
    """

    bucket: str
    key_arn: str
    parameters: str

    def prefix(self, digest: str, attempt: int) -> str:
        """Return where an attempt writes, with its final slash."""
        return f"{FOLDER}/{digest}/{attempt}/"

    def uri(self, digest: str, attempt: int) -> str:
        """Return the same as an S3 URI."""
        return f"s3://{self.bucket}/{self.prefix(digest, attempt)}"

    def parameter(self, digest: str) -> str:
        """Return the name of the parameter of a job's state."""
        return f"{self.parameters}/{digest}"

    def request_parameter(self, digest: str) -> str:
        """Return the name of the parameter that keeps a deployment's request."""
        return f"{self.parameter(digest)}/request"


@dataclass(frozen=True, slots=True)
class JobState:
    """The published state of a job, in its parameter.

    Attributes:
        job: Name of the last attempt.
        attempt: Its number, counted from 1.
        state: As SageMaker reports it; `NOT STARTED` when there is no attempt.
        artifact_s3_uri: Where it writes.
        recommended_image: What SageMaker recommends; empty before it is completed.
        created: When it was created, ISO 8601; empty before.
        failure_reason: Why it failed; empty otherwise.
    """

    job: str
    attempt: int
    state: str
    artifact_s3_uri: str
    recommended_image: str = ""
    created: str = ""
    failure_reason: str = ""

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), sort_keys=True)


def attempt_name(name: str, attempt: int) -> str:
    """Return the name of an attempt."""
    return name if attempt == 1 else f"{name}-{attempt}"


def last_attempt(cloud: JobCalls, place: JobPlace, name: str, digest: str) -> tuple[JobState, Document] | None:
    """Return the last attempt of a job with its description; `None` when there is none."""
    last = None
    for attempt in count(1):
        try:
            described = cloud.describe_job(attempt_name(name, attempt))
        except NotFoundError:
            return last
        last = state_of(place, digest, attempt, described), described
    return last


def state_of(place: JobPlace, digest: str, attempt: int, described: Document) -> JobState:
    """Return the state of a described job."""
    output = described.get("OptimizationOutput")
    image = output.get("RecommendedInferenceImage", "") if isinstance(output, dict) else ""
    created = described.get("CreationTime")
    return JobState(
        job=f"{described['OptimizationJobName']}",
        attempt=attempt,
        state=f"{described['OptimizationJobStatus']}",
        artifact_s3_uri=place.uri(digest, attempt),
        recommended_image=f"{image}",
        created=created.isoformat() if hasattr(created, "isoformat") else "",
        failure_reason=f"{described.get('FailureReason', '')}"[:LONGEST_REASON],
    )


def is_there(cloud: JobCalls, place: JobPlace, digest: str, last: JobState) -> bool:
    """Return whether an attempt is completed and its artifacts are in the bucket."""
    return last.state == COMPLETED and cloud.has_objects(place.prefix(digest, last.attempt))


def publish_state(cloud: JobCalls, place: JobPlace, digest: str, state: JobState) -> None:
    """Write the parameter of a job when its state changed."""
    text, name = state.to_json(), place.parameter(digest)
    try:
        if cloud.read_parameter(name) == text:
            return
    except NotFoundError:
        pass
    cloud.write_parameter(name, text)


class JobProperties(TypedDict):
    """Properties of the custom resource of a job, and what its workflow is ordered.

    Attributes:
        Digest: Of the content.
        Name: Of the first attempt.
        RoleArn: The role of the job.
        Request: The request of CreateOptimizationJob as JSON, without name, role and output.
    """

    Digest: str
    Name: str
    RoleArn: str
    Request: str


class JobEvent(TypedDict):
    """A request of CloudFormation."""

    RequestType: Literal["Create", "Update", "Delete"]
    RequestId: str
    ResponseURL: str
    StackId: str
    LogicalResourceId: str
    ResourceProperties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """An answer to CloudFormation.

    Attributes:
        failed_because: Why it failed; `None` when it did not.
    """

    data: Mapping[str, str]
    failed_because: str | None = None


def job_answer(event: JobEvent, cloud: JobCalls, place: JobPlace) -> JobAnswer:
    """Start a job that is not there, or stop it on deletion; return at once."""
    job = _properties(event["ResourceProperties"])
    if event["RequestType"] == "Delete":
        stop(job, cloud, place)
        return JobAnswer({})
    cloud.write_parameter(place.request_parameter(job["Digest"]), json.dumps(job))
    state = start(job, event["RequestId"], cloud, place)
    return JobAnswer({"JobName": state.job, "State": state.state, "Parameter": place.parameter(job["Digest"])})


def start_again(digest: str, request_id: str, cloud: JobCalls, place: JobPlace) -> JobState:
    """Start a job that a deployment requested before, by its digest; as `start`.

    Raises:
        NotFoundError: No deployment requested it.
    """
    job = _properties(json.loads(cloud.read_parameter(place.request_parameter(digest))))
    return start(job, request_id, cloud, place)


def start(job: JobProperties, request_id: str, cloud: JobCalls, place: JobPlace) -> JobState:
    """Start the next attempt of a job, unless the last one runs or its artifacts are there.

    Args:
        request_id: Of what asks; the same one never starts two.

    Returns:
        The state of the attempt that runs, is completed, or is about to be created.
    """
    digest, name = job["Digest"], job["Name"]
    latest = last_attempt(cloud, place, name, digest)
    last = None if latest is None else latest[0]
    if last is not None and is_there(cloud, place, digest, last):
        publish_state(cloud, place, digest, last)
        return last
    runs = last is not None and last.state in RUNNING
    if last is None or not runs:
        attempt = 1 if last is None else last.attempt + 1
        last = JobState(attempt_name(name, attempt), attempt, NOT_STARTED, place.uri(digest, attempt))
        publish_state(cloud, place, digest, last)
    # Also where the last attempt runs: its workflow may have died, and one of the same name starts nothing new.
    order = {**job, "Attempt": last.attempt}
    execution = f"{last.job}-{request_id}"
    if len(execution) > LONGEST_EXECUTION_NAME:
        execution = f"{last.job}-{sha256(request_id.encode()).hexdigest()[:DIGITS]}"
    cloud.start_workflow(execution, {"Order": order})
    return last


def stop(job: JobProperties, cloud: JobCalls, place: JobPlace) -> None:
    """End what runs of a job: it would cost and is of no use. Completed artifacts stay."""
    cloud.stop_workflows(f"{job['Name']}-")
    latest = last_attempt(cloud, place, job["Name"], job["Digest"])
    if latest is not None and latest[0].state in RUNNING:
        cloud.stop_job(latest[0].job)


def artifacts_answer(event: JobEvent, cloud: JobCalls, place: JobPlace, *, now: datetime) -> JobAnswer:
    """Tell where the artifacts of a completed job are; fail at once when it is not completed."""
    if event["RequestType"] == "Delete":
        return JobAnswer({})
    job = event["ResourceProperties"]
    digest, name, image = job["Digest"], job["Name"], job["Image"]
    latest = last_attempt(cloud, place, name, digest)
    if latest is None or not is_there(cloud, place, digest, latest[0]):
        state = latest[0] if latest is not None else _not_created(name, digest, cloud, place)
        return JobAnswer({}, _not_completed(state, job, now))
    state = latest[0]
    other = state.recommended_image not in ("", image)
    if other and job["NeedsImage"] == "true":
        hint = f"write serving.image: {state.recommended_image}, plan again and deploy"
        compiled = f"{state.job} compiled for {state.recommended_image}, and {image} is locked"
        return JobAnswer({}, f"SEA459: {compiled}: {hint}.")
    advice = f"serving.image: {state.recommended_image}" if other else "none: the locked image is the recommended one"
    return JobAnswer(
        {
            "Bucket": place.bucket,
            "Attempt": f"{state.attempt}",
            "ArtifactUri": state.artifact_s3_uri,
            "JobName": state.job,
            "RecommendedImage": state.recommended_image or image,
            "ImageAdvice": advice,
            "KeyArn": place.key_arn,
        }
    )


def _properties(given: Mapping[str, str]) -> JobProperties:
    return JobProperties(Digest=given["Digest"], Name=given["Name"], RoleArn=given["RoleArn"], Request=given["Request"])


def _not_created(name: str, digest: str, cloud: JobCalls, place: JobPlace) -> JobState:
    """Return the state of a job that SageMaker doesn't know: why it was refused, if it was."""
    try:
        document = json.loads(cloud.read_parameter(place.parameter(digest)))
    except (NotFoundError, ValueError):
        return JobState(name, 1, NOT_STARTED, place.uri(digest, 1))
    return JobState(**document)


def _not_completed(state: JobState, job: Mapping[str, str], now: datetime) -> str:
    since = ""
    if state.created:
        hours = (now - datetime.fromisoformat(state.created)).total_seconds() / S_PER_HOUR
        since = f", created {hours:.1f} hours ago"
    name = f"SEA458: the optimization job {state.job} is {state.state}{since}"
    why = f": {state.failure_reason}" if state.failure_reason else ""
    if state.state == COMPLETED:
        why = f", but nothing is under {state.artifact_s3_uri}"
    if state.state in RUNNING:
        return f"{name}{why}. Deploy again when it is COMPLETED (limit: {job['MaxHours']} hours)."
    command = f"seatrial jobs start {job['Endpoint']} -e {job['Environment']}"
    return f"{name}{why}. Start it: {command}; deploy again when it is COMPLETED."


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
    publish_state(cloud, place, order["Digest"], state)
    if state.state in ENDED:
        return {"Next": "end", "Seconds": 0, "Order": order}
    wait_s = SHORTEST_WAIT_S
    if state.created:
        age_s = (datetime.now(UTC) - datetime.fromisoformat(state.created)).total_seconds()
        wait_s = round(min(LONGEST_WAIT_S, max(SHORTEST_WAIT_S, SHARE * age_s)))
    return {"Next": "wait", "Seconds": wait_s, "Order": order}


def refused(order: JobOrder, why: str, cloud: JobCalls, place: JobPlace) -> Next:
    """Tell why the attempt could not be created."""
    attempt, digest = order["Attempt"], order["Digest"]
    name = attempt_name(order["Name"], attempt)
    state = JobState(name, attempt, "FAILED", place.uri(digest, attempt), failure_reason=f"{why}"[:LONGEST_REASON])
    try:
        cloud.describe_job(name)
    except NotFoundError:
        publish_state(cloud, place, digest, state)
    return {"Next": "end", "Seconds": 0, "Order": order}
