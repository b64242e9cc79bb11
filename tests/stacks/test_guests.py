"""Further models and adapters of an endpoint: components of their own, in the stack of the endpoint that hosts them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial.deployment.packing import copies_of, pack, reservable
from seatrial.specs.endpoint import ServingSpec
from seatrial_base.catalog.instances import find_instance
from seatrial_stacks.endpoint_stack import EndpointStack
from tests.sample_plan import decided, sample_plan
from tests.stacks.conftest import alarms_that_roles_may_describe, dev, serving, spec

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

ADAPTERS = ServingSpec.model_validate(
    {
        "overrides": {"lora": {"max_rank": 16, "max_adapters": 2}},
        "adapters": [{"name": "sql", "s3_uri": "s3://adapters/sql/v1.tar.gz"}],
    }
)


def hosting() -> Deployment:
    host = dev()
    plans = [
        sample_plan(
            environment="dev",
            endpoint=name,
            instance_type=decided("ml.g5.12xlarge"),
            cpu_cores_per_copy=3.0,
            memory_min_mb=decided(1024),
        )
        for name in ("chat", "summarize")
    ]
    guest = replace(
        host,
        endpoint=spec(name="summarize", trial={"mode": "off"}, scaling={"min_copies": 1, "max_copies": 2}),
        serving=serving(weights_s3_uri="s3://weights/summarize/"),
        plan=plans[1],
    )
    room = find_instance("ml.g5.12xlarge")
    assert room is not None
    return replace(
        host,
        endpoint=host.endpoint.model_copy(update={"serving": ADAPTERS}),
        plan=plans[0],
        guests=(guest,),
        packing=pack([*map(copies_of, plans)], reservable(room)),
    )


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    return hosting()


@pytest.fixture(scope="module")
def template(deployment: Deployment) -> Template:
    return Template.from_stack(EndpointStack(App(), "Several", deployment=deployment))


def of_kind(template: Template, kind: str) -> dict[str, dict[str, dict[str, object]]]:
    return {name: one for name, one in template.to_json()["Resources"].items() if one["Type"] == kind}


def test_each_model_and_adapter_is_a_component_of_one_endpoint(template: Template) -> None:
    components = of_kind(template, "AWS::SageMaker::InferenceComponent").values()
    names = {str(each["Properties"]["InferenceComponentName"]) for each in components}
    assert names == {"dev-chat-model", "dev-chat-summarize", "dev-chat-adapter-sql"}
    template.resource_count_is("AWS::SageMaker::Endpoint", 1)
    template.resource_count_is("AWS::SageMaker::Model", 2)


def test_the_instances_are_those_of_the_packing(template: Template, deployment: Deployment) -> None:
    assert deployment.packing is not None
    scaling = {
        "MinInstanceCount": deployment.packing.instance_count,
        "MaxInstanceCount": deployment.packing.max_instances,
    }
    variant = {
        "InitialInstanceCount": deployment.packing.instance_count,
        "ManagedInstanceScaling": Match.object_like(scaling),
    }
    template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig", {"ProductionVariants": [Match.object_like(variant)]}
    )


def test_a_further_model_has_its_own_scaling_alarms_and_alias(template: Template) -> None:
    template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        {"ResourceId": "inference-component/dev-chat-summarize", "MaxCapacity": 2},
    )
    template.has_resource_properties(
        "AWS::CloudWatch::Alarm",
        {"Dimensions": [{"Name": "InferenceComponentName", "Value": "dev-chat-summarize"}]},
    )
    (value,) = (
        json.loads(str(each["Properties"]["Value"]))
        for each in of_kind(template, "AWS::SSM::Parameter").values()
        if each["Properties"]["Name"] == "/seatrial/dev/summarize/alias"
    )
    assert value["inference_component_name"] == "dev-chat-summarize"
    assert value["endpoint_name"] == "dev-chat"


def test_detailed_metrics_have_alarms_on_the_engines_of_each_model() -> None:
    several = hosting()
    host = several.endpoint.hosting.model_validate({"metrics": {"detailed": True}})
    deployed = replace(several, endpoint=several.endpoint.model_copy(update={"hosting": host}))
    alarms = of_kind(
        Template.from_stack(EndpointStack(App(), "Several", deployment=deployed)), "AWS::CloudWatch::Alarm"
    )
    queries = [json.dumps(each["Properties"].get("EvaluationCriteria", "")) for each in alarms.values()]
    counts = {name: sum(name in query for query in queries) for name in ("dev-chat-model", "dev-chat-summarize")}
    assert counts == {"dev-chat-model": 3, "dev-chat-summarize": 3}


def in_batches(deployment: Deployment) -> Deployment:
    plan = deployment.plan.model_copy(update={"copies_replaced_at_once": 1})
    return replace(deployment, plan=plan, guests=tuple(map(in_batches, deployment.guests)))


def test_each_role_may_describe_the_alarms_that_roll_its_components_back(deployment: Deployment) -> None:
    """The instances' role those of every component on them, a model's role those of its own component."""
    template = Template.from_stack(EndpointStack(App(), "Batches", deployment=in_batches(deployment)))
    named = {
        each["Properties"]["InferenceComponentName"]: frozenset(
            alarm["AlarmName"]["Ref"]
            for alarm in each["Properties"]["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
        )
        for each in template.find_resources("AWS::SageMaker::InferenceComponent").values()
        if "DeploymentConfig" in each["Properties"]
    }
    assert {*named} == {"dev-chat-model", "dev-chat-summarize"}
    described = {*map(frozenset, alarms_that_roles_may_describe(template).values())}
    assert described == {*named.values(), frozenset().union(*named.values())}


def test_an_adapter_names_its_base_and_takes_no_resources(template: Template) -> None:
    template.has_resource(
        "AWS::SageMaker::InferenceComponent",
        {
            "Properties": {
                "InferenceComponentName": "dev-chat-adapter-sql",
                "Specification": {
                    "BaseInferenceComponentName": "dev-chat-model",
                    "Container": {"ArtifactUrl": "s3://adapters/sql/v1.tar.gz"},
                },
                "RuntimeConfig": Match.absent(),
            },
            "DependsOn": Match.array_with([Match.string_like_regexp("EndpointComponent")]),
        },
    )


def test_the_adapters_archive_alone_is_read(template: Template) -> None:
    (policy,) = (
        each
        for each in of_kind(template, "AWS::IAM::Policy").values()
        if "adapters/sql" in json.dumps(each["Properties"])
    )
    statements = policy["Properties"]["PolicyDocument"]["Statement"]  # type: ignore[index]
    assert [each["Action"] for each in statements] == ["s3:GetObject", "s3:ListBucket"]
    assert json.dumps(statements[0]["Resource"]).endswith('s3:::adapters/sql/v1.tar.gz"]]}')
