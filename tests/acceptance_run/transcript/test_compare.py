"""Two transcripts side by side: nothing is told of equal ones, and each kind of difference has its rule."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest
from botocore.exceptions import ClientError

from seatrial_base.errors import SpecError
from tests.acceptance import test_endpoint as endpoint_cases
from tests.acceptance import test_questions as cases
from tests.acceptance.transcript.compare import differences, profile_text, read_profile
from tests.acceptance.transcript.lines import (
    AnswerLine,
    CallLine,
    Line,
    Refused,
    RunLine,
    StackEventLine,
    ToolLine,
    written,
)
from tests.acceptance.transcript.profile import profile_of
from tests.acceptance.transcript.recorder import Recorder
from tests.tools import Ended

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from tests.acceptance.transcript.lines import Target

CASE = "test_update"
CASES = {
    "capacity": cases.test_what_becomes_of_a_component_without_room,
    "same-configuration": cases.test_what_an_update_to_the_same_configuration_does,
    "update-window": cases.test_how_a_change_is_refused_while_another_one_is_under_way,
    "absent-component": cases.test_which_error_an_absent_component_gives_the_trials_role,
}


def run(target: Target, environment: str) -> RunLine:
    return RunLine(target=target, environment=environment, region="us-east-1", at="2026-11-24T00:00:00+00:00")


def call(
    *, reply: JsonValue = None, error: Refused | None = None, at_s: float = 0.0, environment: str = "local"
) -> CallLine:
    return CallLine(
        case=CASE,
        at_s=at_s,
        took_s=0.1,
        service="sagemaker",
        operation="DescribeInferenceComponent",
        request={"InferenceComponentName": f"{environment}-chat-model"},
        reply=reply,
        error=error,
    )


def event(status: str, reason: str = "", environment: str = "local") -> StackEventLine:
    return StackEventLine(
        case=CASE,
        at="2026-11-24T00:00:00+00:00",
        stack=f"seatrial-{environment}-chat",
        logical_id="Component",
        type="AWS::SageMaker::InferenceComponent",
        status=status,
        reason=reason,
    )


def answer(told: JsonValue) -> AnswerLine:
    return AnswerLine(
        case=CASE, question="absent-component", asked="Which error?", assumed="ValidationException", answer=told
    )


def embedded(*lines: Line) -> Sequence[Line]:
    return (run("embedded", "local"), *lines)


def account(*lines: Line, environment: str = "local") -> Sequence[Line]:
    return (run("account", environment), *lines)


def rules(one: Sequence[Line], other: Sequence[Line]) -> list[str]:
    return [finding.rule for finding in differences(profile_of(one), profile_of(other))]


STATES = [call(reply={"InferenceComponentStatus": status}) for status in ("Creating", "Creating", "InService")]
MISSING = Refused(code="ValidationException", message='Could not find "local-chat-model-1f2e3d4c"', status=400)


def test_equal_transcripts_have_no_difference() -> None:
    lines: list[Line] = [
        *STATES,
        call(error=MISSING),
        event("UPDATE_COMPLETE"),
        answer({"code": "ValidationException"}),
    ]
    assert rules(embedded(*lines), embedded(*lines)) == []


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    profile = profile_of(embedded(*STATES, call(error=MISSING), event("UPDATE_FAILED", "no room"), answer(["a", 1])))
    file = tmp_path / "profile.json"
    file.write_text(profile_text(profile), encoding="utf-8")
    assert read_profile(file) == profile
    with pytest.raises(SpecError, match="SEA628: No such file"):
        read_profile(tmp_path / "absent.json")


def test_names_of_runs_environments_and_times_are_none() -> None:
    theirs = Refused(code="ValidationException", message='Could not find "sandbox-chat-model-9a8b7c6d"', status=400)
    ours: list[Line] = [call(error=MISSING), event("UPDATE_FAILED", "failed at 2026-11-24T10:00:00Z, request 12")]
    others: list[Line] = [
        call(error=theirs, environment="sandbox"),
        event("UPDATE_FAILED", "failed at 2027-01-01T11:22:33Z, request 7", environment="sandbox"),
    ]
    assert rules(account(*others, environment="sandbox"), embedded(*ours)) == []


def test_another_code_is_told_with_both_wordings() -> None:
    denied = Refused(code="AccessDeniedException", message="User is not authorized", status=400)
    (found,) = differences(
        profile_of(account(call(error=denied))), profile_of(embedded(call(error=MISSING))), "t.jsonl"
    )
    assert (found.rule, found.severity) == ("SEA621", "error")
    assert f"{found.place}" == f"t.jsonl: {CASE}: sagemaker:DescribeInferenceComponent"
    assert "AccessDeniedException (User is not authorized)" in found.message
    assert 'ValidationException (Could not find "ENV-chat-model-HEX")' in found.message


def test_other_words_of_the_same_code_are_told() -> None:
    other = Refused(code="ValidationException", message="The component does not exist.", status=400)
    assert rules(account(call(error=other)), embedded(call(error=MISSING))) == ["SEA622"]


def test_other_words_of_a_failed_resource_are_told() -> None:
    ours, theirs = event("UPDATE_FAILED", "no room"), event("UPDATE_FAILED", "not enough capacity")
    assert rules(account(theirs), embedded(ours)) == ["SEA622"]


def test_another_sequence_of_statuses_is_told() -> None:
    longer = [*STATES[:1], call(reply={"InferenceComponentStatus": "Updating"}), *STATES[1:]]
    (found,) = differences(profile_of(account(*longer)), profile_of(embedded(*STATES)))
    assert (found.rule, found.severity) == ("SEA623", "warning")
    assert "Creating → Updating → Creating → InService" in found.message


def test_a_status_that_fewer_looks_miss_is_a_note() -> None:
    longer = [*STATES[:1], call(reply={"InferenceComponentStatus": "Updating"}), *STATES[1:]]
    (found,) = differences(profile_of(account(*STATES)), profile_of(embedded(*longer)))
    assert (found.rule, found.severity) == ("SEA623", "note")
    (unfinished,) = differences(profile_of(account(*STATES[:1])), profile_of(embedded(*STATES)))
    assert unfinished.severity == "warning"


def test_another_hash_of_a_logical_id_is_none() -> None:
    ours = event("CREATE_COMPLETE").model_copy(update={"logical_id": "EndpointModelRole09A1B2C30000000A"})
    theirs = ours.model_copy(update={"logical_id": "EndpointModelRoleFFDDEE001111111B"})
    assert rules(account(theirs), embedded(ours)) == []


def test_another_sequence_of_events_is_told() -> None:
    rolled_back = [event("UPDATE_IN_PROGRESS"), event("UPDATE_FAILED")]
    assert rules(account(*rolled_back), embedded(event("UPDATE_IN_PROGRESS"), event("UPDATE_COMPLETE"))) == ["SEA623"]


@pytest.mark.parametrize("there", ["account", "embedded"])
def test_a_field_of_one_side_is_told(there: str) -> None:
    more, less = call(reply={"Name": "x", "FailureReason": "y"}), call(reply={"Name": "x"})
    ours, theirs = (less, more) if there == "account" else (more, less)
    (found,) = differences(profile_of(account(theirs)), profile_of(embedded(ours)))
    assert found.rule == "SEA624"
    assert found.message == f"the {'account' if there == 'account' else 'embedded AWS'} alone tells FailureReason"


def test_keys_of_the_callers_own_are_no_fields() -> None:
    one, other = call(reply={"Name": "x", "Tags": [{"Key": "a"}]}), call(reply={"Name": "x", "Tags": []})
    assert rules(account(one), embedded(other)) == []


def test_times_of_another_order_of_magnitude_are_a_note() -> None:
    slow, quick = [call(), call(at_s=600)], [call(), call(at_s=3)]
    (found,) = differences(profile_of(account(*slow)), profile_of(embedded(*quick)))
    assert (found.rule, found.severity) == ("SEA625", "note")
    assert rules(account(call(), call(at_s=20)), embedded(*quick)) == []


def test_another_answer_to_a_question_is_an_error() -> None:
    (found,) = differences(profile_of(account(answer("AccessDenied"))), profile_of(embedded(answer("Validation"))))
    assert (found.rule, found.severity) == ("SEA626", "error")
    row = "behaviours.json, assumed: A component that is absent is answered with ValidationException, 'Could not find'."
    assert found.message.endswith(f"the answer is 'AccessDenied', of the embedded AWS 'Validation'; {row}")


@pytest.mark.parametrize("question", ["capacity", "same-configuration", "update-window", "absent-component"])
def test_a_question_whose_answer_is_another_one_is_recorded_and_does_not_fail(question: str, tmp_path: Path) -> None:
    """A live configuration is refused, a component is created without end, a change beside another one is accepted."""
    refused = ClientError({"Error": {"Code": "Other", "Message": "no"}}, "Any")
    target = MagicMock(environment="sandbox", recorder=Recorder(tmp_path / "transcript.jsonl"), run_id="")
    target.client.return_value.update_endpoint.side_effect = refused
    target.client.return_value.describe_inference_component.return_value = {"InferenceComponentStatus": "Creating"}
    chat = MagicMock(endpoint_name="sandbox-chat", component="sandbox-chat-model", target=target)
    chat.described.side_effect = [{"LastModifiedTime": at} for at in (1, 2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "session_of_role", MagicMock())
        patch.setattr(cases, "filled", MagicMock())
        patch.setattr(cases, "room_for_one", lambda *_: {})
        CASES[question](chat, target)
    (line,) = (tmp_path / "transcript.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["question"] == question


def test_an_update_that_ends_for_want_of_a_right_is_no_lack_of_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack, words = "seatrial-sandbox-chat", "User: arn:… is not authorized to perform: cloudwatch:DescribeAlarms"
    seen = MagicMock(failures=[], requests=1, least_copies=endpoint_cases.SET_BY_HAND)
    target = MagicMock(recorder=Recorder(tmp_path / "transcript.jsonl"))
    chat = MagicMock(stack=stack, target=target)
    chat.update.return_value = Ended(1, ""), seen
    chat.copies.return_value, chat.left.return_value = endpoint_cases.SET_BY_HAND, []
    target.events.return_value = [
        {
            "LogicalResourceId": "Candidate",
            "ResourceType": "Custom::CandidateTrial",
            "ResourceStatus": "UPDATE_FAILED",
            "ResourceStatusReason": words,
        },
        {"LogicalResourceId": stack, "ResourceStatus": "UPDATE_IN_PROGRESS"},
    ]
    monkeypatch.setattr(endpoint_cases, "filled", MagicMock())
    monkeypatch.setattr(endpoint_cases, "emptied", MagicMock())
    with pytest.raises(AssertionError, match="not of a right"):
        endpoint_cases.test_without_room_an_update_ends_and_users_keep_what_they_have(chat, target)


def test_what_one_side_alone_prepares_is_none() -> None:
    deployed = ToolLine(case=CASE, at_s=0, took_s=1, command=("cdk", "deploy"), exit_code=0, output="")
    synthesized = deployed.model_copy(update={"command": ("cdk", "synth", "--quiet")})
    bootstrapped = deployed.model_copy(update={"command": ("cdk", "bootstrap", "aws://ACCOUNT/us-east-1")})
    assert rules(account(synthesized, deployed), embedded(bootstrapped, deployed)) == []


def test_statuses_of_events_are_told_by_resource_alone() -> None:
    def told(*statuses: str) -> CallLine:
        events: JsonValue = {"StackEvents": [{"ResourceStatus": each} for each in statuses]}
        return call(reply=events).model_copy(update={"service": "cloudformation", "operation": "DescribeStackEvents"})

    done, failed = told("UPDATE_COMPLETE"), told("UPDATE_FAILED", "UPDATE_IN_PROGRESS")
    assert rules(account(failed), embedded(done)) == []


def test_another_end_of_a_command_is_an_error() -> None:
    ended = [ToolLine(case=CASE, at_s=0, took_s=1, command=("cdk",), exit_code=code, output="") for code in (0, 1)]
    assert rules(account(ended[1]), embedded(ended[0])) == ["SEA621"]


def test_what_one_side_alone_ran_is_a_note() -> None:
    found = list(differences(profile_of(account(call())), profile_of(embedded())))
    assert [(each.rule, each.severity) for each in found] == [("SEA627", "note")]


def compared(
    tmp_path: Path, theirs: Sequence[Line], ours: Sequence[Line], *options: str
) -> subprocess.CompletedProcess[str]:
    files: list[Path] = []
    for name, lines in (("theirs", theirs), ("ours", ours)):
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text("".join(map(written, lines)))
    command = [
        sys.executable,
        "-m",
        "tests.acceptance.transcript.compare",
        str(files[0]),
        "--with",
        str(files[1]),
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)


def test_the_command_ends_with_0_without_a_difference_and_shows_the_cases(tmp_path: Path) -> None:
    ended = compared(tmp_path, account(*STATES), embedded(*STATES))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1].split() == [CASE, "none", "0", "0"]


def test_the_command_ends_with_1_and_names_the_rule(tmp_path: Path) -> None:
    ended = compared(tmp_path, account(answer("a")), embedded(answer("b")), "--format", "json")
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["command"], told["counts"]["error"]) == (1, "compare", 1)
    assert [each["rule"] for each in told["findings"]] == ["SEA626"]


def test_the_command_ends_with_2_without_a_transcript(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.acceptance.transcript.compare", "absent.jsonl"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("absent.jsonl: SEA628: No such file or directory")
