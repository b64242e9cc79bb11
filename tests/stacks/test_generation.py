"""Another generation is another endpoint and component in the same stack, beside the former ones."""

from __future__ import annotations

from dataclasses import replace

from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial_stacks.endpoint_stack import EndpointStack
from tests.sample_plan import decided
from tests.stacks.conftest import dev

RENAMED = {"AWS::SageMaker::Endpoint", "AWS::SageMaker::InferenceComponent"}


def test_a_later_generation_is_made_of_new_resources_and_of_the_same_alias() -> None:
    """A component has no property whose change makes CloudFormation replace it."""
    first = dev()
    second = replace(first, plan=first.plan.model_copy(update={"generation": 2}))
    stacks = [EndpointStack(App(), "stack", deployment=each) for each in (first, second)]
    before, after = (Template.from_stack(stack).to_json()["Resources"] for stack in stacks)
    assert stacks[0].stack_name == stacks[1].stack_name
    assert [after[name]["Type"] for name in before.keys() & after.keys()] == ["AWS::SSM::Parameter"]
    names = {
        each["Type"]: {key: value for key, value in each["Properties"].items() if key.endswith("Name")}
        for each in after.values()
        if each["Type"] in RENAMED
    }
    assert names["AWS::SageMaker::Endpoint"]["EndpointName"] == "dev-chat-2"
    assert names["AWS::SageMaker::InferenceComponent"]["InferenceComponentName"] == "dev-chat-2-model"
    (candidate,) = (each for each in after.values() if each["Type"] == "Custom::CandidateTrial")
    assert candidate["Properties"]["Replaces"] == "dev-chat-model"


def test_the_volume_is_as_planned_and_absent_beside_a_local_disk() -> None:
    sized = replace(dev(), plan=dev().plan.model_copy(update={"volume_size_gb": decided(60)}))
    for deployment, size in ((dev(), None), (sized, 60)):
        template = Template.from_stack(EndpointStack(App(), "stack", deployment=deployment))
        (config,) = template.find_resources("AWS::SageMaker::EndpointConfig").values()
        assert config["Properties"]["ProductionVariants"][0].get("VolumeSizeInGB") == size
