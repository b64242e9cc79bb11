"""Calls, commands and events of stacks become lines; what nobody may read is in none of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError

from seatrial_base.errors import SpecError
from seatrial_laptop import lifecycle
from tests.acceptance.transcript.lines import CallLine, RunLine, read_transcript
from tests.acceptance.transcript.recorder import Recorder
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_sagemaker import SageMakerClient

LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
RUN = RunLine(target="embedded", environment="local", region="us-east-1", at="2026-11-24T00:00:00+00:00")


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    made = Recorder(tmp_path / "transcript.jsonl", case="a case")
    made.begin(RUN)
    return made


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lifecycle.LocalAws]:
    state_dir = tmp_path_factory.mktemp("aws")
    try:
        yield lifecycle.start_embedded_aws(state_dir=state_dir)
    finally:
        lifecycle.stop_embedded_aws(state_dir)


def calls(recorder: Recorder) -> list[CallLine]:
    return [line for line in read_transcript(recorder.file) if isinstance(line, CallLine)]


def watched(recorder: Recorder, local: lifecycle.LocalAws) -> SageMakerClient:
    with environment(lifecycle.child_variables(local)):
        session = boto3.Session()
        recorder.watch(session.events)
        return session.client("sagemaker")


def test_a_refused_call_is_written_with_its_words(recorder: Recorder, local: lifecycle.LocalAws) -> None:
    client = watched(recorder, local)
    with pytest.raises(ClientError) as refused:
        client.describe_inference_component(InferenceComponentName="absent")
    (line,) = calls(recorder)
    assert (line.service, line.operation, line.case) == ("sagemaker", "DescribeInferenceComponent", "a case")
    assert line.request == {"InferenceComponentName": "absent"}
    assert line.reply is None
    assert line.error
    told = refused.value.response["Error"]
    message = told["Message"].replace("000000000000", "ACCOUNT")
    assert (line.error.code, line.error.message, line.error.status) == (told["Code"], message, 400)


def test_the_same_answer_is_written_once_a_case(
    recorder: Recorder, local: lifecycle.LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = watched(recorder, local)
    for _ in range(3):
        client.list_models(NameContains="never-there")
    monkeypatch.setattr(recorder, "case", "another case")
    client.list_models(NameContains="never-there")
    assert [(line.case, line.reply) for line in calls(recorder)] == [
        ("a case", {"Models": []}),
        ("another case", {"Models": []}),
    ]


def test_another_answer_tells_how_often_the_one_before_came(recorder: Recorder, local: lifecycle.LocalAws) -> None:
    client = watched(recorder, local)
    for _ in range(3):
        client.list_models(NameContains="counted")
    role = "arn:aws:iam::000000000000:role/an-execution-role"
    client.create_model(ModelName="counted", ExecutionRoleArn=role, PrimaryContainer={"Image": LMI})
    client.list_models(NameContains="counted")
    client.delete_model(ModelName="counted")
    assert [line.same_before for line in calls(recorder) if line.operation == "ListModels"] == [0, 2]


def test_no_answer_is_an_error_of_its_kind(recorder: Recorder) -> None:
    session = boto3.Session("AKIAIOSFODNN7EXAMPLE", "secret", region_name="us-east-1")
    recorder.watch(session.events)
    client = session.client(
        "sagemaker", endpoint_url="http://127.0.0.1:9", config=Config(retries={"total_max_attempts": 1})
    )
    with pytest.raises((EndpointConnectionError, ConnectionClosedError)):
        client.list_models()
    (line,) = calls(recorder)
    assert line.error
    assert (line.error.code, line.error.status) == ("EndpointConnectionError", 0)


def test_a_command_is_written_without_what_it_shows(recorder: Recorder) -> None:
    recorder.tool(["cdk", "deploy", "aws://123456789012"], 0.0, 1, "token hf_abcdefghijklmnopqrstuvwxyz0123")
    text = recorder.file.read_text()
    assert "aws://ACCOUNT" in text
    assert "abcdefghijklmnop" not in text


def test_an_event_of_a_stack_is_written_once_and_in_its_order(recorder: Recorder) -> None:
    def event(number: int) -> dict[str, object]:
        return {
            "EventId": f"{number}",
            "Timestamp": datetime(2026, 11, 24, 0, 0, (number + 1) // 2, tzinfo=UTC),
            "StackName": "seatrial-local-chat",
            "LogicalResourceId": "Endpoint",
            "ResourceType": "AWS::SageMaker::Endpoint",
            "ResourceStatus": f"STATUS_{number}",
        }

    recorder.stack_events([event(2), event(1)])
    recorder.stack_events([event(3), event(2), event(1)])
    told = [line.status for line in read_transcript(recorder.file) if line.kind == "stack_event"]
    assert told == ["STATUS_1", "STATUS_2", "STATUS_3"]


def test_a_line_that_a_kill_cut_is_left_out(recorder: Recorder) -> None:
    with recorder.file.open("a") as out:
        out.write('{"kind":"call","ca')
    assert read_transcript(recorder.file) == (RUN,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "its first line tells no run"), ('{"kind":"call"}\n', "no line of a transcript"), ("no JSON\n", "no line")],
)
def test_what_is_no_transcript_is_told(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text)
    with pytest.raises(SpecError, match=problem) as told:
        read_transcript(file)
    assert [each.rule for each in told.value.problems] == ["SEA628"]
