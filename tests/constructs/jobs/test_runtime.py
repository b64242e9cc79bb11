from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_cdk.jobs.runtime.job_handler import dispatch
from seatrial_cdk.jobs.runtime.jobs import JobPlace, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = JobPlace("bucket", "arn:key", "/seatrial/dev/optimizations")
JOB = {
    "Digest": "abc",
    "Name": "dev-abc",
    "RoleArn": "arn:role",
    "Request": '{"DeploymentInstanceType": "ml.g5.xlarge"}',
}
ARTIFACTS = {
    "Digest": "abc",
    "Name": "dev-abc",
    "Image": "image:1",
    "NeedsImage": "false",
    "MaxHours": "12",
    "Endpoint": "chat",
    "Environment": "dev",
}


@dataclass
class FakeCloud:
    """Jobs by name, objects by prefix, parameters and executions."""

    jobs: dict[str, dict[str, object]] = field(default_factory=dict)
    prefixes: set[str] = field(default_factory=set)
    parameters: dict[str, str] = field(default_factory=dict)
    started: dict[str, Mapping[str, object]] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)

    def put(self, name: str, status: str, *, image: str = "image:1", hours: float = 0.0) -> None:
        self.jobs[name] = {
            "OptimizationJobName": name,
            "OptimizationJobStatus": status,
            "CreationTime": datetime.now(UTC) - timedelta(hours=hours),
            "OptimizationOutput": {"RecommendedInferenceImage": image},
            **({"FailureReason": "out of memory"} if status == "FAILED" else {}),
        }

    def describe_job(self, name: str) -> Mapping[str, object]:
        if name not in self.jobs:
            raise NotFoundError(name)
        return self.jobs[name]

    def create_job(self, request: Mapping[str, object]) -> None:
        self.put(f"{request['OptimizationJobName']}", "STARTING")
        self.jobs[f"{request['OptimizationJobName']}"]["Request"] = request

    def stop_job(self, name: str) -> None:
        self.stopped.append(name)

    def has_objects(self, prefix: str) -> bool:
        return prefix in self.prefixes

    def write_parameter(self, name: str, text: str) -> None:
        self.parameters[name] = text

    def read_parameter(self, name: str) -> str:
        if name not in self.parameters:
            raise NotFoundError(name)
        return self.parameters[name]

    def start_workflow(self, name: str, order: Mapping[str, object]) -> None:
        self.started.setdefault(name, order)

    def stop_workflows(self, prefix: str) -> None:
        self.stopped.append(f"workflows of {prefix}")

    def ask(self, phase: str, request_type: str = "Create", **more: str) -> dict[str, Any]:
        """Send a request of CloudFormation and return the answer."""
        properties = {"Phase": phase, **(JOB if phase == "job" else ARTIFACTS), **more}
        event: dict[str, Any] = {
            "RequestType": request_type,
            "RequestId": f"r{len(self.answers)}",
            "ResponseURL": "url",
            "StackId": "stack",
            "LogicalResourceId": "Job",
            "ResourceProperties": properties,
        }
        dispatch(event, self, PLACE, lambda _url, body: self.answers.append(json.loads(body)))  # type: ignore[arg-type]
        return self.answers[-1]

    def step(self, step: str, order: Mapping[str, object], **more: object) -> Any:  # noqa: ANN401 (JSON)
        return dispatch({"Step": step, "Order": order, **more}, self, PLACE, lambda *_: None)  # type: ignore[arg-type]

    @property
    def told(self) -> dict[str, Any]:
        """What the parameter tells."""
        document: dict[str, Any] = json.loads(self.parameters["/seatrial/dev/optimizations/abc"])
        return document


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud()


def test_a_new_job_is_ordered_created_and_followed_to_its_end(cloud: FakeCloud) -> None:
    answer = cloud.ask("job")
    assert (answer["Status"], answer["Data"]["JobName"], answer["Data"]["State"]) == (
        "SUCCESS",
        "dev-abc",
        "NOT STARTED",
    )
    (execution,) = cloud.started
    order: Any = cloud.started[execution]["Order"]
    assert execution == "dev-abc-r0"
    assert cloud.step("create", order)["Next"] == "wait"
    request: Any = cloud.jobs["dev-abc"]["Request"]
    assert request["OutputConfig"] == {"S3OutputLocation": "s3://bucket/optimized/abc/1/", "KmsKeyId": "arn:key"}
    assert (request["DeploymentInstanceType"], request["RoleArn"]) == ("ml.g5.xlarge", "arn:role")
    cloud.put("dev-abc", "INPROGRESS", hours=10)
    assert (cloud.step("poll", order)["Next"], cloud.step("poll", order)["Seconds"]) == ("wait", 300)
    assert cloud.told["state"] == "INPROGRESS"
    cloud.put("dev-abc", "COMPLETED")
    assert cloud.step("poll", order)["Next"] == "end"
    assert (cloud.told["state"], cloud.told["recommended_image"]) == ("COMPLETED", "image:1")


