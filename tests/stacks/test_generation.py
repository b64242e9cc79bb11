"""Another generation is another endpoint and component in the same stack: CloudFormation replaces both."""

from __future__ import annotations

from dataclasses import replace

from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial_stacks.endpoint_stack import EndpointStack
from tests.sample_plan import decided
from tests.stacks.conftest import dev

RENAMED = {"AWS::SageMaker::Endpoint", "AWS::SageMaker::InferenceComponent"}


def test_a_later_generation_replaces_endpoint_and_component_and_keeps_the_roles() -> None:
    first = dev()
    second = replace(first, plan=first.plan.model_copy(update={"generation": 2}))
    stacks = [EndpointStack(App(), "stack", deployment=each) for each in (first, second)]
    before, after = (Template.from_stack(stack).to_json()["Resources"] for stack in stacks)
    assert before.keys() == after.keys()
    assert stacks[0].stack_name == stacks[1].stack_name
    names = {
        each["Type"]: {key: value for key, value in each["Properties"].items() if key.endswith("Name")}
        for each in after.values()
        if each["Type"] in RENAMED
    }
    assert names["AWS::SageMaker::Endpoint"]["EndpointName"] == "dev-chat-2"
    assert names["AWS::SageMaker::InferenceComponent"]["InferenceComponentName"] == "dev-chat-2-model"
    for name, each in before.items():
        if each["Type"] == "AWS::IAM::Role":
            assert after[name] == each


def test_the_volume_is_as_planned_and_absent_beside_a_local_disk() -> None:
    sized = replace(dev(), plan=dev().plan.model_copy(update={"volume_size_gb": decided(60)}))
    for deployment, size in ((dev(), None), (sized, 60)):
        template = Template.from_stack(EndpointStack(App(), "stack", deployment=deployment))
        (config,) = template.find_resources("AWS::SageMaker::EndpointConfig").values()
        assert config["Properties"]["ProductionVariants"][0].get("VolumeSizeInGB") == size
