"""A deployed gate as the tests look into it: its documents, its function, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, Literal

import boto3

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial_cdk.trials.runtime.ownership import read_owner
from seatrial_cdk.trials.runtime.store import S3TrialStore, run_key
from seatrial_cdk.trials.trials_stack import TrialsStack
from seatrial_laptop import lifecycle
from seatrial_load.documents.progress import TrialProgress
from seatrial_stacks.app_stacks import define_stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from aws_cdk import App

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from seatrial_load.documents.result import TrialResult
    from tests.e2e.conftest import Workspace

SERVICE = "seatrial-local-trials"
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate of one endpoint: its cloud, its assembly, and the queue that its events go to."""

    cloud: EmbeddedAws
    name: str
    assembly: Path
    queue_url: str = ""

    @property
    def stack_name(self) -> str:
        return f"seatrial-local-{self.name}"

    @property
    def endpoint(self) -> str:
        return f"local-{self.name}"

    @property
    def bucket(self) -> str:
        return self.cloud.stack(SERVICE).output("ResultsBucket")

    @property
    def store(self) -> S3TrialStore:
        return S3TrialStore(self.cloud.client("s3"), self.bucket)

    def keys(self, prefix: str) -> list[str]:
        found = self.cloud.client("s3").list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        return sorted(entry["Key"] for entry in found)

    def text(self, key: str) -> str:
        return self.cloud.client("s3").get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()

    def result(self) -> TrialResult:
        return self.cloud.result(self.cloud.stack(self.stack_name).output("TrialResultUri"))

    def properties(self) -> dict[str, str]:
        """Return the custom resource's properties as CloudFormation sent them."""
        template = json.loads((self.assembly / f"{self.stack_name}.template.json").read_text())["Resources"]
        (resource,) = (each for each in template.values() if each["Type"] == "Custom::SmokeBenchmark")
        literal = {name: value for name, value in resource["Properties"].items() if isinstance(value, str)}
        outputs = self.cloud.stack(self.stack_name).outputs
        return {**literal, **{name: outputs[name] for name in ("EndpointConfigName", "ModelName")}}

    def call(self, event: Mapping[str, object]) -> None:
        """Call the service's function as CloudFormation does."""
        client, payload = boto3_client(self.cloud, "lambda"), json.dumps(event).encode()
        answer = client.invoke(FunctionName=SERVICE, Payload=payload)
        assert "FunctionError" not in answer, answer["Payload"].read()

    def request(self, kind: Literal["Create", "Update"], request_id: str, url: str) -> dict[str, object]:
        return {
            "RequestType": kind,
            "RequestId": request_id,
            "StackId": self.stack_name,
            "LogicalResourceId": "TrialResource",
            "ResponseURL": url,
            "PhysicalResourceId": f"smoke-benchmark-{self.endpoint}",
            "ResourceProperties": self.properties(),
        }

    def begin_by_hand(self, request_id: str, url: str) -> None:
        """Order a trial as CloudFormation's request would, and wait until it loads its first level."""
        self.call(self.request("Create", request_id, url))
        awaited(lambda: self.keys(run_key(self.endpoint, request_id, "level")))


Service = Literal["lambda", "sqs", "events", "logs", "stepfunctions", "cloudwatch", "scheduler"]


def boto3_client(cloud: EmbeddedAws, service: Service) -> Any:  # noqa: ANN401 (boto3's clients have no type of their own)
    variables = lifecycle.child_variables(cloud.local)
    return boto3.client(
        service,
        region_name=cloud.region,
        endpoint_url=cloud.local.endpoint_url,
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )


def deploy_arguments(workspace: Workspace, gate: Gate, *, runtime_url: str, sockets: int) -> tuple[str | Path, ...]:
    """Synthesize a gate that loads a runtime API of the tests by functions of so many sockets; say how to deploy it."""
    variables = {"AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": runtime_url, "SOCKETS_PER_FUNCTION": f"{sockets}"}

    def define(app: App) -> None:
        define_stacks(app)
        trials = app.node.find_child(SERVICE)
        assert isinstance(trials, TrialsStack)
        for name, value in variables.items():
            trials.service.function.add_property_override(f"Environment.Variables.{name}", value)

    synthesize(gate.assembly, {**workspace.context(), "endpoint": gate.name}, define)
    return ("deploy", "--all", "--require-approval", "never", "--app", gate.assembly)


def events_queue(cloud: EmbeddedAws) -> str:
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
        time.sleep(0.3)


def kill_function(gate: Gate, functions: Callable[[], list[int]], over: Callable[[], bool]) -> None:
    """Kill the service's functions while they load the level after the first one.

    Args:
        gate: Whose trial.
        functions: Tells the processes of the functions of this embedded AWS: others run beside it.
        over: Whether the deployment has ended.
    """

    def loads() -> bool:
        assert not over(), "the trial ended before its function was killed"
        with suppress(gate.cloud.client("cloudformation").exceptions.ClientError, Exception):
            return loads_second_level(gate)
        return False

    awaited(loads)
    for process in functions():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def loads_second_level(gate: Gate) -> bool:
    owner = read_owner(gate.store, gate.endpoint)
    if owner is None:
        return False
    progress, level = (
        gate.store.read(run_key(gate.endpoint, owner.request_id, name)) for name in ("progress", "level")
    )
    if progress is None or level is None:
        return False
    measured = [each.concurrency for each in TrialProgress.from_json(progress).levels]
    return bool(measured) and json.loads(level)["concurrency"] not in measured


@dataclass
class CloudFormation:
    """What answers to requests of the tests were put to.

    Attributes:
        url: Where.
        answers: By the request's ID.
    """

    url: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)


@contextmanager
def cloudformation() -> Iterator[CloudFormation]:
    """Take answers on a free port of the loopback until the block ends."""
    taken = CloudFormation("")

    class Taking(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            answer = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            taken.answers[answer["RequestId"]] = answer
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in http.server)
            del format, args

    with HTTPServer(("127.0.0.1", 0), Taking) as server:
        taken.url = f"http://127.0.0.1:{server.server_port}/answer"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield taken
        finally:
            server.shutdown()
            thread.join()
