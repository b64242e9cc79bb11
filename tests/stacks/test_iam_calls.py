"""Each call that the trial service's code makes is allowed by its role, and what it must never do is not.

The calls are read from the code; MiniStack's evaluator of IAM policies decides, with conditions.
"""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document

from seatrial_cdk.trials.runtime.outcome import DETAIL_TYPE, SOURCE
from tests.stacks.conftest import KEY_ARN, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aws_cdk.assertions import Template

Json: TypeAlias = Any  # a document of CloudFormation
RUNTIME = ROOT / "constructs" / "seatrial_cdk" / "trials" / "runtime"
BENCH = ROOT / "packages" / "seatrial-load" / "seatrial_load"
ACCOUNT = "eu-west-1:123456789012"
ENDPOINT = f"arn:aws:sagemaker:{ACCOUNT}:endpoint/prod-chat"
COMPONENT = f"arn:aws:sagemaker:{ACCOUNT}:inference-component/prod-chat-model"
LONG = f"arn:aws:sagemaker:{ACCOUNT}:inference-component/prod-a-name-that-was-cut-to-35-ch-0a1b2c3d"
CANDIDATE = f"{COMPONENT}-candidate-0a1b2c3d"
RANKER = f"arn:aws:sagemaker:{ACCOUNT}:inference-component/prod-hr-candidate-ranker-model"
RESULTS = "arn:aws:s3:::results"
WORKFLOW = f"arn:aws:states:{ACCOUNT}:stateMachine:seatrial-prod-trials"
EXECUTION = f"arn:aws:states:{ACCOUNT}:execution:seatrial-prod-trials:1"
LOGS = f"arn:aws:logs:{ACCOUNT}:log-group:/aws/sagemaker/InferenceComponents/prod-chat-model-candidate-0a1b2c3d"
TARGET = f"arn:aws:application-autoscaling:{ACCOUNT}:scalable-target/0a1b2c3d"
STACK = f"arn:aws:cloudformation:{ACCOUNT}:stack/seatrial-prod-chat/0a1b2c3d"
OURS = {"aws:ResourceTag/seatrial:environment": "prod"}
ASKED = {"aws:RequestTag/seatrial:environment": "prod", "aws:RequestTag/seatrial:owner": "trial-service"}
TAGGED = {**OURS, "aws:ResourceTag/seatrial:owner": "trial-service"}
CREATING = {**ASKED, "sagemaker:TaggingAction": "CreateInferenceComponent"}
COPIES = {
    "application-autoscaling:service-namespace": "sagemaker",
    "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
}
EVENT = {"events:source": SOURCE, "events:detail-type": DETAIL_TYPE}

