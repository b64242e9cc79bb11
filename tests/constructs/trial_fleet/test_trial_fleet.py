from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.smoke_benchmark.runtime_code import runtime_archive
from seatrial_cdk.unnamed_resources import UNNAMED_RESOURCE_ACTIONS

if TYPE_CHECKING:
    from aws_cdk.assertions import Template

NOT_STARTED = {"ErrorEquals": ["Lambda.TooManyRequestsException"], "IntervalSeconds": 1, "MaxAttempts": 2}
STEPS = ("Begin", "Choose", "Absorb", "Conclude")


@pytest.fixture(scope="module")
def definition(template: Template) -> dict[str, dict[str, object]]:
    """Return the states, with each function's ARN as the role that it plays."""
    (machine,) = template.find_resources("AWS::StepFunctions::StateMachine").values()
    joined = machine["Properties"]["DefinitionString"]["Fn::Join"][1]
    texts = [part if isinstance(part, str) else part["Fn::GetAtt"][0] for part in joined]
    states: dict[str, dict[str, object]] = json.loads("".join(texts))["States"]
    return states


def test_the_course_is_a_loop_over_levels(definition: dict[str, dict[str, object]]) -> None:
    assert {name: state.get("Next", state.get("Type")) for name, state in definition.items()} == {
        "Begin": "Next",
        "Next": "Choice",
        "Choose": "Next",
        "Load": "Absorb",
        "Absorb": "Choose",
        "Conclude": "Done",
        "Done": "Succeed",
        "Abandon": "Abandoned",
        "Abandoned": "Fail",
    }
    assert definition["Next"]["Choices"] == [
        {"Variable": "$.Next", "StringEquals": "choose", "Next": "Choose"},
        {"Variable": "$.Next", "StringEquals": "load", "Next": "Load"},
        {"Variable": "$.Next", "StringEquals": "conclude", "Next": "Conclude"},
    ]
    assert definition["Next"]["Default"] == "Done"


def test_a_level_is_loaded_by_every_worker_at_once(definition: dict[str, dict[str, object]]) -> None:
    load = definition["Load"]
    processor = load["ItemProcessor"]
    assert isinstance(processor, dict)
    assert processor["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert load["MaxConcurrency"] == 40
    assert load["ItemsPath"] == "$.Shares"
    assert load["ItemSelector"] == {"Order.$": "$$.Execution.Input", "Share.$": "$$.Map.Item.Value"}
    assert load["ResultPath"] is None
    # no threshold stands there: AWS Step Functions then fails the level with the first share that is lost
    assert [name for name in load if name.startswith("Tolerated")] == []


def test_a_share_is_repeated_only_when_it_was_never_started(definition: dict[str, dict[str, object]]) -> None:
    processor = definition["Load"]["ItemProcessor"]
    assert isinstance(processor, dict)
    assert processor["States"]["Share"]["Retry"] == [{**NOT_STARTED, "BackoffRate": 1}]
    assert definition["Begin"]["Retry"] == [NOT_STARTED]


def test_whatever_fails_is_written_down(definition: dict[str, dict[str, object]]) -> None:
    caught = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Abandon"}]
    assert {name: definition[name]["Catch"] for name in (*STEPS, "Load")} == dict.fromkeys((*STEPS, "Load"), caught)
    assert definition["Abandon"]["Parameters"] == {
        "Step": "abandon",
        "Failure.$": "$.Failure",
        "Order.$": "$$.Execution.Input",
    }


def test_steps_and_workers_are_functions_of_one_archive(template: Template) -> None:
    ours = template.find_resources("AWS::Lambda::Function", {"Properties": {"Runtime": "python3.13"}}).values()
    handlers = {function["Properties"]["Handler"].rpartition("runtime.")[2] for function in ours}
    assert handlers == {"fleet_steps.handler", "fleet_worker.handler"}
    assert len({json.dumps(function["Properties"]["Code"]) for function in ours}) == 1
    assert {(f["Properties"]["Timeout"], f["Properties"]["MemorySize"]) for f in ours} == {(900, 1769)}


def test_an_execution_ends_a_function_after_the_budget(template: Template) -> None:
    (machine,) = template.find_resources("AWS::StepFunctions::StateMachine").values()
    assert '"TimeoutSeconds":1500' in json.dumps(machine["Properties"]["DefinitionString"]).replace("\\", "")


def test_a_worker_loads_and_exchanges_documents_no_more(template: Template) -> None:
    worker = statements(template, "Worker")
    assert {action for _, granted, _ in worker for action in granted} == {
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
        "sagemaker:InvokeEndpoint",
        "sagemaker:InvokeEndpointWithResponseStream",
    }
    folders = {
        folder for _, granted, on in worker if "s3:PutObject" in granted for folder in re.findall(r"/(\w+)/\*", on)
    }
    assert folders == {"runs"}


def test_the_machine_starts_children_of_itself_only(template: Template) -> None:
    (machine,) = template.find_resources("AWS::StepFunctions::StateMachine")
    started = [on for _, granted, on in statements(template, "Fleet") if "states:StartExecution" in granted]
    assert started == [json.dumps({"Ref": machine})]


def test_only_the_documented_actions_are_allowed_on_everything(template: Template) -> None:
    every = {action for _, granted, on in statements(template, "") if on == '"*"' for action in granted}
    assert every <= set(UNNAMED_RESOURCE_ACTIONS)


def test_every_log_ends_after_a_month(template: Template) -> None:
    template.resource_count_is("AWS::Logs::LogGroup", 2)
    template.all_resources_properties("AWS::Logs::LogGroup", {"RetentionInDays": 30})


def test_cfn_lint_finds_nothing(folder: Path) -> None:
    lint = str(Path(sys.executable).with_name("cfn-lint"))
    text = str(folder / "fleet.template.json")
    command = [lint, "--ignore-checks", "W3005", "--regions", "us-east-1", "eu-west-1", "--template", text]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (linted.stdout, linted.stderr, linted.returncode) == ("", "", 0)


@pytest.mark.parametrize("module", ["fleet_steps", "fleet_worker"])
def test_a_handler_starts_from_the_archive_with_the_standard_library_alone(tmp_path: Path, module: str) -> None:
    archive = tmp_path / "runtime.zip"
    archive.write_bytes(runtime_archive())
    package = "seatrial_cdk.smoke_benchmark.runtime"
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import {package}.{module} as m; print(m.handler.__name__)"
    )
    started = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (started.stdout, started.stderr) == ("handler\n", "")


def statements(template: Template, role: str) -> list[tuple[str, list[str], str]]:
    """Return role, actions and resources of every statement of roles whose name holds a word."""
    return [
        (name, [each["Action"]] if isinstance(each["Action"], str) else each["Action"], json.dumps(each["Resource"]))
        for policy in template.find_resources("AWS::IAM::Policy").values()
        for name in [policy["Properties"]["Roles"][0]["Ref"]]
        if role in name
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
