"""Optimization jobs by the name of their content: the attempts of one, where it writes, and what is told of it.

The first attempt has the name, a later one its number behind it. A completed attempt whose artifacts are there is never
made again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    Document = Mapping[str, object]

COMPLETED: Final = "COMPLETED"
RUNNING: Final = ("STARTING", "INPROGRESS")
ENDED: Final = (COMPLETED, "FAILED", "STOPPED")
FOLDER: Final = "optimized"
LONGEST_REASON: Final = 500
S_PER_HOUR: Final = 3600.0


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
    """Where jobs write and are told.

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
        """Return the name of the parameter that tells of a job."""
        return f"{self.parameters}/{digest}"

    def request_parameter(self, digest: str) -> str:
        """Return the name of the parameter that keeps what a deployment asked for."""
        return f"{self.parameter(digest)}/request"


@dataclass(frozen=True, slots=True)
class JobState:
    """What is told of a job, in its parameter.

    Attributes:
        job: Name of the last attempt.
        attempt: Its number, counted from 1.
        state: As SageMaker tells it; `NOT STARTED` when there is no attempt.
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
    """Return what is told of a described job."""
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
    """Write the parameter of a job when it tells something else."""
    text, name = state.to_json(), place.parameter(digest)
    try:
        if cloud.read_parameter(name) == text:
            return
    except NotFoundError:
        pass
    cloud.write_parameter(name, text)