Call: TypeAlias = tuple[str, str, dict[str, str]]
CALLS: dict[str, tuple[Call, ...]] = {
    "create_inference_component": (
        ("sagemaker:CreateInferenceComponent", CANDIDATE, ASKED),
        ("sagemaker:CreateInferenceComponent", ENDPOINT, ASKED),
        ("sagemaker:AddTags", CANDIDATE, CREATING),
    ),
    "delete_inference_component": (
        ("sagemaker:DeleteInferenceComponent", f"{LONG}-candidate-0a1b2c3d", TAGGED),
        ("sagemaker:DeleteInferenceComponent", CANDIDATE, OURS),  # of an older release
    ),
    "delete_log_group": (("logs:DeleteLogGroup", LOGS, {}),),
    "delete_objects": (("s3:DeleteObject", f"{RESULTS}/latest/a.json", {}),),
    "describe_alarms": (
        ("cloudwatch:DescribeAlarms", f"arn:aws:cloudwatch:{ACCOUNT}:alarm:seatrial-prod-chat-errors", {}),
    ),
    "describe_endpoint": (("sagemaker:DescribeEndpoint", ENDPOINT, {}),),
    "describe_execution": (("states:DescribeExecution", EXECUTION, {}),),
    "describe_inference_component": (
        ("sagemaker:DescribeInferenceComponent", COMPONENT, {}),
        ("sagemaker:DescribeInferenceComponent", CANDIDATE, {}),
    ),
    "describe_scalable_targets": (("application-autoscaling:DescribeScalableTargets", "*", {}),),
    "describe_stack_resources": (("cloudformation:DescribeStackResources", "*", {}),),
    "describe_stacks": (("cloudformation:DescribeStacks", STACK, {}),),
    "get_metric_data": (("cloudwatch:GetMetricData", "*", {}), ("cloudwatch:ListMetrics", "*", {})),
    "get_object": (("s3:GetObject", f"{RESULTS}/trials/a.json", {}), ("kms:Decrypt", KEY_ARN, {})),
    "get_parameter": (("ssm:GetParameter", f"arn:aws:ssm:{ACCOUNT}:parameter/seatrial/prod/chat", {}),),
    "invoke_endpoint": (
        ("sagemaker:InvokeEndpoint", ENDPOINT, OURS),
        ("sagemaker:InvokeEndpoint", COMPONENT, OURS),
        ("sagemaker:InvokeEndpointWithResponseStream", ENDPOINT, OURS),
        ("sagemaker:InvokeEndpointWithResponseStream", CANDIDATE, OURS),
    ),
    "list_executions": (("states:ListExecutions", WORKFLOW, {}),),
    "list_inference_components": (("sagemaker:ListInferenceComponents", "*", {}),),
    "list_tags": (("sagemaker:ListTags", CANDIDATE, {}),),
    "list_objects_v2": (("s3:ListBucket", RESULTS, {}),),
    "put_events": (("events:PutEvents", f"arn:aws:events:{ACCOUNT}:event-bus/default", EVENT),),
    "put_object": (("s3:PutObject", f"{RESULTS}/runs/a.json", {}), ("kms:GenerateDataKey", KEY_ARN, {})),
    "put_retention_policy": (("logs:PutRetentionPolicy", LOGS, {}),),
    "register_scalable_target": (
        ("application-autoscaling:RegisterScalableTarget", TARGET, COPIES),
        ("sagemaker:UpdateInferenceComponentRuntimeConfig", COMPONENT, OURS),
        ("sagemaker:DescribeInferenceComponent", COMPONENT, {}),
    ),
    "start_execution": (("states:StartExecution", WORKFLOW, {}),),
    "stop_execution": (("states:StopExecution", EXECUTION, {}),),
    "update_inference_component_runtime_config": (
        ("sagemaker:UpdateInferenceComponentRuntimeConfig", COMPONENT, OURS),
    ),
}
NOT_GRANTED = {
    "describe_model",  # of the command line only: a model's environment may hold a token, its name proves it
    "sign",  # by the policy of the key, which lets the function alone sign
    "publish",  # on the topic of the environment's alarms, granted with it
}

NEVER: tuple[Call, ...] = (
    ("sagemaker:InvokeEndpoint", ENDPOINT.replace("prod-", "dev-"), {**OURS}),
    ("sagemaker:InvokeEndpoint", ENDPOINT, {"aws:ResourceTag/seatrial:environment": "dev"}),
    ("sagemaker:InvokeEndpoint", ENDPOINT, {}),
    ("sagemaker:DescribeInferenceComponent", COMPONENT.replace("prod-", "dev-"), {}),
    ("sagemaker:DeleteEndpoint", ENDPOINT, OURS),
    ("sagemaker:UpdateEndpoint", ENDPOINT, OURS),
    ("sagemaker:DeleteInferenceComponent", COMPONENT, OURS),
    ("sagemaker:DeleteInferenceComponent", COMPONENT, TAGGED),
    ("sagemaker:DeleteInferenceComponent", CANDIDATE, {}),
    ("sagemaker:DeleteInferenceComponent", CANDIDATE, {**TAGGED, "aws:ResourceTag/seatrial:owner": "somebody"}),
    ("sagemaker:DeleteInferenceComponent", RANKER, OURS),
    ("sagemaker:CreateInferenceComponent", COMPONENT, ASKED),
    ("sagemaker:CreateInferenceComponent", CANDIDATE, {}),
    ("sagemaker:CreateInferenceComponent", CANDIDATE, {"aws:RequestTag/seatrial:environment": "prod"}),
    ("sagemaker:AddTags", CANDIDATE, ASKED),
    ("sagemaker:AddTags", RANKER, ASKED),
    ("sagemaker:DeleteTags", CANDIDATE, TAGGED),
    ("sagemaker:UpdateInferenceComponent", COMPONENT, OURS),
    ("sagemaker:DescribeModel", f"arn:aws:sagemaker:{ACCOUNT}:model/prod-chat", OURS),
    ("sagemaker:AddTags", ENDPOINT, ASKED),
    (
        "application-autoscaling:RegisterScalableTarget",
        TARGET,
        {**COPIES, "application-autoscaling:scalable-dimension": "sagemaker:variant:DesiredInstanceCount"},
    ),
    ("application-autoscaling:DeregisterScalableTarget", TARGET, COPIES),
    ("application-autoscaling:PutScalingPolicy", TARGET, COPIES),
    ("s3:GetObject", "arn:aws:s3:::other/trials/a.json", {}),
    ("s3:GetObject", f"{RESULTS}/elsewhere/a.json", {}),
    ("s3:DeleteObject", f"{RESULTS}/trials/a.json", {}),
    ("s3:DeleteBucket", RESULTS, {}),
    ("s3:PutBucketPolicy", RESULTS, {}),
    ("kms:Decrypt", KEY_ARN.replace("1111", "2222"), {}),
    ("kms:ScheduleKeyDeletion", KEY_ARN, {}),
    ("iam:PassRole", "arn:aws:iam::123456789012:role/any", {}),
    ("iam:CreateRole", "arn:aws:iam::123456789012:role/any", {}),
    ("sts:AssumeRole", "arn:aws:iam::123456789012:role/any", {}),
    ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{ACCOUNT}:secret:seatrial/hub-token", {}),
    ("ssm:GetParameter", f"arn:aws:ssm:{ACCOUNT}:parameter/seatrial/dev/chat", {}),
    ("ssm:PutParameter", f"arn:aws:ssm:{ACCOUNT}:parameter/seatrial/prod/chat", {}),
    ("cloudformation:DeleteStack", STACK, {}),
    ("cloudformation:DescribeStacks", STACK.replace("seatrial-prod", "network"), {}),
    ("lambda:InvokeFunction", f"arn:aws:lambda:{ACCOUNT}:function:any", {}),
    ("states:StartExecution", WORKFLOW.replace("prod", "dev"), {}),
    ("logs:DeleteLogGroup", f"arn:aws:logs:{ACCOUNT}:log-group:/aws/sagemaker/Endpoints/dev-chat", {}),
    ("events:PutEvents", f"arn:aws:events:{ACCOUNT}:event-bus/default", {**EVENT, "events:source": "aws.sagemaker"}),
    ("ec2:RunInstances", "*", {}),
)


