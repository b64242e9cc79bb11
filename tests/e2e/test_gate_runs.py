"""The gate's functions at work: a trial longer than one of them, and a deletion while one loads.

The runner's function may run 35 s here instead of its minutes, by an override of its `Timeout` in an app of the test's
own: it takes its time from Lambda, so that a short function pauses as a long one does. All levels together don't fit
into one function; where this machine is busy with something else, the last may not fit alone.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import boto3
import pytest

from seatrial.bench.progress import TrialProgress
from seatrial.local import lifecycle
from seatrial_cdk.smoke_benchmark.runtime.trial_store import S3TrialStore
from tests.e2e.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from seatrial.bench.result import TrialResult
    from seatrial.demo.cloud import Cloud
    from tests.e2e.conftest import RunCdk, Workspace

pytestmark = pytest.mark.e2e

STACK, ENDPOINT = "seatrial-local-runs", "local-runs"
LEVELS = [1, 2, 3, 4, 5, 6, 7, 8]
FUNCTION_S = 35
PATIENCE_S = 120.0
APP = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from pathlib import Path
from aws_cdk import App
from seatrial.deployment.load import load_deployments
from stacks.endpoint_stack import EndpointStack

app = App(analytics_reporting=False)
for deployment in load_deployments(Path("endpoints"), Path("environments"), "local", "runs"):
    stack = EndpointStack(app, deployment.stack_name, deployment=deployment)
    runner = stack.node.find_child("SmokeBenchmark").runner.function.node.default_child
    runner.add_property_override("Timeout", {FUNCTION_S})
app.synth()
"""


