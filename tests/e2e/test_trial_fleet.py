"""A trial by a fleet on the embedded AWS: the distributed map runs four functions at once, which measure as one.

One trial loads the endpoint's real engine. Its speed depends on what else this machine does, so the numbers of a fleet
and of a single process are compared on a runtime API that takes the same time for every answer.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from seatrial.bench.result import TrialResult
from seatrial.bench.trial import run_trial
from seatrial.deployment.load import load_deployments
from seatrial_cdk.trial_service.runtime.custom_resource import TrialProperties
from seatrial_cdk.trial_service.runtime.runner import trial_request
from seatrial_cdk.trial_service.runtime.store import S3TrialStore, trial_key
from seatrial_cdk.trial_service.runtime.ownership import take_turn
from tests.e2e.paced_runtime import TOKEN_S, paced_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_stepfunctions import SFNClient

    from seatrial.bench.result import LevelResult
    from seatrial.demo.cloud import Cloud
    from seatrial.deployment.live_stack import LiveStack
    from seatrial_cdk.trial_service.runtime.custom_resource import TrialOrder
    from tests.e2e.conftest import RunCdk, Workspace

    Properties = dict[str, str]

pytestmark = pytest.mark.e2e

STACK = "seatrial-local-fleet"
APP = f"{sys.executable} {Path(__file__).with_name('trial_fleet_app.py')}"
LONGEST_EXECUTION_S = 240.0
REQUESTS_PER_CONCURRENCY = 4
GATE = 8  # requests in flight: four functions of two sockets each
OUTPUT_TOKENS = 16
NOISE = 0.15
"""How far a fleet's throughput may be from a single process's, and both from what the paced runtime gives."""


@dataclass(frozen=True)
class Execution:
    """How an execution ended, what states it entered, how many children each map had, and the trial's document."""

    status: str
    entered: tuple[str, ...]
    workers: tuple[int, ...]
    document: str

    @property
    def result(self) -> TrialResult:
        assert "error" not in json.loads(self.document), self.document
        return TrialResult.from_json(self.document)


@pytest.fixture(scope="module")
def runtime_url() -> Iterator[str]:
    with paced_runtime() as url:
        yield url


@pytest.fixture(scope="module")
def stack(cloud: Cloud, cdk: RunCdk, workspace: Workspace, runtime_url: str) -> Iterator[LiveStack]:
    trial = {
        "mode": "report",
        "concurrency_levels": [GATE],
        "requests_per_concurrency": REQUESTS_PER_CONCURRENCY,
        "max_requests_per_concurrency": REQUESTS_PER_CONCURRENCY,
        "confidence": 0,
        "search": "sweep",
        "budget_minutes": 3,
    }
    workload = {"input_tokens": 48, "output_tokens": OUTPUT_TOKENS, "concurrency": GATE}
    workspace.write("fleet", workload=workload, trial=trial)
    folder = workspace.folder / "fleet.out"
    context = (*workspace.synth_arguments(), "-c", f"paced_runtime={runtime_url}")
    try:
        options = ("--output", folder, "--require-approval", "never")
        ended = cdk("deploy", "--all", "--app", APP, *context, *options)
        assert ended.exit_code == 0, ended.output
        yield cloud.stack(STACK)
    finally:
        if (folder / "manifest.json").exists():
            cdk("destroy", "--all", "--force", "--app", folder)


@pytest.fixture(scope="module")
def properties(stack: LiveStack, workspace: Workspace) -> Properties:
    """Return the properties that CloudFormation would send for this stack."""
    (deployment,) = load_deployments(workspace.endpoints, workspace.environments, "local", "fleet")
    outputs = ("EndpointName", "InferenceComponentName", "EndpointConfigName", "ModelName")
    return {
        **{name: stack.output(name) for name in outputs},
        "PlanDigest": deployment.plan.digest,
        "Request": deployment.trial_request,
        "Mode": "report",
        "BudgetSeconds": "180",
        "FallbackTarget": "4",
    }


@pytest.fixture(scope="module")
def stepped(properties: Properties) -> Properties:
    """Return the same with a level before the gate's that one function can load."""
    request = json.loads(properties["Request"])
    request["load"]["concurrency_levels"] = [2, GATE]
    return {**properties, "Request": json.dumps(request)}


@pytest.fixture(scope="module")
def machine(cloud: Cloud) -> SFNClient:
    return boto3.client(
        "stepfunctions",
        region_name=cloud.region,
        endpoint_url=cloud.local.endpoint_url,
        aws_access_key_id=cloud.local.access_key_id,
        aws_secret_access_key=cloud.local.secret_access_key,
    )


@pytest.fixture(scope="module")
def on_engine(cloud: Cloud, stack: LiveStack, machine: SFNClient, properties: Properties) -> Execution:
    return execute(cloud, stack, machine, properties, "Machine", "request-1")


@pytest.fixture(scope="module")
def paced(cloud: Cloud, stack: LiveStack, machine: SFNClient, stepped: Properties, on_engine: Execution) -> Execution:
    return execute(cloud, stack, machine, stepped, "PacedMachine", "request-2")


