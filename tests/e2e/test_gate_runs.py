"""The trial service at work: a function that is killed, an execution that dies, and requests that end a trial.

It loads a runtime API whose answers take the same time on every machine.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from seatrial_base.bounds import LOST_AFTER_S
from seatrial_cdk.trials.runtime.ownership import STOPPED
from seatrial_laptop.control import change_control, reset_control
from tests.e2e.gate import (
    SERVICE,
    CloudFormation,
    Gate,
    awaited,
    boto3_client,
    cloudformation,
    deploy_arguments,
    events_queue,
    kill_function,
)
from tests.e2e.killed_functions import DELIVERIES, killed_functions, let_pass
from tests.e2e.paced_runtime import PacedRuntime, paced_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace
    from tests.e2e.killed_functions import KilledFunctions

pytestmark = pytest.mark.e2e

LEVELS = [1, 2, 3]  # of 6 rounds of 16 tokens, 4.8 s each
SLOW_TOKEN_S = 0.25  # 24 s a level: what is done to a trial comes before its end on any machine


@pytest.fixture(scope="module")
def runtime() -> Iterator[PacedRuntime]:
    with paced_runtime() as serving:
        yield serving


@pytest.fixture(scope="module")
def answers() -> Iterator[CloudFormation]:
    with cloudformation() as taken:
        yield taken


@pytest.fixture(scope="module")
def gate(
    cloud: EmbeddedAws,
    cdk: RunCdk,
    workspace: Workspace,
    runtime: PacedRuntime,
    functions: Callable[[], list[int]],
    remove_stacks: Callable[[], None],
) -> Iterator[Gate]:
    """Deploy the gate, and kill the function while it measures."""
    trial = {
        "mode": "report",
        "search": "sweep",
        "concurrency_levels": LEVELS,
        "requests_per_concurrency": 5,
        "max_requests_per_concurrency": 5,
        "confidence": 0,
        "budget_minutes": 4,
        "request_timeout_s": 20,
    }
    workspace.write("runs", workload={"input_tokens": 48, "output_tokens": 16, "concurrency": LEVELS[-1]}, trial=trial)
    deploying = Gate(cloud, "runs", workspace.folder / "runs.out", events_queue(cloud))
    command = deploy_arguments(workspace, deploying, runtime_url=runtime.url, sockets=900)
    try:
        with ThreadPoolExecutor(1) as beside:
            deployment = beside.submit(lambda: cdk(*command))
            kill_function(deploying, functions, deployment.done)
            ended = deployment.result()
        assert ended.exit_code == 0, ended.output
        yield deploying
    finally:
        remove_stacks()


@pytest.fixture
def dying(state_dir: Path, tmp_path: Path) -> Iterator[KilledFunctions]:
    """Return functions of which none dies yet, on an AWS that skips minutes."""
    functions = killed_functions(tmp_path)
    change_control(state_dir, functions.settings)
    yield functions
    reset_control(state_dir)


def test_a_level_whose_function_was_killed_is_loaded_again_and_the_trial_goes_on(gate: Gate) -> None:
    assert gate.cloud.stack(gate.stack_name).status == "CREATE_COMPLETE"
    (document,) = (key for key in gate.keys(f"trials/{gate.endpoint}/") if key.endswith(".json"))
    request_id = document.rpartition("/")[2].removesuffix(".json")
    documents = gate.keys(f"runs/{gate.endpoint}/{request_id}/")
    loaded = [json.loads(gate.text(key))["concurrency"] for key in documents if key.endswith("/level.json")][:-1]
    assert len([key for key in documents if "/tally-" in key]) == len(LEVELS), "the killed function left no tally"
    assert (len(loaded), set(loaded)) == (len(LEVELS) + 1, set(LEVELS))
    result = gate.result()
    assert [level.concurrency for level in result.levels] == LEVELS
    assert result.stopped.because == "every level was measured"


def test_its_result_its_short_report_and_its_event_agree(gate: Gate) -> None:
    stack, result = gate.cloud.stack(gate.stack_name), gate.result()
    uri = stack.output("TrialReportUri")
    report = gate.text(uri.partition(gate.bucket + "/")[2])
    assert report.startswith(f"# Sea trial of runs in local: {result.verdict.status}\n")
    assert result.live.proven
    assert f"- live: {result.live.because}" in report
    messages = boto3_client(gate.cloud, "sqs").receive_message(QueueUrl=gate.queue_url)["Messages"]
    (event,) = (json.loads(message["Body"]) for message in messages)
    assert (event["source"], event["detail-type"]) == ("seatrial", "Sea trial finished")
    assert (event["detail"]["verdict"], event["detail"]["endpointName"]) == (result.verdict.status, gate.endpoint)
    assert (event["detail"]["resultUri"], event["detail"]["reportUri"]) == (stack.output("TrialResultUri"), uri)


def test_its_metrics_are_in_the_functions_log(gate: Gate) -> None:
    logs = boto3_client(gate.cloud, "logs")
    resources = gate.cloud.client("cloudformation").list_stack_resources(StackName=SERVICE)["StackResourceSummaries"]
    (group,) = (each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::Logs::LogGroup")
    events = logs.filter_log_events(logGroupName=group)["events"]
    lines = [line for event in events for line in event["message"].splitlines() if line.startswith('{"_aws"')]
    (metrics,) = map(json.loads, lines)
    assert (metrics["Endpoint"], metrics["Environment"]) == ("runs", "local")
    assert metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Seatrial"


def test_no_history_of_an_execution_holds_cloudformations_url(gate: Gate) -> None:
    client = boto3_client(gate.cloud, "stepfunctions")
    (machine,) = (each["stateMachineArn"] for each in client.list_state_machines()["stateMachines"])
    executions = client.list_executions(stateMachineArn=machine)["executions"]
    assert "SUCCEEDED" in {execution["status"] for execution in executions}
    for execution in executions:
        history = client.get_execution_history(executionArn=execution["executionArn"])["events"]
        assert "cfn-response" not in json.dumps(history, default=str)


def test_the_request_that_follows_a_cancelled_one_stops_its_load(
    gate: Gate, answers: CloudFormation, runtime: PacedRuntime
) -> None:
    """An update to what is deployed already is answered at once, as a rollback is, and nobody waits for the trial."""
    with runtime.answers_of(SLOW_TOKEN_S):
        gate.begin_by_hand("cancelled", answers.url)
        gate.call({**gate.request("Update", "following", answers.url), "OldResourceProperties": gate.properties()})
    outputs, data = gate.cloud.stack(gate.stack_name).outputs, answers.answers["following"]["Data"]
    for name in ("Verdict", "KneeConcurrencyPerCopy", "TargetConcurrencyPerCopy", "ResultsBucket"):
        assert data[name] == outputs[name]
    document = f"trials/{gate.endpoint}/{outputs['PlanDigest']}/cancelled.json"
    awaited(lambda: gate.keys(document))
    assert json.loads(gate.text(document)) == {"error": STOPPED}


def test_an_execution_that_is_stopped_from_outside_is_answered_all_the_same(
    gate: Gate, answers: CloudFormation, runtime: PacedRuntime
) -> None:
    client = boto3_client(gate.cloud, "stepfunctions")
    (machine,) = (each["stateMachineArn"] for each in client.list_state_machines()["stateMachines"])
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:aborted"
    with runtime.answers_of(SLOW_TOKEN_S):
        gate.begin_by_hand("aborted", answers.url)
        client.stop_execution(executionArn=execution, cause="somebody stopped it")
    awaited(lambda: "aborted" in answers.answers)
    assert answers.answers["aborted"]["Data"]["Verdict"] == "error"
    key = answers.answers["aborted"]["Data"]["ResultUri"].partition(gate.bucket + "/")[2]
    assert json.loads(gate.text(key))["error"].startswith("its workflow ended with ABORTED: ")


def test_a_request_of_which_every_delivery_is_killed_is_answered_by_the_sweep(
    gate: Gate, answers: CloudFormation, dying: KilledFunctions
) -> None:
    """Lambda calls a function twice more; none of the three comes further than to its note of the request."""
    dying.die_before("/seen.json HTTP")
    update = {**gate.request("Update", "killed", answers.url), "OldResourceProperties": gate.properties()}
    boto3_client(gate.cloud, "lambda").invoke(
        FunctionName=SERVICE, InvocationType="Event", Payload=json.dumps(update).encode()
    )
    awaited(lambda: len(dying.unsent) == DELIVERIES)
    dying.live()
    assert [key.rpartition("/")[2] for key in gate.keys(f"runs/{gate.endpoint}/killed/")] == ["noted.json"]
    gate.call({"Sweep": True})
    assert "killed" not in answers.answers, "a function that Lambda lets live may be at work"
    let_pass(gate.cloud, LOST_AFTER_S)
    gate.call({"Sweep": True})
    assert answers.answers["killed"]["Status"] == "SUCCESS"
    assert answers.answers["killed"]["Data"]["Verdict"] == gate.cloud.stack(gate.stack_name).output("Verdict")
    assert len(dying.unsent) == DELIVERIES


def test_a_deletion_stops_the_load_and_leaves_nothing(
    gate: Gate, cdk: RunCdk, answers: CloudFormation, runtime: PacedRuntime
) -> None:
    """The trial is started as CloudFormation's request would; the deletion is CloudFormation's own."""
    bucket = gate.bucket
    with runtime.answers_of(SLOW_TOKEN_S):
        gate.begin_by_hand("deleted", answers.url)
        ended = cdk("destroy", "--all", "--force", "--app", gate.assembly)
    assert ended.exit_code == 0, ended.output
    assert gate.cloud.leftovers(gate.stack_name) == []
    buckets = gate.cloud.client("s3").list_buckets()["Buckets"]
    assert bucket not in [each["Name"] for each in buckets]
    assert answers.answers["deleted"]["Data"]["Verdict"] == "error", "the trial that was stopped was answered too"
