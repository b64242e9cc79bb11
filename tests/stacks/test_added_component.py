from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial_cdk.endpoint.inference_component import AddedComponent
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.endpoint.planned_endpoint import planned_copies
from seatrial_cdk.endpoint.serving_container import ServingContainer
from seatrial_stacks.endpoint_stack import EndpointStack

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment


def hosting(stack: EndpointStack) -> LlmEndpoint:
    assert isinstance(stack.endpoint, LlmEndpoint)
    return stack.endpoint


def add(stack: EndpointStack, deployment: Deployment) -> AddedComponent:
    return AddedComponent(
        stack,
        "Second",
        endpoint=hosting(stack),
        name="second",
        container=ServingContainer.of(deployment.serving),
        copies=planned_copies(deployment.plan),
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
        stack.resolve(hosting(stack).model_role.role_arn)["Fn::GetAtt"][0],
        stack.resolve(hosting(stack).instance_role.role_arn)["Fn::GetAtt"][0],
    }
    assert len(roles) == 3
