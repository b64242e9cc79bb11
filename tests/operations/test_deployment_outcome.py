"""Every state that a deployment can end in has its line and its exit code."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import typer

from seatrial.cli.deploy import deploy_command
from seatrial.documents.live import LiveComponent, LiveEndpoint
from seatrial.operations.deployment_outcome import DeployResult, OutcomeKind, Snapshot, outcome_before, outcomes_of
from seatrial.operations.doctor.facts import ResourceState, StackFacts
from seatrial.operations.drift.trials import LastTrial
from seatrial_base.errors import SpecError
from tests.constructs.conftest import passing_result
from tests.docs.test_commands import ROOT, mistakes

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

PASS = passing_result()
OUTPUTS = {"PlanDigest": "b", "EndpointConfigName": "config-2", "ModelName": "model-2", "Verdict": "pass"}
DEPLOYMENT = cast("Deployment", SimpleNamespace(plan=SimpleNamespace(digest="b")))
SPEC = "endpoints/llama-2-7b-chat.yaml"
BACK, SERVES = "UPDATE_ROLLBACK_COMPLETE", "chat serves plan b (x)"
SLOW = f"slow; rolled back; {SERVES}"
REASON = "The sea trial of chat {}: slow; what serves was not changed (result: s3://b/r.json)"


def snapshot(status: str = "UPDATE_COMPLETE", event: str = "2", **more: Any) -> Snapshot:  # noqa: ANN401 (parts of it)
    """Return an endpoint that serves, but for the parts that are named."""
    cause = ResourceState("R", "", "AWS::SageMaker::Endpoint", "UPDATE_FAILED", more.get("reason", ""))
    stack = StackFacts(name="s", existence="found", status=status, failures=(cause,), last_event=event)
    verdict = replace(PASS.verdict, status=more.get("verdict", "pass"))
    result = replace(PASS, verdict=verdict, request=replace(PASS.request, manner=more.get("manner", "load")))
    return Snapshot(
        name="chat",
        stack=replace(stack, outputs={**OUTPUTS, "TrialReportUri": "s3://b/r.md", **more.get("outputs", {})}),
        endpoint=LiveEndpoint(existence="found", status=more.get("endpoint", "InService"), config="x"),
        trial=LastTrial(result),
        components=(LiveComponent(name="c", status=more.get("component", "InService"), copies=1, desired=1),),
        unread=more.get("denied", ()),
    )


STATES = {
    OutcomeKind.TRIAL_FAILED: (snapshot(BACK, reason=REASON.format("failed")), f"{SLOW}; report: s3://b/r.md; next: "),
    OutcomeKind.TRIAL_INCONCLUSIVE: (snapshot(BACK, reason=REASON.format("was inconclusive")), "slow; rolled back; "),
    OutcomeKind.TRIAL_ERROR: (snapshot(BACK, reason=REASON.format("failed to run")), f"{SLOW}; next: "),
    OutcomeKind.ALARM: (snapshot(BACK, reason="an Alarm is in ALARM"), "R (AWS::SageMaker::Endpoint): an Alarm "),
    OutcomeKind.ROLLED_BACK: (snapshot(BACK, reason="no quota"), "R (AWS::SageMaker::Endpoint): no quota; rolled back"),
    OutcomeKind.ROLLBACK_FAILED: (snapshot("UPDATE_ROLLBACK_FAILED", "1"), "stack s is UPDATE_ROLLBACK_FAILED: R"),
    OutcomeKind.STACK_FAILED: (snapshot("CREATE_FAILED"), "stack s is CREATE_FAILED: R (AWS::SageMaker::Endpoint): U"),
    OutcomeKind.UNFINISHED: (snapshot("UPDATE_IN_PROGRESS"), "stack s is UPDATE_IN_PROGRESS; "),
    OutcomeKind.COMPONENT: (snapshot(BACK, "1", component="Failed"), "no changes, and a deployment without any does n"),
    OutcomeKind.ENDPOINT: (snapshot(endpoint="OutOfService"), "stack s is UPDATE_COMPLETE; endpoint chat: OutOfServ"),
    OutcomeKind.NOT_DEPLOYED: (snapshot(outputs={"PlanDigest": "a"}), "stack s has plan a, and b is locked; chat "),
    OutcomeKind.UNKNOWN: (snapshot(denied=("stack s: denied",)), "could not be read: stack s: denied; next: "),
    OutcomeKind.NOT_TRIED: (snapshot(outputs={"ModelName": "m"}), "the stack names the trial of another configuration"),
    OutcomeKind.KEPT_FAILED: (snapshot(verdict="fail"), "fail in its trial of 2026-11-21T01:00 UTC: objective met; "),
    OutcomeKind.KEPT_INCONCLUSIVE: (snapshot(verdict="inconclusive"), "inconclusive in its trial of "),
    OutcomeKind.UNCHANGED: (snapshot(BACK, "1"), "pass in its trial of 2026-11-21T01:00 UTC: objective met; chat s"),
    OutcomeKind.VERIFIED: (snapshot(manner="verify"), "pass in its trial of "),
    OutcomeKind.PASSED: (snapshot(), f"pass in its trial of 2026-11-21T01:00 UTC: objective met; {SERVES}; report: s3"),
}


@pytest.mark.parametrize("kind", STATES)
def test_each_state_has_its_line(kind: OutcomeKind) -> None:
    after, words = STATES[kind]
    outcome = next(outcomes_of(snapshot(event="1"), after, DEPLOYMENT))
    assert outcome.line(Path(SPEC), "dev").startswith(f"{kind.value.head}: {words}")
    assert outcome.kind is kind


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("role is not authorized to perform: cloudwatch:DescribeAlarms on alarm errors in ALARM", "ROLLED_BACK"),
        ("Inference component dev-alarm-bot failed: the health check was triggered", "ROLLED_BACK"),
        ("alarm errors does not exist", "ROLLED_BACK"),
        ("Alarm(s) [dev-chat-errors] breached; the update was rolled back", "ALARM"),
        ("the following alarms went into the ALARM state: errors", "ALARM"),
    ],
)
def test_only_an_alarm_that_was_raised_is_one(reason: str, kind: str) -> None:
    outcome = next(outcomes_of(snapshot(event="1"), snapshot(BACK, reason=reason), DEPLOYMENT))
    assert outcome.kind is OutcomeKind[kind]


def test_what_never_began_is_not_deployed_and_what_is_busy_never_begins() -> None:
    error = next(outcomes_of(snapshot(), snapshot(), DEPLOYMENT, "SEA402: stale"))
    assert next(outcomes_of(snapshot(denied=("x",)), snapshot(), DEPLOYMENT)).kind is OutcomeKind.UNKNOWN
    assert error.line(Path(SPEC), "dev") == f"NOT DEPLOYED: SEA402: stale; {SERVES}; next: seatrial diff {SPEC} -e dev"
    refused = [outcome_before(snapshot(status)) for status in ("DELETE_IN_PROGRESS", "REVIEW_IN_PROGRESS")]
    assert [each and each.kind for each in refused] == [OutcomeKind.BUSY, None]


@pytest.mark.parametrize("kind", [None, *(kind for kind in OutcomeKind if kind.value.next)])
def test_each_next_command_is_one_of_the_cli_and_opens_the_spec(
    kind: OutcomeKind | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("seatrial.cli.deploy._account", lambda _: (None, snapshot))
    outcome = kind and DeployResult(kind, "why")
    monkeypatch.setattr("seatrial.operations.deployment_outcome.outcome_before", lambda _: outcome)
    with pytest.raises((typer.Exit, SpecError)):
        deploy_command(Path(SPEC).stem, "dev")
    shown = capsys.readouterr().out
    words = shlex.split(shown.partition("next: ")[2] if kind else shown.partition("`")[2].partition("`")[0])
    assert list(mistakes(words)) == []
    assert [Path(word).is_file() for word in words if "llama" in word] == [True]