def test_the_table_has_every_call_of_the_code() -> None:
    files = (*RUNTIME.glob("*.py"), *BENCH.rglob("*.py"))
    called = {name for file in files for name in calls(file)} - NOT_GRANTED - {"get_paginator"}
    assert called == set(CALLS) - {"invoke_endpoint"}  # the bench writes and signs its requests itself


@pytest.mark.parametrize(
    "call",
    sorted({call[:2]: call for calls in CALLS.values() for call in calls}.values(), key=str),
    ids=lambda call: f"{call[0]} {call[1].rpartition(':')[2]}",
)
def test_each_call_is_allowed(prod_trials: Template, call: Call) -> None:
    assert decision(prod_trials, call) == "Allow"


@pytest.mark.parametrize("call", NEVER, ids=lambda call: call[0])
def test_nothing_else_is(prod_trials: Template, call: Call) -> None:
    assert decision(prod_trials, call) == "ImplicitDeny"


def calls(file: Path) -> Iterator[str]:
    """Yield the operations that a module calls a client's methods for."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_client(node.func.value):
            yield node.func.attr
            if node.func.attr == "get_paginator":
                assert isinstance(node.args[0], ast.Constant)
                yield str(node.args[0].value)


def is_client(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lstrip("_") in {"alarms", "client", "cloudwatch", "sagemaker", "stacks"}


def decision(template: Template, call: Call) -> str:
    (role,) = (
        each for name, each in template.find_resources("AWS::IAM::Role").items() if name.startswith("ServiceRole")
    )
    documents = [each["PolicyDocument"] for each in role["Properties"]["Policies"]]
    action, resource, context = call
    asked = EvalContext(
        principal_arn="arn:aws:iam::123456789012:role/trials",
        principal_type="AssumedRole",
        principal_account="123456789012",
        action=action,
        resource_arn=resource,
        region="eu-west-1",
        service_context={key.lower(): value for key, value in context.items()},
    )
    policies = [parse_policy_document(json.dumps(resolved(each))) for each in documents]
    return str(evaluate(asked, policies).decision)


def resolved(value: Json) -> Json:
    """Return a document in which references to the bucket of results are its ARN."""
    match value:
        case {"Fn::GetAtt": [str(name), "Arn"]}:
            return RESULTS if name.startswith("ServiceResults") else f"arn:of:{name}"
        case {"Ref": str(name)}:
            return name
        case {"Fn::Join": ["", list(parts)]}:
            return "".join(map(resolved, parts))
        case dict():
            return {key: resolved(each) for key, each in value.items()}
        case list():
            return [resolved(each) for each in value]
    return value