def test_a_completed_job_never_runs_again(cloud: FakeCloud) -> None:
    cloud.put("dev-abc", "COMPLETED")
    cloud.prefixes.add("optimized/abc/1/")
    assert cloud.ask("job", "Update")["Data"]["State"] == "COMPLETED"
    assert (cloud.started, cloud.told["artifact_s3_uri"]) == ({}, "s3://bucket/optimized/abc/1/")


@pytest.mark.parametrize("status", ["FAILED", "STOPPED", "STOPPING", "COMPLETED"])
def test_one_without_artifacts_is_started_as_the_next_attempt(cloud: FakeCloud, status: str) -> None:
    cloud.put("dev-abc", "FAILED")
    cloud.put("dev-abc-2", status)
    assert cloud.ask("job")["Data"]["JobName"] == "dev-abc-3"
    assert cloud.started["dev-abc-3-r0"]["Order"] == {**JOB, "Attempt": 3}


def test_one_that_runs_is_followed_and_not_started_twice(cloud: FakeCloud) -> None:
    cloud.put("dev-abc", "INPROGRESS")
    cloud.ask("job")
    assert list(cloud.started) == ["dev-abc-r0"]
    assert cloud.started["dev-abc-r0"]["Order"] == {**JOB, "Attempt": 1}


def test_deletion_stops_what_runs_and_keeps_what_is_completed(cloud: FakeCloud) -> None:
    cloud.put("dev-abc", "INPROGRESS")
    assert cloud.ask("job", "Delete")["Status"] == "SUCCESS"
    assert cloud.stopped == ["workflows of dev-abc-", "dev-abc"]
    cloud.put("dev-abc", "COMPLETED")
    cloud.ask("job", "Delete")
    cloud.ask("artifacts", "Delete")
    assert cloud.stopped == ["workflows of dev-abc-", "dev-abc", "workflows of dev-abc-"]


def test_a_refused_creation_is_told_by_the_parameter_and_to_the_endpoint(cloud: FakeCloud) -> None:
    cloud.ask("job")
    (started,) = cloud.started.values()
    cause = json.dumps({"errorMessage": "no quota for ml.g5.xlarge"})
    assert cloud.step("refused", started["Order"], Failure={"Cause": cause})["Next"] == "end"  # type: ignore[arg-type]
    assert (cloud.told["state"], cloud.told["failure_reason"]) == ("FAILED", "no quota for ml.g5.xlarge")
    reason = cloud.ask("artifacts")["Reason"]
    assert "dev-abc is FAILED: no quota for ml.g5.xlarge" in reason
    assert "seatrial jobs start chat -e dev" in reason


def test_a_start_by_hand_starts_the_next_attempt(cloud: FakeCloud) -> None:
    event: Any = {"Start": "abc", "RequestId": "by-hand"}
    with pytest.raises(NotFoundError):
        dispatch(event, cloud, PLACE, lambda *_: None)
    cloud.ask("job")
    cloud.started.clear()
    cloud.put("dev-abc", "FAILED")
    assert dispatch(event, cloud, PLACE, lambda *_: None) == {"Job": "dev-abc-2", "State": "NOT STARTED"}
    assert list(cloud.started) == ["dev-abc-2-by-hand"]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("INPROGRESS", "SEA458: the optimization job dev-abc is INPROGRESS, created 2.5 hours ago. Deploy again"),
        ("FAILED", "SEA458: the optimization job dev-abc is FAILED, created 2.5 hours ago: out of memory. Start it"),
        ("COMPLETED", "but nothing is under s3://bucket/optimized/abc/1/. Start it"),
    ],
)
def test_the_endpoint_fails_at_once_while_the_job_is_not_completed(cloud: FakeCloud, status: str, told: str) -> None:
    cloud.put("dev-abc", status, hours=2.5)
    answer = cloud.ask("artifacts")
    assert (answer["Status"], told in answer["Reason"]) == ("FAILED", True)


def test_the_endpoint_is_told_where_the_artifacts_are_and_which_image_is_recommended(cloud: FakeCloud) -> None:
    cloud.put("dev-abc", "COMPLETED", image="image:2")
    cloud.prefixes.add("optimized/abc/1/")
    assert cloud.ask("artifacts")["Data"] == {
        "Bucket": "bucket",
        "Attempt": "1",
        "ArtifactUri": "s3://bucket/optimized/abc/1/",
        "JobName": "dev-abc",
        "RecommendedImage": "image:2",
        "ImageAdvice": "serving.image: image:2",
        "KeyArn": "arn:key",
    }
    assert cloud.ask("artifacts", Image="image:2")["Data"]["ImageAdvice"].startswith("none")
    refused = cloud.ask("artifacts", NeedsImage="true")
    assert (refused["Status"], "SEA459" in refused["Reason"]) == ("FAILED", True)


def test_what_goes_wrong_is_answered(cloud: FakeCloud) -> None:
    event: Any = {
        "RequestType": "Create",
        "RequestId": "r",
        "ResponseURL": "url",
        "StackId": "s",
        "LogicalResourceId": "l",
        "ResourceProperties": {"Phase": "artifacts", "Name": "dev-abc"},
    }
    dispatch(event, cloud, PLACE, lambda _url, body: cloud.answers.append(json.loads(body)))
    assert cloud.answers[-1]["Status"] == "FAILED"
