from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial.errors import SpecError
from seatrial_cdk.added_component import AddedComponent
from seatrial_stacks.endpoint_stack import EndpointStack

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment


def add(stack: EndpointStack, deployment: Deployment, *, instance_type: str | None = None) -> AddedComponent:
    plan = deployment.plan
    if instance_type:
        plan = plan.model_copy(update={"instance_type": plan.instance_type.model_copy(update={"value": instance_type})})
    return AddedComponent(
        stack,
        "Second",
        endpoint=stack.endpoint,
        name="second",
        plan=plan,
        serving=deployment.serving,
        network=deployment.environment.network,
    )


def test_a_second_model_is_a_component_of_its_own_on_the_same_endpoint(dev_deployment: Deployment) -> None:
    stack = EndpointStack(App(), "Two", deployment=dev_deployment)
    added = add(stack, dev_deployment)
    template = Template.from_stack(stack)
    template.resource_count_is("AWS::SageMaker::Endpoint", 1)
    template.resource_count_is("AWS::SageMaker::Model", 2)
    assert added.inference_component_name == f"{dev_deployment.endpoint_name}-second"
    endpoint = stack.get_logical_id(stack.endpoint.endpoint)
    template.has_resource(
        "AWS::SageMaker::InferenceComponent",
        {
            "Properties": {
                "InferenceComponentName": added.inference_component_name,
                "EndpointName": {"Fn::GetAtt": [endpoint, "EndpointName"]},
                "Specification": Match.object_like(
                    {"ModelName": {"Fn::GetAtt": [stack.get_logical_id(added.model), "ModelName"]}}
                ),
            },
            "DependsOn": Match.array_with([endpoint]),
        },
    )


def test_each_model_has_a_role_that_reads_its_own_things_only(dev_deployment: Deployment) -> None:
    stack = EndpointStack(App(), "Two", deployment=dev_deployment)
    added = add(stack, dev_deployment)
    roles = {
        stack.resolve(added.role.role_arn)["Fn::GetAtt"][0],
        stack.resolve(stack.endpoint.model_role.role_arn)["Fn::GetAtt"][0],
        stack.resolve(stack.endpoint.instance_role.role_arn)["Fn::GetAtt"][0],
    }
    assert len(roles) == 3


def test_a_component_planned_for_other_instances_is_refused(dev_deployment: Deployment) -> None:
    stack = EndpointStack(App(), "Two", deployment=dev_deployment)
    with pytest.raises(
        SpecError, match=r"SEA404: second was planned for ml\.p5\.48xlarge, but the endpoint has ml\.g5"
    ):
        add(stack, dev_deployment, instance_type="ml.p5.48xlarge")
