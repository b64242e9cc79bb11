"""The alias: written last, and what a caller may do with it."""

from __future__ import annotations

import json
from dataclasses import replace

from aws_cdk import App
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from seatrial_stacks.endpoint_stack import EndpointStack
from tests.stacks.conftest import dev, prod

PARAMETER = "AWS::SSM::Parameter"


def test_the_alias_names_endpoint_and_component(dev_template: Template) -> None:
    (parameter,) = dev_template.find_resources(PARAMETER).values()
    properties = parameter["Properties"]
    assert (properties["Name"], properties["Type"]) == ("/seatrial/dev/chat/alias", "String")
    path = "/endpoints/dev-chat/inference-components/dev-chat-model/openai/v1"
    assert json.loads(properties["Value"]) == {
        "endpoint_name": "dev-chat",
        "inference_component_name": "dev-chat-model",
        "openai_base_url": f"https://runtime.sagemaker.us-east-1.amazonaws.com{path}",
    }


def test_the_base_url_for_openai_clients_is_an_output(dev_template: Template) -> None:
    (parameter,) = dev_template.find_resources(PARAMETER).values()
    output = dev_template.to_json()["Outputs"]["OpenAiBaseUrl"]
    assert output["Value"] == json.loads(parameter["Properties"]["Value"])["openai_base_url"]


def test_it_is_written_after_component_trial_and_scaling(dev_template: Template, weights_template: Template) -> None:
    kinds = (
        "AWS::SageMaker::InferenceComponent",
        "Custom::SmokeBenchmark",
        "AWS::ApplicationAutoScaling::ScalableTarget",
        "AWS::ApplicationAutoScaling::ScalingPolicy",
    )
    for template in (dev_template, weights_template):
        (parameter,) = template.find_resources(PARAMETER).values()
        first = {name for kind in kinds for name in template.find_resources(kind)}
        assert first == set(parameter["DependsOn"])


def test_it_keeps_its_name_and_moves_with_the_generation() -> None:
    second = replace(dev(), plan=dev().plan.model_copy(update={"generation": 2}))
    before, after = (
        Template.from_stack(EndpointStack(App(), "stack", deployment=each)).find_resources(PARAMETER)
        for each in (dev(), second)
    )
    assert before.keys() == after.keys()
    ((old,), (new,)) = (each.values() for each in (before, after))
    assert old["Properties"]["Name"] == new["Properties"]["Name"]
    assert json.loads(new["Properties"]["Value"])["endpoint_name"] == "dev-chat-2"


def granted_to_a_caller(*, openai: bool = False) -> dict[str, str]:
    """Return what a caller of the endpoint may do, with its resources as JSON."""
    stack = EndpointStack(App(), "stack", deployment=prod())
    role = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    stack.endpoint.grant_invoke(role, openai=openai)
    (policy,) = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    return {
        action: json.dumps(each["Resource"])
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }


def test_an_openai_client_may_call_with_a_bearer_token_too() -> None:
    plain, openai = granted_to_a_caller(), granted_to_a_caller(openai=True)
    assert openai == {**plain, "sagemaker:CallWithBearerToken": '"*"'}


def test_a_caller_may_invoke_every_generation_and_read_the_alias() -> None:
    granted = granted_to_a_caller()
    assert set(granted) == {
        "sagemaker:InvokeEndpoint",
        "sagemaker:InvokeEndpointWithResponseStream",
        "ssm:GetParameter",
    }
    invoked = granted["sagemaker:InvokeEndpoint"]
    for name in ("prod-chat", "prod-chat-?", "prod-chat-??"):
        assert f':endpoint/{name}"' in invoked
        assert f':inference-component/{name}-model"' in invoked
    assert ":eu-west-1:123456789012:parameter/seatrial/prod/chat/alias" in granted["ssm:GetParameter"]
