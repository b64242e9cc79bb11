"""Properties that CloudFormation refuses before a handler runs, in its words."""

from __future__ import annotations

import pytest

from seatrial_laptop.aws.cloudformation.property_checks import property_problem

ROLE = "AWS::IAM::Role"
ALARM = "AWS::CloudWatch::Alarm"
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
PARAMETER = "AWS::SSM::Parameter"
TRUST = {"Version": "2012-10-17", "Statement": []}
SCALED = {
    "ResourceId": "inference-component/a",
    "ServiceNamespace": "sagemaker",
    "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    "MinCapacity": 1,
    "MaxCapacity": "2",
}


def lines(resource_type: str, **properties: object) -> list[str]:
    told = property_problem("Thing", resource_type, properties)
    if told is None:
        return []
    head, *problems = told.splitlines()
    assert head == "Properties validation failed for resource Thing with message:"
    return problems


def test_a_number_may_be_a_text_and_a_text_a_number() -> None:
    assert lines(TARGET, **SCALED) == []
    assert lines(PARAMETER, Type="String", Value=5) == []
    assert lines("AWS::SQS::Queue", Anything="goes: the catalog has no schema of it") == []


@pytest.mark.parametrize(
    ("resource_type", "properties", "told"),
    [
        (ROLE, {}, ["#: required key [AssumeRolePolicyDocument] not found"]),
        (PARAMETER, {"Type": "String"}, ["#: required key [Value] not found"]),
        (ROLE, {"AssumeRolePolicyDocument": TRUST, "Rolename": "a"}, ["#: extraneous key [Rolename] is not permitted"]),
        (ROLE, {"AssumeRolePolicyDocument": TRUST, "Arn": "a"}, ["#: extraneous key [Arn] is not permitted"]),
        (
            ROLE,
            {"AssumeRolePolicyDocument": TRUST, "ManagedPolicyArns": ["admin"]},
            ["#/ManagedPolicyArns/0: failed validation constraint for keyword [pattern]"],
        ),
        (
            ROLE,
            {"AssumeRolePolicyDocument": TRUST, "Tags": [{"Key": "a"}]},
            ["#/Tags/0: required key [Value] not found"],
        ),
        (
            PARAMETER,
            {"Type": "Text", "Value": "a"},
            ["#/Type: failed validation constraint for keyword [enum]"],
        ),
        (
            PARAMETER,
            {"Type": "String", "Value": "a", "Tags": {"b": "c", "d!": "e"}},
            ["#/Tags: extraneous key [d!] is not permitted"],
        ),
        (TARGET, {**SCALED, "MinCapacity": "one"}, ["#/MinCapacity: expected type: Integer, found: String"]),
        (TARGET, {**SCALED, "MinCapacity": 1.5}, ["#/MinCapacity: expected type: Integer, found: Double"]),
        (TARGET, {**SCALED, "Tags": "a"}, ["#/Tags: expected type: JSONArray, found: String"]),
        (
            TARGET,
            {**SCALED, "Tags": [{"Key": "k" * 129, "Value": ""}]},
            ["#/Tags/0/Key: expected maxLength: 128, actual: 129"],
        ),
    ],
)
def test_what_is_refused(resource_type: str, properties: dict[str, object], told: list[str]) -> None:
    assert lines(resource_type, **properties) == told


def test_every_problem_is_told_at_once() -> None:
    told = lines(TARGET, ResourceId="a", MinCapacity="few", Extra=1)
    assert "#/MinCapacity: expected type: Integer, found: String" in told
    assert "#: extraneous key [Extra] is not permitted" in told
    assert "#: required key [ScalableDimension] not found" in told


def test_tags_that_cloudformation_adds_are_not_the_templates() -> None:
    tag = {"Key": "aws:cloudformation:stack-name", "Value": "s"}
    assert lines(PARAMETER, Type="String", Value="a", Tags={tag["Key"]: "s"}) == []
    assert lines(ROLE, AssumeRolePolicyDocument=TRUST, Tags=[tag]) == []


def test_a_component_has_one_of_two_specifications() -> None:
    assert lines("AWS::SageMaker::InferenceComponent", EndpointName="a") == [
        "#: #: 0 subschemas matched instead of one"
    ]
