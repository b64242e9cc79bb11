from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.unnamed_resources import UNNAMED_RESOURCE_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_cdk.assertions import Template

TEMPLATES = ["dev_template", "prod_template", "weights_template"]


@dataclass(frozen=True)
class Statement:
    role: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: str


@pytest.fixture(params=TEMPLATES)
def template(request: pytest.FixtureRequest) -> Template:
    chosen: Template = request.getfixturevalue(request.param)
    return chosen


def test_only_the_documented_actions_are_allowed_on_everything(template: Template) -> None:
    granted = {action for each in statements(template) if "*" in each.resources for action in each.actions}
    assert granted <= set(UNNAMED_RESOURCE_ACTIONS)


def test_no_action_is_a_wildcard(template: Template) -> None:
    assert [each for each in statements(template) for action in each.actions if "*" in action] == []


def test_aws_manages_no_policy_but_that_of_cdks_own_functions(template: Template) -> None:
    roles = template.find_resources("AWS::IAM::Role")
    managed = {name: json.dumps(role["Properties"].get("ManagedPolicyArns", [])) for name, role in roles.items()}
    ours = {name: arns for name, arns in managed.items() if "framework" not in name and "AutoDelete" not in name}
    assert set(ours.values()) == {"[]"}
    assert all("FullAccess" not in arns for arns in managed.values())


def test_sagemaker_assumes_the_role_for_this_account_only(prod_template: Template, dev_template: Template) -> None:
    assert execution_trust(prod_template) == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    assert execution_trust(dev_template) == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_metrics_are_bound_to_their_namespaces(template: Template) -> None:
    (metrics,) = (each for each in statements(template) if "cloudwatch:PutMetricData" in each.actions)
    assert metrics.actions == ("cloudwatch:PutMetricData",)
    assert "cloudwatch:namespace" in metrics.conditions


def test_the_image_is_pulled_from_its_own_repository(dev_template: Template) -> None:
    (pull,) = (each for each in statements(dev_template) if "ecr:BatchGetImage" in each.actions)
    assert pull.resources == ("arn:aws:ecr:us-east-1:763104351884:repository/djl-inference",)


def test_logs_are_those_of_the_endpoint_and_its_component(prod_template: Template) -> None:
    (logs,) = (each for each in statements(prod_template) if "logs:CreateLogGroup" in each.actions)
    prefix = "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/sagemaker"
    assert logs.resources == (
        f"{prefix}/Endpoints/prod-chat",
        f"{prefix}/Endpoints/prod-chat:*",
        f"{prefix}/InferenceComponents/prod-chat-model",
        f"{prefix}/InferenceComponents/prod-chat-model:*",
    )


def test_weights_are_read_under_their_prefix_only(weights_template: Template) -> None:
    (read,) = (each for each in statements(weights_template) if "s3:GetObject" in each.actions)
    (listing,) = (each for each in statements(weights_template) if "s3:ListBucket" in each.actions)
    assert read.resources == ("arn:aws:s3:::model-weights/llama-2-7b/*",)
    assert listing.resources == ("arn:aws:s3:::model-weights",)
    assert listing.conditions == '{"StringLike": {"s3:prefix": ["llama-2-7b/*"]}}'


def test_only_the_own_artifact_is_read(prod_template: Template) -> None:
    read = next(each for each in statements(prod_template) if "s3:GetObject" in each.actions)
    (resource,) = read.resources
    assert resource.startswith("arn:aws:s3:::cdk-hnb659fds-assets-123456789012-eu-west-1/")
    assert resource.endswith(".tar.gz")


def test_network_interfaces_belong_to_a_network(dev_template: Template, prod_template: Template) -> None:
    assert [each for each in statements(dev_template) if any(a.startswith("ec2:") for a in each.actions)] == []
    (create,) = (each for each in statements(prod_template) if "ec2:CreateNetworkInterface" in each.actions)
    assert create.resources == (
        "arn:aws:ec2:eu-west-1:123456789012:network-interface/*",
        "arn:aws:ec2:eu-west-1:123456789012:security-group/sg-0a1b2c3d",
        "arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-0a1b2c3d",
    )


def test_the_runner_invokes_and_describes_one_endpoint(dev_template: Template) -> None:
    (invoke,) = (each for each in statements(dev_template) if "sagemaker:InvokeEndpoint" in each.actions)
    (component,) = dev_template.find_resources("AWS::SageMaker::InferenceComponent")
    (endpoint,) = dev_template.find_resources("AWS::SageMaker::Endpoint")
    assert "RunnerRole" in invoke.role
    assert invoke.actions == (
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeInferenceComponent",
        "sagemaker:InvokeEndpoint",
        "sagemaker:InvokeEndpointWithResponseStream",
    )
    assert set(invoke.resources) == {json.dumps({"Ref": component}), json.dumps({"Ref": endpoint})}


def test_on_event_reads_the_status_of_its_own_stack(dev_template: Template) -> None:
    (describe,) = (each for each in statements(dev_template) if "cloudformation:DescribeStacks" in each.actions)
    assert "OnEventRole" in describe.role
    assert describe.resources == (json.dumps({"Ref": "AWS::StackId"}),)


