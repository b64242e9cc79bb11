"""An update narrows nothing that the old model still reads, and replaces no endpoint configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial_stacks.endpoint_stack import EndpointStack
from tests.stacks.conftest import KEY_ARN, prod, weights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.deployment.document import Deployment

Resources = dict[str, dict[str, object]]
OTHER_IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/serving:2"


def resources(deployment: Deployment) -> Resources:
    stack = EndpointStack(App(analytics_reporting=False), "stack", deployment=deployment)
    found: Resources = Template.from_stack(stack).to_json()["Resources"]
    return found


def of_kind(found: Resources, kind: str, name: str = "") -> Resources:
    return {key: each for key, each in found.items() if each["Type"] == kind and name in key}


def served(deployment: Deployment, **changed: object) -> Deployment:
    return replace(deployment, serving=deployment.serving.model_copy(update=changed))


def environment(deployment: Deployment, **changed: object) -> Deployment:
    return replace(deployment, environment=deployment.environment.model_copy(update=changed))


ARTIFACT = (prod(), served(prod(), files={"serving.properties": "engine=Python\n"}))
IMAGE = (prod(), served(prod(), image=OTHER_IMAGE))
MOVED = replace(
    weights(),
    endpoint=weights().endpoint.model_copy(
        update={"model": weights().endpoint.model.model_copy(update={"s3_uri": "s3://model-weights/llama-3/"})}
    ),
)
WEIGHTS = (weights(), MOVED)
KEY = (weights(), environment(weights(), kms_key_arn=KEY_ARN.replace("1111", "9999")))


@pytest.mark.parametrize(("old", "new"), [ARTIFACT, IMAGE, WEIGHTS, KEY], ids=["artifact", "image", "weights", "key"])
def test_another_source_is_another_role_and_the_endpoint_configuration_stays(old: Deployment, new: Deployment) -> None:
    before, after = resources(old), resources(new)
    old_role, new_role = (of_kind(each, "AWS::IAM::Role", "ModelRole") for each in (before, after))
    assert len(old_role) == len(new_role) == 1
    assert old_role.keys().isdisjoint(new_role)
    for kind, name in (("AWS::SageMaker::EndpointConfig", ""), ("AWS::IAM::Role", "InstanceRole")):
        assert of_kind(before, kind, name) == of_kind(after, kind, name) != {}


def test_the_configurations_role_reads_neither_image_nor_weights() -> None:
    found = resources(prod())
    (role,) = of_kind(found, "AWS::IAM::Role", "InstanceRole").values()
    assert services(role) == {"cloudwatch", "ec2", "logs"}
    (model,) = of_kind(found, "AWS::IAM::Role", "ModelRole").values()
    assert services(model) == {"cloudwatch", "ec2", "ecr", "kms", "logs", "s3"}


def test_another_tag_of_the_same_repository_keeps_the_role() -> None:
    image = prod().serving.image
    newer = served(prod(), image=f"{image.rpartition(':')[0]}:0.99.0-lmi99")
    before, after = (of_kind(resources(each), "AWS::IAM::Role") for each in (prod(), newer))
    assert before == after


def test_another_network_is_another_role_of_both() -> None:
    network = prod().environment.network.model_copy(update={"subnet_ids": ("subnet-99",)})
    before, after = (
        of_kind(resources(each), "AWS::IAM::Role") for each in (prod(), environment(prod(), network=network))
    )
    assert before.keys().isdisjoint(after)


def services(role: Mapping[str, object]) -> set[str]:
    properties = role["Properties"]
    assert isinstance(properties, dict)
    statements = properties["Policies"][0]["PolicyDocument"]["Statement"]
    actions = (each["Action"] if isinstance(each["Action"], list) else [each["Action"]] for each in statements)
    return {action.partition(":")[0] for listed in actions for action in listed}