@dataclass(frozen=True, slots=True)
class Gate:
    """The deployed gate: its stack, its bucket, and the queue that its events go to."""

    cloud: Cloud
    assembly: Path
    queue_url: str

    @property
    def bucket(self) -> str:
        return self.cloud.stack(STACK).output("ResultsBucket")

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

    def properties(self) -> dict[str, str]:
        """Return the custom resource's properties as CloudFormation sent them."""
        template = json.loads((self.assembly / f"{STACK}.template.json").read_text())["Resources"]
        (resource,) = (each for each in template.values() if each["Type"] == "Custom::SmokeBenchmark")
        literal = {name: value for name, value in resource["Properties"].items() if isinstance(value, str)}
        outputs = self.cloud.stack(STACK).outputs
        return {**literal, **{name: outputs[name] for name in ("EndpointConfigName", "ModelName")}}

    def call(self, function: str, event: Mapping[str, object]) -> dict[str, object]:
        name = self.resource("AWS::Lambda::Function", f"SmokeBenchmark{function}")
        answer = boto3_client(self.cloud, "lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
        said: dict[str, object] = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, said
        return said


@pytest.fixture(scope="module")
def gate(cloud: Cloud, cdk: RunCdk, workspace: Workspace) -> Iterator[Gate]:
    trial = {
        "mode": "report",
        "concurrency_levels": LEVELS,
        "requests_per_concurrency": 12,
        "max_requests_per_concurrency": 12,
        "confidence": 0,
        "budget_minutes": 4,
        "request_timeout_s": 20,
    }
    workspace.write("runs", workload={"input_tokens": 48, "output_tokens": 64, "concurrency": 4}, trial=trial)
    (workspace.folder / "app.py").write_text(APP, encoding="utf-8")
    queue_url = events_queue(cloud)
    assembly = workspace.folder / "cdk.out"
    options = ("--require-approval", "never", "--output", assembly, "--app", f"{sys.executable} app.py")
    try:
        ended = cdk("deploy", STACK, *options, folder=workspace.folder)
        assert ended.exit_code == 0, ended.output
        yield Gate(cloud, assembly, queue_url)
    finally:
        if (assembly / "manifest.json").exists():
            cdk("destroy", "--all", "--force", "--app", assembly)


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


def test_a_trial_longer_than_a_function_goes_on_in_the_next_one(gate: Gate) -> None:
    stack = gate.cloud.stack(STACK)
    assert stack.status == "CREATE_COMPLETE"
    (document,) = (key for key in gate.keys(f"trials/{ENDPOINT}/") if key.endswith(".json"))
    request_id = document.rpartition("/")[2].removesuffix(".json")
    runs = [key for key in gate.keys(f"runs/{ENDPOINT}/{request_id}/") if "/run-" in key]
    assert len(runs) >= 2
    assert [json.loads(gate.text(key))["paused"] for key in runs] == [*[True] * (len(runs) - 1), False]
    result = gate.result()
    progress = TrialProgress.from_json(gate.text(f"runs/{ENDPOINT}/{request_id}/progress.json"))
    assert (progress.started_at, progress.runs) == (result.started_at, len(runs))
    measured = [level.concurrency for level in result.levels]
    assert [level.concurrency for level in progress.levels] == measured, "each level was measured once"
    assert len(measured) > 1
    assert measured == LEVELS[: len(measured)], result.stopped_because


def test_a_run_that_has_begun_can_be_begun_by_no_second_function(gate: Gate) -> None:
    store = S3TrialStore(gate.cloud.client("s3"), gate.bucket)
    lease = next(key for key in gate.keys(f"runs/{ENDPOINT}/") if key.endswith("/run-1.json"))
    before = store.read(lease)
    with ThreadPoolExecutor(4) as functions:
        assert list(functions.map(lambda _: store.create(lease, "{}"), range(4))) == [False] * 4
        new = lease.replace("run-1", "run-99")
        assert sorted(functions.map(lambda _: store.create(new, "{}"), range(4))) == [False, False, False, True]
    assert store.read(lease) == before


def test_its_result_its_short_report_and_its_event_agree(gate: Gate) -> None:
    stack, result = gate.cloud.stack(STACK), gate.result()
    uri = stack.output("TrialReportUri")
    report = gate.text(uri.partition(gate.bucket + "/")[2])
    assert report.startswith(f"# Sea trial of runs in local: {result.verdict.status}\n")
    assert "local-cpu-random-llama (not the model named)" in report
    messages = boto3_client(gate.cloud, "sqs").receive_message(QueueUrl=gate.queue_url)["Messages"]
    (event,) = (json.loads(message["Body"]) for message in messages)
    assert (event["source"], event["detail-type"]) == ("seatrial", "Sea trial finished")
    assert (event["detail"]["verdict"], event["detail"]["endpointName"]) == (result.verdict.status, ENDPOINT)
    assert (event["detail"]["resultUri"], event["detail"]["reportUri"]) == (stack.output("TrialResultUri"), uri)


def test_its_metrics_are_in_the_runners_log(gate: Gate) -> None:
    logs = boto3_client(gate.cloud, "logs")
    group = gate.resource("AWS::Logs::LogGroup", "SmokeBenchmarkRunner")
    events = logs.filter_log_events(logGroupName=group)["events"]
    lines = [line for event in events for line in event["message"].splitlines() if line.startswith('{"_aws"')]
    (metrics,) = map(json.loads, lines)
    assert (metrics["Endpoint"], metrics["Environment"]) == ("runs", "local")
    assert metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Seatrial"


def test_a_deletion_stops_the_load_and_leaves_nothing(gate: Gate, cdk: RunCdk) -> None:
    """The trial is started as CloudFormation's request would; the deletion is CloudFormation's own."""
    request = {
        "RequestType": "Create",
        "RequestId": "by-hand",
        "StackId": gate.resource("Custom::SmokeBenchmark", "SmokeBenchmark"),
        "ResourceProperties": gate.properties(),
    }
    begun = gate.call("OnEvent", request)
    assert "StartedAt" in begun
    assert gate.call("IsComplete", {**request, **begun}) == {"IsComplete": False}
    lease = f"runs/{ENDPOINT}/by-hand/run-1.json"
    awaited(lambda: lease in gate.keys("runs/"))
    bucket, began_s = gate.bucket, time.monotonic()
    ended = cdk("destroy", "--all", "--force", "--app", gate.assembly)
    assert ended.exit_code == 0, ended.output
    assert time.monotonic() - began_s < PATIENCE_S
    assert gate.cloud.leftovers("seatrial-local-runs") == []
    buckets = gate.cloud.client("s3").list_buckets()["Buckets"]
    assert bucket not in [each["Name"] for each in buckets]
