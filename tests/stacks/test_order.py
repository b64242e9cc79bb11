"""CloudFormation creates in the order of dependencies and deletes in the opposite one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_cdk.assertions import Template

TEARDOWN = [
    ("AWS::ApplicationAutoScaling::ScalingPolicy", "AWS::ApplicationAutoScaling::ScalableTarget"),
    ("AWS::ApplicationAutoScaling::ScalableTarget", "AWS::SageMaker::InferenceComponent"),
    ("Custom::SmokeBenchmark", "AWS::SageMaker::InferenceComponent"),
    ("AWS::SageMaker::InferenceComponent", "AWS::SageMaker::Endpoint"),
    ("AWS::SageMaker::InferenceComponent", "AWS::SageMaker::Model"),
    ("AWS::SageMaker::Endpoint", "AWS::SageMaker::EndpointConfig"),
]


@pytest.mark.parametrize(("first", "then"), TEARDOWN)
def test_the_first_goes_before_the_second(dev_template: Template, first: str, then: str) -> None:
    (before,) = dev_template.find_resources(first).values()
    (after,) = dev_template.find_resources(then)
    assert after in before["DependsOn"]


def test_the_trial_waits_for_the_component_and_scaling_for_the_trial(dev_template: Template) -> None:
    (policy,) = dev_template.find_resources("AWS::ApplicationAutoScaling::ScalingPolicy").values()
    (trial,) = dev_template.find_resources("Custom::SmokeBenchmark")
    assert trial in set(references(policy))


@pytest.mark.parametrize(
    ("kind", "role"), [("AWS::SageMaker::Model", "ModelRole"), ("AWS::SageMaker::EndpointConfig", "InstanceRole")]
)
def test_the_role_outlives_what_names_it(dev_template: Template, kind: str, role: str) -> None:
    (named,) = (name for name in dev_template.find_resources("AWS::IAM::Role") if role in name)
    (resource,) = dev_template.find_resources(kind).values()
    assert resource["Properties"]["ExecutionRoleArn"] == {"Fn::GetAtt": [named, "Arn"]}
    assert named in resource["DependsOn"]


def test_a_changed_model_changes_nothing_that_needs_a_new_component(dev_template: Template) -> None:
    (component,) = dev_template.find_resources("AWS::SageMaker::InferenceComponent").values()
    (model,) = dev_template.find_resources("AWS::SageMaker::Model")
    properties = component["Properties"]
    assert properties["Specification"]["ModelName"] == {"Fn::GetAtt": [model, "ModelName"]}
    del properties["Specification"]
    assert model not in set(references(properties))


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        yield from named_by(node)
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def named_by(node: Mapping[str, object]) -> Iterator[str]:
    match node:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::Sub": str(text)}:
            yield from re.findall(r"\$\{([A-Za-z0-9]+)", text)