def test_scaling_is_suspended_and_resumed_on_targets_of_copies_only(dev_template: Template) -> None:
    register = [
        each for each in statements(dev_template) if "application-autoscaling:RegisterScalableTarget" in each.actions
    ]
    assert sorted(re.sub(r"SmokeBenchmark|Role.*", "", each.role) for each in register) == ["IsComplete", "Runner"]
    for each in register:
        (resource,) = each.resources
        assert ":application-autoscaling:us-east-1:" in resource
        assert ":scalable-target/*" in resource
        assert json.loads(each.conditions) == {
            "StringEquals": {
                "application-autoscaling:service-namespace": "sagemaker",
                "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
            }
        }


def test_copies_are_scaled_by_hand_on_the_own_component_only(dev_template: Template) -> None:
    (component,) = dev_template.find_resources("AWS::SageMaker::InferenceComponent")
    scale = [
        each for each in statements(dev_template) if "sagemaker:UpdateInferenceComponentRuntimeConfig" in each.actions
    ]
    assert [each.resources for each in scale] == [(json.dumps({"Ref": component}),)] * 2


def test_only_those_who_answer_a_deletion_remove_results_and_only_in_their_folders(dev_template: Template) -> None:
    remove = [
        each for each in statements(dev_template) if "s3:DeleteObject" in each.actions and "SmokeBenchmark" in each.role
    ]
    assert sorted(re.sub(r"SmokeBenchmark|Role.*", "", each.role) for each in remove) == ["IsComplete", "OnEvent"]
    folders = [["latest"], ["passed"], ["released"], ["runs"], ["trials"]]
    for each in remove:
        assert [re.findall(r"/(\w+)/\*", resource) for resource in each.resources] == folders


@pytest.mark.parametrize(
    ("function", "folders"),
    [
        ("Runner", {"trials", "runs", "latest", "passed", "released"}),
        ("OnEvent", {"runs", "released"}),
        ("IsComplete", {"runs"}),
    ],
)
def test_each_function_writes_its_own_folders_only(dev_template: Template, function: str, folders: set[str]) -> None:
    (write,) = (
        each
        for each in statements(dev_template)
        if "s3:PutObject" in each.actions and f"SmokeBenchmark{function}" in each.role
    )
    assert {folder for resource in write.resources for folder in re.findall(r"/(\w+)/\*", resource)} == folders


def test_the_runner_describes_the_deployments_own_model_only(dev_template: Template) -> None:
    (describe,) = (each for each in statements(dev_template) if "sagemaker:DescribeModel" in each.actions)
    (model,) = dev_template.find_resources("AWS::SageMaker::Model")
    assert "RunnerRole" in describe.role
    assert describe.resources == (json.dumps({"Ref": model}),)


def test_the_runner_puts_our_one_kind_of_event_on_the_default_bus_only(prod_template: Template) -> None:
    (put,) = (each for each in statements(prod_template) if "events:PutEvents" in each.actions)
    assert "RunnerRole" in put.role
    assert put.resources == ("arn:aws:events:eu-west-1:123456789012:event-bus/default",)
    assert json.loads(put.conditions) == {
        "StringEquals": {"events:source": "seatrial", "events:detail-type": "Sea trial finished"}
    }


def test_those_who_start_runs_invoke_the_runner_only(dev_template: Template) -> None:
    (runner,) = (
        name for name in dev_template.find_resources("AWS::Lambda::Function") if "SmokeBenchmarkRunner" in name
    )
    ours = [
        each
        for each in statements(dev_template)
        if "lambda:InvokeFunction" in each.actions
        and "framework" not in each.role
        and "Waiter" not in each.role
        and "Provider" not in each.role
    ]
    assert sorted(re.sub(r"SmokeBenchmark|Role.*", "", each.role) for each in ours) == ["IsComplete", "OnEvent"]
    for each in ours:
        assert all(runner in resource for resource in each.resources)


def execution_trust(template: Template) -> object:
    roles = template.find_resources("AWS::IAM::Role")
    (role,) = (role for name, role in roles.items() if "ExecutionRole" in name)
    (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    return statement["Condition"]


def statements(template: Template) -> Iterator[Statement]:
    for name, role in template.find_resources("AWS::IAM::Role").items():
        for policy in role["Properties"].get("Policies", []):
            yield from read(name, policy["PolicyDocument"])
    for policy in template.find_resources("AWS::IAM::Policy").values():
        properties = policy["Properties"]
        yield from read(properties["Roles"][0]["Ref"], properties["PolicyDocument"])


def read(role: str, document: Mapping[str, list[Mapping[str, object]]]) -> Iterator[Statement]:
    for each in document["Statement"]:
        assert each["Effect"] == "Allow"
        conditions = json.dumps(each.get("Condition", {}))
        yield Statement(role, texts(each["Action"]), texts(each["Resource"]), conditions)


def texts(node: object) -> tuple[str, ...]:
    nodes = node if isinstance(node, list) else [node]
    return tuple(sorted(each if isinstance(each, str) else json.dumps(each) for each in nodes))
