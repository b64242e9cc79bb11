from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aws_cdk.assertions import Match

from seatrial_cdk.managed_benchmark.runtime_code import runtime_archive

if TYPE_CHECKING:
    from aws_cdk.assertions import Template

PACKAGE = "seatrial_cdk.managed_benchmark.runtime"
ACTIONS = ("Create", "Describe", "Stop", "Delete")


def test_the_job_is_started_by_a_custom_resource(template: Template) -> None:
    (workload,) = template.find_resources("AWS::SageMaker::AIWorkloadConfig").values()
    (bucket,) = template.find_resources("AWS::S3::Bucket", {"Properties": {"BucketEncryption": Match.any_value()}})
    (resource,) = template.find_resources("Custom::ManagedBenchmark").values()
    properties = resource["Properties"]
    assert properties["JobName"].startswith("dev-chat-")
    assert properties["WorkloadConfigName"] == workload["Properties"]["AIWorkloadConfigName"]
    folder = f"/trials/dev-chat/b/managed/{properties['JobName']}"
    assert properties["OutputUri"] == {"Fn::Join": ["", ["s3://", {"Ref": bucket}, folder]]}
    # 45 minutes, and twice 5 minutes for the framework and CloudFormation; an hour at most
    assert (properties["WaitSeconds"], properties["ServiceTimeout"]) == ("2700", "3300")


def test_the_job_waits_for_the_component_the_workload_and_the_roles_policy(template: Template) -> None:
    (resource,) = template.find_resources("Custom::ManagedBenchmark").values()
    kinds = {template.to_json()["Resources"][name]["Type"] for name in resource["DependsOn"]}
    assert kinds == {
        "AWS::SageMaker::InferenceComponent",
        "AWS::SageMaker::AIWorkloadConfig",
        "AWS::IAM::Role",
        "AWS::IAM::Policy",
    }


def test_sagemaker_assumes_the_jobs_role_for_this_account_only(template: Template) -> None:
    template.has_resource_properties(
        "AWS::IAM::Role",
        {
            "AssumeRolePolicyDocument": {
                "Statement": [
                    {
                        "Action": "sts:AssumeRole",
                        "Effect": "Allow",
                        "Principal": {"Service": "sagemaker.amazonaws.com"},
                        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
                    }
                ],
                "Version": "2012-10-17",
            },
        },
    )
    statements = policy_of(template, "JobRole")
    assert {action for each in statements for action in actions(each)} == {
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeInferenceComponent",
        "sagemaker:InvokeEndpoint",
        "sagemaker:InvokeEndpointWithResponseStream",
        "s3:PutObject",
        "kms:Decrypt",
        "kms:GenerateDataKey",
    }
    assert "*" not in [each["Resource"] for each in statements]


def test_only_jobs_of_this_endpoint_are_started_stopped_and_removed(template: Template) -> None:
    own = [each for each in policy_of(template, "OnEvent") if "sagemaker:CreateAIBenchmarkJob" in actions(each)]
    assert [sorted(actions(each)) for each in own] == [sorted(f"sagemaker:{verb}AIBenchmarkJob" for verb in ACTIONS)]
    assert '":ai-benchmark-job/dev-chat-*"' in json.dumps(own[0]["Resource"]).replace('", ":', '":')
    passed = [each for each in policy_of(template, "OnEvent") if actions(each) == ["iam:PassRole"]]
    (role,) = (name for name in template.find_resources("AWS::IAM::Role") if "JobRole" in name)
    assert [each["Resource"] for each in passed] == [{"Fn::GetAtt": [role, "Arn"]}]


def test_is_complete_neither_starts_nor_stops_a_job(template: Template) -> None:
    granted = {action for each in policy_of(template, "IsComplete") for action in actions(each)}
    assert {action for action in granted if action.startswith("sagemaker:")} == {
        "sagemaker:DescribeAIBenchmarkJob",
        "sagemaker:DeleteAIBenchmarkJob",
    }


def test_cfn_lint_finds_nothing(folder: Path) -> None:
    lint = Path(sys.executable).with_name("cfn-lint")
    command = [
        str(lint),
        "--ignore-checks",
        "W3005",
        "--regions",
        "us-east-1",
        "--template",
        str(folder / "managed.template.json"),
    ]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (linted.stdout, linted.stderr, linted.returncode) == ("", "", 0)


@pytest.mark.parametrize("module", ["on_event", "is_complete"])
def test_a_handler_starts_from_the_archive_with_the_standard_library_alone(tmp_path: Path, module: str) -> None:
    archive = tmp_path / "managed.zip"
    archive.write_bytes(runtime_archive())
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import {PACKAGE}.{module} as m; print(m.handler.__name__)"
    )
    started = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (started.stdout, started.stderr) == ("handler\n", "")


def policy_of(template: Template, role: str) -> list[dict[str, object]]:
    policies = template.find_resources("AWS::IAM::Policy")
    return [
        statement
        for name, policy in policies.items()
        if role in name and "framework" not in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def actions(statement: dict[str, object]) -> list[str]:
    named = statement["Action"]
    return [named] if isinstance(named, str) else [str(each) for each in named] if isinstance(named, list) else []
