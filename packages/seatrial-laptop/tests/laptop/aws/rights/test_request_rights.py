"""What a request needs: actions, ARNs and condition keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog.service_authorization import action_facts
from seatrial_laptop.aws.api import input_shape, service_model
from seatrial_laptop.aws.control_plane.records import Kind, arn_of
from seatrial_laptop.aws.rights import (
    CONTROL_PLANES,
    condition_keys,
    invocation_rights,
    passed_role,
    request_parameters,
    request_tags,
    resources_of,
    sagemaker_rights,
)

if TYPE_CHECKING:
    from seatrial_laptop.aws.json_document import Document

DEV = [{"Key": "seatrial:environment", "Value": "dev"}]
PREFIX = "arn:aws:sagemaker:us-east-1:000000000000:"
ROLE = "arn:aws:iam::000000000000:role/serving"


def tags_of(arn: str) -> list[Document]:
    """Return the tags of the one endpoint that is there."""
    return [*DEV] if arn == f"{PREFIX}endpoint/dev-chat" else []


def rights(operation: str, request: Document) -> list[tuple[str, str]]:
    return [(each.action, each.resource) for each in sagemaker_rights(operation, request, tags_of)]


def test_a_description_needs_the_right_to_what_it_names() -> None:
    assert rights("DescribeEndpoint", {"EndpointName": "dev-Chat"}) == [
        ("sagemaker:DescribeEndpoint", f"{PREFIX}endpoint/dev-chat")
    ]


def test_what_exists_has_its_tags_and_what_is_absent_has_none() -> None:
    (live,) = sagemaker_rights("DescribeEndpoint", {"EndpointName": "dev-Chat"}, tags_of)
    (absent,) = sagemaker_rights("DescribeEndpoint", {"EndpointName": "dev-other"}, tags_of)
    assert (live.context, absent.context) == ({"aws:resourcetag/seatrial:environment": "dev"}, {})


def test_a_component_is_created_on_an_endpoint_with_tags_of_its_own() -> None:
    request = {"InferenceComponentName": "dev-chat-model", "EndpointName": "dev-Chat", "Tags": DEV}
    needed = [*sagemaker_rights("CreateInferenceComponent", request, tags_of)]
    assert [(each.action, each.resource) for each in needed] == [
        ("sagemaker:CreateInferenceComponent", f"{PREFIX}endpoint/dev-chat"),
        ("sagemaker:CreateInferenceComponent", f"{PREFIX}inference-component/dev-chat-model"),
        ("sagemaker:AddTags", f"{PREFIX}inference-component/dev-chat-model"),
    ]
    assert {each.context["aws:requesttag/seatrial:environment"] for each in needed} == {"dev"}
    assert needed[0].context["aws:resourcetag/seatrial:environment"] == "dev"
    assert [each.context.get("sagemaker:taggingaction") for each in needed] == [None, None, "CreateInferenceComponent"]


def test_tags_that_are_given_later_have_no_action_of_a_creation() -> None:
    (needed,) = sagemaker_rights("AddTags", {"ResourceArn": f"{PREFIX}endpoint/dev-chat", "Tags": DEV}, tags_of)
    assert "sagemaker:taggingaction" not in needed.context


@pytest.mark.parametrize(
    ("operation", "request_", "resources"),
    [
        ("CreateEndpoint", {"EndpointName": "a", "EndpointConfigName": "b"}, ["endpoint/a", "endpoint-config/b"]),
        ("CreateModel", {"ModelName": "A"}, ["model/a"]),
        ("DescribeOptimizationJob", {"OptimizationJobName": "j"}, ["optimization-job/j"]),
    ],
)
def test_a_request_needs_the_right_to_each_resource(operation: str, request_: Document, resources: list[str]) -> None:
    assert rights(operation, request_) == [(f"sagemaker:{operation}", PREFIX + each) for each in resources]


def test_a_list_names_no_resource() -> None:
    assert rights("ListInferenceComponents", {"EndpointNameEquals": "a"}) == [
        ("sagemaker:ListInferenceComponents", "*")
    ]


def test_tags_are_added_and_listed_by_arn() -> None:
    arn = arn_of(Kind.ENDPOINT, "dev-Chat")
    (added,) = sagemaker_rights("AddTags", {"ResourceArn": arn, "Tags": [{"Key": "Team", "Value": "a"}]}, tags_of)
    assert (added.resource, added.context["aws:tagkeys"]) == (arn, ["Team"])
    assert request_tags({"TagKeys": ["Team"]}) == {"aws:tagkeys": ["Team"]}
    assert request_tags({"Tags": {"Team": "a"}}) == {"aws:requesttag/team": "a", "aws:tagkeys": ["Team"]}


def test_an_invocation_needs_the_right_to_the_component_that_it_names() -> None:
    header = {"x-amzn-sagemaker-inference-component": "dev-chat-model"}
    found = [(each.action, each.resource) for each in invocation_rights("InvokeEndpoint", "dev-Chat", header, tags_of)]
    assert found == [
        ("sagemaker:InvokeEndpoint", f"{PREFIX}endpoint/dev-chat"),
        ("sagemaker:InvokeEndpoint", f"{PREFIX}inference-component/dev-chat-model"),
    ]


def test_to_register_a_target_asks_for_the_right_to_scale_it() -> None:
    named = {"ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount"}
    request = {**named, "ResourceId": "inference-component/dev-chat-model"}
    found = [*CONTROL_PLANES["application-autoscaling"]("RegisterScalableTarget", request, tags_of)]
    assert [each.action for each in found] == [
        "application-autoscaling:RegisterScalableTarget",
        "sagemaker:UpdateInferenceComponentRuntimeConfig",
    ]
    assert found[0].context == {
        "application-autoscaling:service-namespace": "sagemaker",
        "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
    }


def test_a_product_is_authorized_by_its_arn() -> None:
    (found,) = CONTROL_PLANES["servicecatalog"]("ProvisionProduct", {"ProductId": "prod-a"}, tags_of)
    assert found.resource == "arn:aws:catalog:us-east-1:000000000000:product/prod-a"


@pytest.mark.parametrize(
    ("action", "request_", "service"),
    [
        ("sagemaker:CreateModel", {"ExecutionRoleArn": ROLE}, "sagemaker"),
        ("lambda:CreateFunction", {"Role": ROLE}, "lambda"),
        ("scheduler:CreateSchedule", {"Target": {"RoleArn": ROLE}}, "scheduler"),
        ("cloudformation:CreateChangeSet", {"RoleARN": ROLE}, "cloudformation"),
    ],
)
def test_a_role_must_be_passed_to_its_service(action: str, request_: Document, service: str) -> None:
    passed = passed_role(action, request_)
    assert passed is not None
    assert (passed.action, passed.resource) == ("iam:PassRole", ROLE)
    assert passed.context == {"iam:passedtoservice": f"{service}.amazonaws.com"}


def test_a_request_without_a_role_passes_none() -> None:
    assert passed_role("sagemaker:CreateModel", {}) is None
    assert passed_role("sagemaker:DescribeModel", {"ExecutionRoleArn": ROLE}) is None


@pytest.mark.parametrize(
    ("action", "asked", "keys"),
    [
        ("cloudwatch:PutMetricData", {"Namespace": "AWS/SageMaker"}, {"cloudwatch:namespace": "AWS/SageMaker"}),
        (
            "events:PutEvents",
            {"Entries": [{"Source": "seatrial", "DetailType": "Trial"}]},
            {"events:source": "seatrial", "events:detail-type": "Trial"},
        ),
        ("iam:CreateRole", {"PermissionsBoundary": "b"}, {"iam:permissionsboundary": "b"}),
        ("iam:CreateRole", {}, {}),
        ("s3:GetObject", {"Namespace": "AWS/SageMaker"}, {}),
    ],
)
def test_condition_keys_come_from_the_request(action: str, asked: Document, keys: Document) -> None:
    assert condition_keys(action, asked) == keys


@pytest.mark.parametrize(
    ("action", "asked", "resources"),
    [
        (
            "cloudwatch:DescribeAlarms",
            {"AlarmNames": ["a", "b"]},
            ["cloudwatch:us-east-1:000000000000:alarm:a", "cloudwatch:us-east-1:000000000000:alarm:b"],
        ),
        ("cloudwatch:DescribeAlarms", {"AlarmNamePrefix": "a"}, ["cloudwatch:us-east-1:000000000000:alarm:*"]),
        (
            "cloudwatch:DescribeAlarms",
            {"AlarmNames": ["a"], "AlarmTypes": ["MetricAlarm"]},
            ["cloudwatch:us-east-1:000000000000:alarm:a"],
        ),
        (
            "cloudwatch:DescribeAlarms",
            {"AlarmNames": ["a"], "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]},
            ["cloudwatch:us-east-1:000000000000:alarm:*"],
        ),
        (
            "ssm:GetParameters",
            {"Names": ["/a/b", "c"]},
            ["ssm:us-east-1:000000000000:parameter/a/b", "ssm:us-east-1:000000000000:parameter/c"],
        ),
        ("iam:CreateRole", {"RoleName": "r", "Path": "/seatrial/"}, ["iam::000000000000:role/seatrial/r"]),
    ],
)
def test_an_action_is_authorized_on_each_resource(action: str, asked: Document, resources: list[str]) -> None:
    assert [*resources_of(action, "*", asked)] == [f"arn:aws:{each}" for each in resources]


def test_parameters_are_read_of_json_and_of_forms() -> None:
    assert request_parameters({}, b'{"Role": "r"}', "application/json") == {"Role": "r"}
    assert request_parameters({"Action": ["A"]}, b"RoleName=r", "application/x-www-form-urlencoded") == {
        "Action": "A",
        "RoleName": "r",
    }
    assert request_parameters({}, b"{" * 100_000, "application/json") == {}


def test_a_list_of_a_form_is_one_list() -> None:
    """So an older boto3 asks CloudWatch, which must not be taken for asking for every alarm."""
    names = "&".join(f"AlarmNames.member.{number}=alarm-{number}" for number in (2, 10, 1))
    asked = request_parameters({}, names.encode(), "application/x-www-form-urlencoded")
    assert asked["AlarmNames"] == ["alarm-1", "alarm-2", "alarm-10"]
    alarms = [arn.rpartition(":")[2] for arn in resources_of("cloudwatch:DescribeAlarms", "*", asked)]
    assert alarms == ["alarm-1", "alarm-2", "alarm-10"]
    nested = request_parameters({}, b"Tags.member.1.Key=team", "application/x-www-form-urlencoded")
    assert nested == {"Tags.member.1.Key": "team"}


OPERATIONS = [
    f"{verb}{kind}"
    for kind in ("Model", "EndpointConfig", "Endpoint", "InferenceComponent", "OptimizationJob")
    for verb in ("Create", "Describe", "Update", "Delete")
    if f"{verb}{kind}" in service_model("sagemaker").operation_names
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_resources_of_a_request_are_those_of_the_service_authorization_reference(operation: str) -> None:
    """Each ARN is of a type that the action is on, and each type that it requires has one."""
    facts = action_facts(f"sagemaker:{operation}")
    assert facts is not None
    members = input_shape("sagemaker", operation).members
    request = {name: "a" for name in members if name.endswith("Name") and members[name].type_name == "string"}
    arns = [resource for action, resource in rights(operation, request) if action == facts.name]
    assert [arn for arn in arns if not facts.applies_to(arn)] == []
    required = [each.resource_type for each in facts.targets if each.is_required]
    assert [each.name for each in required if not any(each.has(arn) for arn in arns)] == []
