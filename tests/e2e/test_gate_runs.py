"""The gate's functions at work: a trial longer than one of them, one that is killed, and requests that end a trial.

The runner's function may run for 25 s here instead of its minutes: it takes its time from Lambda, so that a short
function pauses as a long one does. It loads a runtime API whose answers take the same time on every machine, so that
the levels together never fit into one function.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trial_service.runtime.ownership import read_turn
from tests.e2e.gate import (
    ENDPOINT,
    STACK,
    Gate,
    awaited,
    begin_by_hand,
    boto3_client,
    events_queue,
    kill_runner,
    measured,
    request_of,
)
from tests.e2e.paced_runtime import paced_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.demo.cloud import Cloud
    from tests.e2e.conftest import Processes, RunCdk, Workspace

pytestmark = pytest.mark.e2e

APP = f"{sys.executable} {Path(__file__).with_name('gate_runs_app.py')}"
LEVELS = [1, 2, 3]  # of 6 rounds of 16 tokens, 4.8 s each
CANCELLED = "CloudFormation went on without this trial: its request was cancelled or deleted"


@pytest.fixture(scope="module")
def runtime_url() -> Iterator[str]:
    with paced_runtime() as url:
        yield url


@pytest.fixture(scope="module")
def gate(cloud: Cloud, cdk: RunCdk, workspace: Workspace, runtime_url: str, processes: Processes) -> Iterator[Gate]:
    """Deploy the gate, and kill the runner while it measures."""
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
    assembly = workspace.folder / "runs.out"
    context = (*workspace.synth_arguments(), "-c", f"paced_runtime={runtime_url}")
    command: tuple[str | Path, ...] = (
        "deploy",
        STACK,
        "--require-approval",
        "never",
        "--output",
        assembly,
        "--app",
        APP,
        *context,
    )
    deploying = Gate(cloud, assembly, events_queue(cloud))
    try:
        with ThreadPoolExecutor(1) as beside:
            deployment = beside.submit(lambda: cdk(*command))
            killed_run = kill_runner(deploying, processes, deployment.done)
            ended = deployment.result()
        assert ended.exit_code == 0, ended.output
        yield replace(deploying, killed_run=killed_run)
    finally:
        if (assembly / "manifest.json").exists():
            cdk("destroy", "--all", "--force", "--app", assembly)


def test_a_trial_goes_on_in_the_next_run_after_a_pause_and_after_its_runner_was_killed(gate: Gate) -> None:
    assert gate.cloud.stack(STACK).status == "CREATE_COMPLETE"
    (document,) = (key for key in gate.keys(f"trials/{ENDPOINT}/") if key.endswith(".json"))
    request_id = document.rpartition("/")[2].removesuffix(".json")
    runs = [key for key in gate.keys(f"runs/{ENDPOINT}/{request_id}/") if "/run-" in key]
    paused = [json.loads(gate.text(key))["paused"] for key in runs]
    assert len(runs) > gate.killed_run >= 2
    assert paused == [number not in {gate.killed_run, len(runs)} for number in range(1, len(runs) + 1)]
    turn, progress, result = read_turn(gate.store, ENDPOINT), measured(gate.store, request_id), gate.result()
    assert turn is not None
    assert (turn.run, turn.restarts) == (len(runs), 1)
    assert progress is not None
    assert progress.started_at == result.started_at, "no run began the trial anew"
    assert [level.concurrency for level in progress.levels] == LEVELS, "each level was measured once"
    assert [level.concurrency for level in result.levels] == LEVELS
    assert result.stopped_because == "every level was measured"


def test_a_run_that_has_begun_can_be_begun_by_no_second_function(gate: Gate) -> None:
    store = gate.store
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
    assert result.live.proven
    assert f"- live: {result.live.because}" in report
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


def test_the_request_that_follows_a_cancelled_one_stops_its_load(gate: Gate) -> None:
    """An update to what is deployed already is answered at once, as a rollback is, and nobody waits for the trial."""
    begin_by_hand(gate, "cancelled")
    following = {**request_of(gate, "Update", "following"), "OldResourceProperties": gate.properties()}
    answer = gate.call("OnEvent", {**following, "PhysicalResourceId": f"smoke-benchmark-{ENDPOINT}"})
    outputs = gate.cloud.stack(STACK).outputs
    data = answer["Data"]
    assert isinstance(data, dict)
    assert {name: data[name] for name in ("Verdict", "KneeConcurrencyPerCopy", "TargetConcurrencyPerCopy")} == {
        name: outputs[name] for name in ("Verdict", "KneeConcurrencyPerCopy", "TargetConcurrencyPerCopy")
    }
    document = f"trials/{ENDPOINT}/{outputs['PlanDigest']}/cancelled.json"
    awaited(lambda: gate.keys(document))
    assert json.loads(gate.text(document)) == {"error": CANCELLED}


def test_a_deletion_stops_the_load_and_leaves_nothing(gate: Gate, cdk: RunCdk) -> None:
    """The trial is started as CloudFormation's request would; the deletion is CloudFormation's own."""
    begin_by_hand(gate, "deleted")
    bucket = gate.bucket
    ended = cdk("destroy", "--all", "--force", "--app", gate.assembly)
    assert ended.exit_code == 0, ended.output
    assert gate.cloud.leftovers("seatrial-local-runs") == []
    buckets = gate.cloud.client("s3").list_buckets()["Buckets"]
    assert bucket not in [each["Name"] for each in buckets]
