"""A deployed gate as the tests look into it: its documents, its functions, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import boto3

from seatrial.bench.progress import TrialProgress
from seatrial.local import lifecycle
from seatrial_cdk.trial_service.runtime.trial_run import SILENT_S, Lease, read_lease
from seatrial_cdk.trial_service.runtime.store import S3TrialStore, progress_key, run_key
from seatrial_cdk.trial_service.runtime.ownership import read_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial.bench.result import TrialResult
    from seatrial.demo.cloud import Cloud
    from seatrial_cdk.trial_service.runtime.ownership import Turn
    from tests.e2e.conftest import Processes

STACK, ENDPOINT = "seatrial-local-runs", "local-runs"
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate: its cloud, its assembly, the queue that its events go to, and the run that was killed."""

    cloud: Cloud
    assembly: Path
    queue_url: str
    killed_run: int = 0

    @property
    def bucket(self) -> str:
        return self.resource("AWS::S3::Bucket", "Results")

    @property
    def store(self) -> S3TrialStore:
        return S3TrialStore(self.cloud.client("s3"), self.bucket)

    def keys(self, prefix: str) -> list[str]:
        found = self.cloud.client("s3").list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        return sorted(entry["Key"] for entry in found)

    def text(self, key: str) -> str:
        return self.cloud.client("s3").get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()

    def result(self) -> TrialResult:
        return self.cloud.result(self.cloud.stack(STACK).output("TrialResultUri"))

    def resource(self, kind: str, prefix: str) -> str:
        listed = self.cloud.client("cloudformation").list_stack_resources(StackName=STACK)["StackResourceSummaries"]
        (name,) = (
            each["PhysicalResourceId"]
            for each in listed
            if each["ResourceType"] == kind and each["LogicalResourceId"].startswith(prefix)
        )
        return name

    def function(self, name: str) -> str:
        return self.resource("AWS::Lambda::Function", f"SmokeBenchmark{name}")

    def properties(self) -> dict[str, str]:
        """Return the custom resource's properties as CloudFormation sent them."""
        template = json.loads((self.assembly / f"{STACK}.template.json").read_text())["Resources"]
        (resource,) = (each for each in template.values() if each["Type"] == "Custom::SmokeBenchmark")
        literal = {name: value for name, value in resource["Properties"].items() if isinstance(value, str)}
        outputs = self.cloud.stack(STACK).outputs
        return {**literal, **{name: outputs[name] for name in ("EndpointConfigName", "ModelName")}}

    def call(self, function: str, event: Mapping[str, object]) -> dict[str, object]:
        client, payload = boto3_client(self.cloud, "lambda"), json.dumps(event).encode()
        answer = client.invoke(FunctionName=self.function(function), Payload=payload)
        said: dict[str, object] = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, said
        return said


Service = Literal["lambda", "sqs", "events", "logs"]


def boto3_client(cloud: Cloud, service: Service) -> Any:  # noqa: ANN401 (boto3's clients have no type of their own)
    variables = lifecycle.child_variables(cloud.local)
    return boto3.client(
        service,
        region_name=cloud.region,
        endpoint_url=cloud.local.endpoint_url,
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )


def events_queue(cloud: Cloud) -> str:
    """Send the gate's events to a queue, as a pipeline would, and return its URL."""
    sqs, events = boto3_client(cloud, "sqs"), boto3_client(cloud, "events")
    url: str = sqs.create_queue(QueueName="sea-trials")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["seatrial"], "detail-type": ["Sea trial finished"]}
    events.put_rule(Name="sea-trials", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="sea-trials", Targets=[{"Id": "queue", "Arn": arn}])
    return url


def awaited(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def kill_runner(gate: Gate, processes: Processes, over: Callable[[], bool]) -> int:
    """Kill the runner in the first run that has the checkpoint of a measured level, and return the run's number.

    The run's last sign of life is put back by as long as the gate waits for another one.
    """
    turns: list[Turn] = []

    def loads() -> bool:
        assert not over(), "the trial ended before its runner was killed"
        with suppress(gate.cloud.client("cloudformation").exceptions.ClientError, ValueError):
            turns[:] = filter(None, [running_turn(gate.store)])
        return bool(turns)

    awaited(loads)
    (turn,) = turns
    for line in processes(Path(f"AWS_LAMBDA_FUNCTION_NAME={gate.function('Runner')}")):
        os.kill(int(line.split()[0]), signal.SIGKILL)
    long_ago = Lease(alive_at_s=time.time() - SILENT_S - 1.0)
    gate.store.write(run_key(ENDPOINT, turn.request_id, turn.run), json.dumps(asdict(long_ago)))
    return turn.run


def running_turn(store: S3TrialStore) -> Turn | None:
    """Return the turn whose run measures a level after the first one; None while there is none."""
    turn = read_turn(store, ENDPOINT)
    if turn is None or turn.run == 1:
        return None
    lease, progress = read_lease(store, ENDPOINT, turn.request_id, turn.run), measured(store, turn.request_id)
    return turn if lease is not None and not lease.paused and progress and progress.levels else None


def measured(store: S3TrialStore, request_id: str) -> TrialProgress | None:
    text = store.read(progress_key(ENDPOINT, request_id))
    return None if text is None else TrialProgress.from_json(text)


def request_of(gate: Gate, kind: Literal["Create", "Update"], request_id: str) -> dict[str, object]:
    return {
        "RequestType": kind,
        "RequestId": request_id,
        "StackId": STACK,
        "ResourceProperties": gate.properties(),
    }


def begin_by_hand(gate: Gate, request_id: str) -> None:
    """Order a trial as CloudFormation's request would, and wait until its run has begun."""
    request = request_of(gate, "Create", request_id)
    begun = gate.call("OnEvent", request)
    assert "StartedAt" in begun
    assert gate.call("IsComplete", {**request, **begun}) == {"IsComplete": False}
    awaited(lambda: gate.keys(run_key(ENDPOINT, request_id, 1)))
