from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from aws_cdk.assertions import Match

from seatrial_cdk.policy import UNNAMED_RESOURCE_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_cdk.assertions import Template

TEMPLATES = ["dev_template", "prod_template", "weights_template", "dev_trials", "prod_trials"]
ENDPOINTS = TEMPLATES[:3]


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


def test_the_stack_of_an_endpoint_grants_rights_to_sagemaker_alone(dev_template: Template) -> None:
    instances, model = sorted(dev_template.find_resources("AWS::IAM::Role"))
    assert (instances.startswith("EndpointInstanceRole"), model.startswith("EndpointModelRole")) == (True, True)
    dev_template.resource_count_is("AWS::IAM::Policy", 0)


def test_aws_manages_no_policy_but_that_of_cdks_own_functions(template: Template) -> None:
    roles = template.find_resources("AWS::IAM::Role")
    managed = {name: json.dumps(role["Properties"].get("ManagedPolicyArns", [])) for name, role in roles.items()}
    ours = {name: arns for name, arns in managed.items() if "AutoDelete" not in name}
    assert set(ours.values()) == {"[]"}
    assert all("FullAccess" not in arns for arns in managed.values())


def test_sagemaker_assumes_the_role_for_this_account_only(prod_template: Template, dev_template: Template) -> None:
    assert execution_trust(prod_template) == [{"StringEquals": {"aws:SourceAccount": "123456789012"}}] * 2
    assert execution_trust(dev_template) == [{"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}] * 2


@pytest.mark.parametrize("name", ENDPOINTS)
def test_metrics_are_bound_to_their_namespaces(request: pytest.FixtureRequest, name: str) -> None:
    template: Template = request.getfixturevalue(name)
    metrics = [each for each in statements(template) if "cloudwatch:PutMetricData" in each.actions]
    assert [each.actions for each in metrics] == [("cloudwatch:PutMetricData",)] * 2
    assert all("cloudwatch:namespace" in each.conditions for each in metrics)


def test_the_image_is_pulled_from_its_own_repository(dev_template: Template) -> None:
    (pull,) = (each for each in statements(dev_template) if "ecr:BatchGetImage" in each.actions)
    assert pull.resources == ("arn:aws:ecr:us-east-1:763104351884:repository/djl-inference",)


def test_logs_are_those_of_every_generation_of_the_endpoint_its_component_and_candidates(
    prod_template: Template,
) -> None:
    prefix = "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/sagemaker"
    logs = [each.resources for each in statements(prod_template) if "logs:CreateLogGroup" in each.actions]
    named = (
        f"{prefix}/Endpoints/prod-chat",
        f"{prefix}/Endpoints/prod-chat-*",
        f"{prefix}/Endpoints/prod-chat:*",
        f"{prefix}/InferenceComponents/prod-chat-*",
    )
    assert logs == [named, named]


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
    create, other = (each for each in statements(prod_template) if "ec2:CreateNetworkInterface" in each.actions)
    assert create.resources == other.resources
    assert create.resources == (
        "arn:aws:ec2:eu-west-1:123456789012:network-interface/*",
        "arn:aws:ec2:eu-west-1:123456789012:security-group/sg-0a1b2c3d",
        "arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-0a1b2c3d",
    )


OURS = {"StringEquals": {"aws:ResourceTag/seatrial:environment": "prod"}}
SAGEMAKER = "arn:aws:sagemaker:eu-west-1:123456789012"


CANDIDATES = f"{SAGEMAKER}:inference-component/prod-*-candidate-*"


def test_trials_load_and_describe_what_has_the_environments_name_and_tag(prod_trials: Template) -> None:
    environment, owner = "seatrial:environment", "seatrial:owner"
    given = {f"aws:RequestTag/{environment}": "prod", f"aws:RequestTag/{owner}": "trial-service"}
    created = {**given, "sagemaker:TaggingAction": "CreateInferenceComponent"}
    tagged = {f"aws:ResourceTag/{environment}": "prod", f"aws:ResourceTag/{owner}": "trial-service"}
    loading = ("sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream")
    endpoints, components = f"{SAGEMAKER}:endpoint/prod-*", f"{SAGEMAKER}:inference-component/prod-*"
    granted = [
        (each.actions, each.resources, json.loads(each.conditions))
        for each in statements(prod_trials)
        if any("sagemaker:" in action for action in each.actions) and each.resources != ("*",)
    ]
    assert granted == [
        (("sagemaker:DescribeEndpoint",), (endpoints,), {}),
        (("sagemaker:DescribeInferenceComponent",), (components,), {}),
        (loading, (endpoints,), OURS),
        ((*loading, "sagemaker:UpdateInferenceComponentRuntimeConfig"), (components,), OURS),
        (("sagemaker:CreateInferenceComponent",), (endpoints, CANDIDATES), {"StringEquals": given}),
        (("sagemaker:AddTags",), (CANDIDATES,), {"StringEquals": created}),
        (("sagemaker:ListTags",), (CANDIDATES,), {}),
        (("sagemaker:DeleteInferenceComponent",), (CANDIDATES,), {"StringEquals": tagged}),
        (
            ("sagemaker:DeleteInferenceComponent",),
            (f"{CANDIDATES.removesuffix('*')}????????",),
            {**OURS, "Null": {f"aws:ResourceTag/{owner}": "true"}},
        ),
    ]


def test_trials_never_read_a_models_environment_which_may_hold_a_token(prod_trials: Template) -> None:
    assert "sagemaker:DescribeModel" not in json.dumps(prod_trials.to_json())


@pytest.mark.parametrize("kind", ["Model", "Endpoint", "EndpointConfig", "InferenceComponent"])
def test_what_trials_touch_has_the_environments_tag(prod_template: Template, kind: str) -> None:
    tag = Match.array_with([{"Key": "seatrial:environment", "Value": "prod"}])
    prod_template.has_resource_properties(f"AWS::SageMaker::{kind}", {"Tags": tag})


def test_trials_read_the_status_of_the_environments_stacks(prod_trials: Template) -> None:
    (describe,) = (each for each in statements(prod_trials) if "cloudformation:DescribeStacks" in each.actions)
    assert describe.resources == ("arn:aws:cloudformation:eu-west-1:123456789012:stack/seatrial-prod-*/*",)


def test_scaling_is_suspended_and_resumed_on_targets_of_copies_only(prod_trials: Template) -> None:
    (register,) = (
        each for each in statements(prod_trials) if "application-autoscaling:RegisterScalableTarget" in each.actions
    )
    assert register.resources == ("arn:aws:application-autoscaling:eu-west-1:123456789012:scalable-target/*",)
    assert json.loads(register.conditions) == {
        "StringEquals": {
            "application-autoscaling:service-namespace": "sagemaker",
            "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
        }
    }


@pytest.mark.parametrize(
    ("action", "folders"),
    [
        ("s3:GetObject", {"state", "trials", "runs", "latest", "passed", "released", "held"}),
        ("s3:PutObject", {"state", "trials", "runs", "latest", "passed", "released", "held"}),
        ("s3:DeleteObject", {"state", "runs", "latest", "passed", "released", "held"}),
    ],
)
def test_trials_keep_to_their_folders_and_never_remove_evidence(
    prod_trials: Template, action: str, folders: set[str]
) -> None:
    (statement,) = (each for each in statements(prod_trials) if action in each.actions)
    assert {folder for resource in statement.resources for folder in re.findall(r"/(\w+)/\*", resource)} == folders


def test_trials_put_our_one_kind_of_event_on_the_default_bus_only(prod_trials: Template) -> None:
    (put,) = (each for each in statements(prod_trials) if "events:PutEvents" in each.actions)
    assert put.resources == ("arn:aws:events:eu-west-1:123456789012:event-bus/default",)
    assert json.loads(put.conditions) == {
        "StringEquals": {"events:source": "seatrial", "events:detail-type": "Sea trial finished"}
    }


def test_the_function_starts_and_stops_its_own_workflow_only(prod_trials: Template) -> None:
    states = "arn:aws:states:eu-west-1:123456789012"
    granted = {
        each.actions: each.resources for each in statements(prod_trials) if each.actions[0].startswith("states:")
    }
    assert granted == {
        ("states:ListExecutions", "states:StartExecution"): (f"{states}:stateMachine:seatrial-prod-trials",),
        ("states:DescribeExecution", "states:StopExecution"): (f"{states}:execution:seatrial-prod-trials:*",),
    }


def test_the_workflow_calls_its_own_function_only(prod_trials: Template) -> None:
    (function,) = prod_trials.find_resources("AWS::Lambda::Function")
    (call,) = (each for each in statements(prod_trials) if "lambda:InvokeFunction" in each.actions)
    assert "WorkflowRole" in call.role
    assert call.resources == (json.dumps({"Fn::GetAtt": [function, "Arn"]}),)


def test_the_function_joins_the_network_with_the_environments_subnets(
    dev_trials: Template, prod_trials: Template
) -> None:
    assert [each for each in statements(dev_trials) if any(a.startswith("ec2:") for a in each.actions)] == []
    granted = [each for each in statements(prod_trials) if any(a.startswith("ec2:") for a in each.actions)]
    of = {action: each.resources for each in granted for action in each.actions}
    assert of["ec2:DeleteNetworkInterface"] == ("arn:aws:ec2:eu-west-1:123456789012:*/*",)
    (create,) = (each for each in granted if "ec2:CreateNetworkInterface" in each.actions)
    assert create.resources == (
        "arn:aws:ec2:eu-west-1:123456789012:network-interface/*",
        "arn:aws:ec2:eu-west-1:123456789012:security-group/sg-0a1b2c3d",
        "arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-0a1b2c3d",
    )


def test_the_code_of_the_function_is_denied_what_lambda_does_with_its_role(prod_trials: Template) -> None:
    documents = [
        policy["PolicyDocument"]
        for role in prod_trials.find_resources("AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", [])
    ]
    (denied,) = [each for document in documents for each in document["Statement"] if each["Effect"] == "Deny"]
    allowed = {a for each in statements(prod_trials) for a in each.actions if a.startswith("ec2:")}
    assert {*denied["Action"]} == allowed
    (operator,) = denied["Condition"]
    assert (operator, [*denied["Condition"][operator]]) == ("ArnLike", ["lambda:SourceFunctionArn"])


def execution_trust(template: Template) -> list[object]:
    trusts = []
    for role in template.find_resources("AWS::IAM::Role").values():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "sagemaker.amazonaws.com"}
        trusts.append(statement["Condition"])
    return trusts


def statements(template: Template) -> Iterator[Statement]:
    for name, role in template.find_resources("AWS::IAM::Role").items():
        for policy in role["Properties"].get("Policies", []):
            yield from read(name, policy["PolicyDocument"])
    for policy in template.find_resources("AWS::IAM::Policy").values():
        properties = policy["Properties"]
        yield from read(properties["Roles"][0]["Ref"], properties["PolicyDocument"])


def read(role: str, document: Mapping[str, list[Mapping[str, object]]]) -> Iterator[Statement]:
    for each in document["Statement"]:
        if each["Effect"] == "Deny":
            continue
        conditions = json.dumps(each.get("Condition", {}))
        yield Statement(role, texts(each["Action"]), texts(each["Resource"]), conditions)


def texts(node: object) -> tuple[str, ...]:
    nodes = node if isinstance(node, list) else [node]
    return tuple(sorted(each if isinstance(each, str) else json.dumps(each) for each in nodes))