@pytest.fixture(scope="module")
def alone(cloud: Cloud, stepped: Properties, runtime_url: str, paced: Execution) -> TrialResult:
    """Measure the same with one process, after the fleet: two loads at a time would spoil both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", cloud.local.endpoint_url)
        patch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", runtime_url)
        patch.setenv("AWS_ACCESS_KEY_ID", cloud.local.access_key_id)
        patch.setenv("AWS_SECRET_ACCESS_KEY", cloud.local.secret_access_key)
        result = run_trial(trial_request(TrialProperties.of(stepped), cloud.region))
    assert isinstance(result, TrialResult)
    return result


def test_four_functions_load_the_real_engine_together(on_engine: Execution) -> None:
    assert on_engine.status == "SUCCEEDED"
    assert on_engine.entered == course(on_engine)
    assert set(on_engine.workers) == {4}
    (level,) = on_engine.result.levels
    assert counts(level) == (GATE * REQUESTS_PER_CONCURRENCY, GATE * REQUESTS_PER_CONCURRENCY)
    assert level.client
    assert (level.client.workers, level.client.streams) == (4, GATE)
    assert on_engine.result.live.proven
    assert on_engine.result.engine_note


def test_a_level_gets_as_many_functions_as_it_needs(paced: Execution) -> None:
    assert paced.status == "SUCCEEDED"
    assert paced.entered == course(paced)
    assert tuple(dict.fromkeys(paced.workers)) == (1, 4)
    assert [level.client and level.client.streams for level in paced.result.levels] == [2, GATE]


def test_a_fleet_counts_every_request_that_one_process_counts(paced: Execution, alone: TrialResult) -> None:
    assert [level.concurrency for level in paced.result.levels] == [2, GATE]
    assert [counts(level) for level in paced.result.levels] == [counts(level) for level in alone.levels]
    assert [level.ramp_requests for level in paced.result.levels] == [level.ramp_requests for level in alone.levels]
    assert {level.output_tokens_mean for level in (*paced.result.levels, *alone.levels)} == {OUTPUT_TOKENS}


@pytest.mark.parametrize("index", [0, 1])
def test_a_fleet_measures_what_one_process_measures(paced: Execution, alone: TrialResult, index: int) -> None:
    together, by_itself = paced.result.levels[index], alone.levels[index]
    for level in (together, by_itself):
        assert level.tpot_ms
        assert level.tpot_ms.p50 == pytest.approx(1000 * TOKEN_S, rel=NOISE)
    assert together.output_tok_s == pytest.approx(by_itself.output_tok_s, rel=NOISE)


def test_a_trial_that_cannot_be_made_leaves_a_document_too(
    cloud: Cloud, stack: LiveStack, machine: SFNClient, properties: Properties
) -> None:
    changed = {**properties, "ModelName": "another-model"}
    ended = execute(cloud, stack, machine, changed, "Machine", "request-3")
    assert ended.status == "FAILED"
    assert ended.entered == ("Begin", "Abandon", "Abandoned")
    assert "another-model" in json.loads(ended.document)["error"]


def course(execution: Execution) -> tuple[str, ...]:
    """Return the states of a course of as many loads; a busy machine's function may be late, and its level repeated."""
    return ("Begin", *("Choose", "Load", "Absorb") * len(execution.workers), "Choose", "Conclude")


def counts(level: LevelResult) -> tuple[int, int]:
    return level.requests, level.succeeded


def execute(
    cloud: Cloud, stack: LiveStack, client: SFNClient, properties: Properties, machine: str, request_id: str
) -> Execution:
    """Order a trial as `on_event` does, and wait for its end."""
    store = S3TrialStore(cloud.client("s3"), stack.output("ResultsBucket"))
    key = trial_key(TrialProperties.of(properties), request_id)
    started_s = time.time()
    take_turn(store, properties["EndpointName"], request_id, document=key, now_s=started_s)
    order: TrialOrder = {
        "RequestId": request_id,
        "ResourceProperties": properties,
        "StartedAt": started_s,
        "Run": 1,
    }
    started = client.start_execution(
        stateMachineArn=stack.output(machine), name=f"{request_id}-1", input=json.dumps(order)
    )
    arn = started["executionArn"]
    while (status := client.describe_execution(executionArn=arn)["status"]) == "RUNNING":
        assert time.time() < started_s + LONGEST_EXECUTION_S
        time.sleep(0.5)
    return Execution(status, entered(client, arn), workers(client, arn), store.read(key) or "{}")


def entered(client: SFNClient, arn: str) -> tuple[str, ...]:
    pages = client.get_paginator("get_execution_history").paginate(executionArn=arn)
    names = [event.get("stateEnteredEventDetails", {}).get("name") for page in pages for event in page["events"]]
    return tuple(name for name in names if name and name not in {"Next", "Done"})


def workers(client: SFNClient, arn: str) -> tuple[int, ...]:
    """Return how many children each run of the map had, in the order of their start."""
    arns = [run["mapRunArn"] for run in client.list_map_runs(executionArn=arn)["mapRuns"]]
    runs = sorted((client.describe_map_run(mapRunArn=each) for each in arns), key=lambda run: run["startDate"])
    assert all(run["itemCounts"]["succeeded"] == run["itemCounts"]["total"] for run in runs)
    return tuple(run["itemCounts"]["total"] for run in runs)
