"""Endpoints with the model in their variants, and scaling to zero, as a spec asks for them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial.locks.guard_rails import Beside, created_fleets
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.load import LoadedSpec
from seatrial.specs.yaml_source import Document
from seatrial_stacks.endpoint_stack import EndpointStack
from tests.stacks.conftest import alarms_that_roles_may_describe
from tests.stacks.conftest import dev as of_dev

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

TOPIC = "arn:aws:sns:us-east-1:123456789012:answers"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/vllm:new"
NIGHT = {"name": "night", "schedule": "cron(0 20 * * ? *)", "min_copies": 0, "max_copies": 1}
QUEUE = {"output_s3_uri": "s3://answers/chat/", "error_topic_arn": TOPIC, "max_concurrent_invocations_per_instance": 2}
SPLIT = {"variants": [{"name": "old", "weight": 9}, {"name": "new", "image": IMAGE, "instance_count": 3}]}
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"


def loaded_of(deployment: Deployment) -> LoadedSpec:
    spec, place = Document("chat.yaml", {}, {}, {}), Document("dev.yaml", {}, {}, {})
    return LoadedSpec(Path("chat.yaml"), deployment.endpoint, deployment.environment, spec, place)


def asked(endpoint: EndpointSpec, **fields: object) -> EndpointSpec:
    return EndpointSpec.model_validate({**endpoint.model_dump(exclude_unset=True), **fields})


@pytest.fixture(scope="module")
def deployments() -> dict[str, Deployment]:
    dev = of_dev()
    single = {"kind": "single_model"}
    off = {"mode": "off"}
    other = replace(dev, endpoint=asked(dev.endpoint, name="other", hosting=single, trial=off))
    shadow = {"spec": "other", "sampling_percentage": 50}
    cases: dict[str, dict[str, object]] = {
        "zero": {"scaling": {"min_copies": 0, "max_copies": 2, "instance_scale_in": {"cooldown_minutes": 5}}},
        "night": {"scaling": {"max_copies": 2, "schedules": [NIGHT]}},
        "queue": {
            "hosting": {**single, "asynchronous": QUEUE},
            "trial": off,
            "scaling": {"min_copies": 0, "max_copies": 2},
        },
        "split": {"hosting": {**single, **SPLIT}, "trial": off},
        "shadow": {
            "hosting": {**single, "shadow": shadow, "data_capture": {"s3_uri": "s3://kept/chat/"}},
            "trial": off,
        },
    }
    return {
        name: replace(dev, endpoint=asked(dev.endpoint, **fields), variants=(other,)) for name, fields in cases.items()
    }


@pytest.fixture(scope="module")
def templates(deployments: dict[str, Deployment]) -> dict[str, Template]:
    app = App(analytics_reporting=False)
    stacks = {name: EndpointStack(app, name, deployment=each) for name, each in deployments.items()}
    return {name: Template.from_stack(stack) for name, stack in stacks.items()}


def most_instances(template: Template) -> list[int]:
    """Return the most instances that each variant of a template may run, as managed or application scaling has it."""
    (config,) = template.find_resources("AWS::SageMaker::EndpointConfig").values()
    limits = {
        each["Properties"]["ResourceId"].rpartition("/")[2]: each["Properties"]["MaxCapacity"]
        for each in template.find_resources(TARGET).values()
    }
    properties = config["Properties"]
    variants = [*properties["ProductionVariants"], *properties.get("ShadowProductionVariants", [])]
    return [
        each["ManagedInstanceScaling"]["MaxInstanceCount"]
        if "ManagedInstanceScaling" in each
        else max(each["InitialInstanceCount"], limits.get(each["VariantName"], 0))
        for each in variants
    ]


@pytest.mark.parametrize("name", ["zero", "night", "queue", "split", "shadow"])
def test_guard_rails_are_held_against_the_instances_of_the_template(
    deployments: dict[str, Deployment], templates: dict[str, Template], name: str
) -> None:
    deployment = deployments[name]
    loaded = loaded_of(deployment)
    variants = {each.endpoint.name: (each.endpoint, each.plan) for each in deployment.variants}
    fleets = created_fleets(deployment.plan, loaded, Beside(variants=variants))
    managed = deployment.endpoint.hosting.kind == "inference_component"
    judged = [fleet.updating if managed else fleet.instances for fleet in fleets]
    assert judged == most_instances(templates[name])


@pytest.mark.parametrize("name", ["zero", "night"])
def test_instances_go_with_the_copies(templates: dict[str, Template], name: str) -> None:
    (config,) = templates[name].find_resources("AWS::SageMaker::EndpointConfig").values()
    (variant,) = config["Properties"]["ProductionVariants"]
    assert variant["ManagedInstanceScaling"]["MinInstanceCount"] == 0
    assert variant["InitialInstanceCount"] == 1
    assert variant["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert config["Properties"]["ExecutionRoleArn"]
    steps = {"Properties": {"PolicyType": "StepScaling"}}
    assert len(templates[name].find_resources("AWS::ApplicationAutoScaling::ScalingPolicy", steps)) == 1


def test_the_scale_in_of_instances_is_as_asked(templates: dict[str, Template]) -> None:
    policy = {"Strategy": "IDLE_RELEASE", "CooldownInMinutes": 5}
    variant = {"ManagedInstanceScaling": Match.object_like({"ScaleInPolicy": policy})}
    config = {"ProductionVariants": [Match.object_like(variant)]}
    templates["zero"].has_resource_properties("AWS::SageMaker::EndpointConfig", config)


def test_a_wake_raises_no_alarm_of_people(templates: dict[str, Template]) -> None:
    metric = {"Properties": {"MetricName": "NoCapacityInvocationFailures"}}
    found = templates["zero"].find_resources("AWS::CloudWatch::Alarm", metric).values()
    starts = (600 + 900 + 600) // 60  # an instance, the model's start and download, as planned
    assert sorted(each["Properties"]["EvaluationPeriods"] for each in found) == [1, starts, starts]


def test_a_schedule_sets_limits(templates: dict[str, Template]) -> None:
    action = {
        "ScheduledActionName": "night",
        "Schedule": "cron(0 20 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 0, "MaxCapacity": 1},
    }
    templates["night"].has_resource_properties(TARGET, {"MinCapacity": 1, "ScheduledActions": [action]})


def test_a_queue_has_its_answers_and_is_scaled_by_what_waits(templates: dict[str, Template]) -> None:
    output = {"S3OutputPath": "s3://answers/chat/", "NotificationConfig": {"ErrorTopic": TOPIC}}
    config = {"OutputConfig": output, "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 2}}
    template = templates["queue"]
    template.has_resource_properties("AWS::SageMaker::EndpointConfig", {"AsyncInferenceConfig": config})
    target = {"ResourceId": "endpoint/dev-chat/variant/AllTraffic", "MinCapacity": 0, "MaxCapacity": 2}
    template.has_resource_properties(TARGET, target)
    template.resource_count_is("AWS::SageMaker::InferenceComponent", 0)


def test_variants_share_traffic_and_are_scaled_each(templates: dict[str, Template]) -> None:
    template = templates["split"]
    (config,) = template.find_resources("AWS::SageMaker::EndpointConfig").values()
    variants = config["Properties"]["ProductionVariants"]
    found = [(each["VariantName"], each["InitialVariantWeight"], each["InitialInstanceCount"]) for each in variants]
    assert found == [("old", 9, 1), ("new", 1, 3)]
    images = {
        each["Properties"]["PrimaryContainer"]["Image"]
        for each in template.find_resources("AWS::SageMaker::Model").values()
    }
    assert IMAGE in images
    assert len(images) == 2
    scaled = {each["Properties"]["ResourceId"] for each in template.find_resources(TARGET).values()}
    assert scaled == {"endpoint/dev-chat/variant/old", "endpoint/dev-chat/variant/new"}


def test_a_shadow_runs_another_spec(templates: dict[str, Template]) -> None:
    shadow = {"VariantName": "shadow", "InitialVariantWeight": 0.5}
    config = {
        "ShadowProductionVariants": [Match.object_like(shadow)],
        "DataCaptureConfig": Match.object_like(
            {"DestinationS3Uri": "s3://kept/chat/", "InitialSamplingPercentage": 100}
        ),
    }
    templates["shadow"].has_resource_properties("AWS::SageMaker::EndpointConfig", config)
    templates["shadow"].resource_count_is("AWS::SageMaker::Model", 2)


def test_the_alias_names_no_component(templates: dict[str, Template]) -> None:
    (parameter,) = templates["queue"].find_resources("AWS::SSM::Parameter").values()
    assert json.loads(parameter["Properties"]["Value"]) == {
        "endpoint_name": "dev-chat",
        "inference_component_name": None,
    }
    assert "InferenceComponentName" not in templates["queue"].to_json()["Outputs"]


def test_each_variant_has_alarms_that_roll_an_update_back(templates: dict[str, Template]) -> None:
    template = templates["split"]
    alarms = template.find_resources("AWS::CloudWatch::Alarm")
    watched = [
        dimension["Value"]
        for each in alarms.values()
        for dimension in each["Properties"]["Dimensions"]
        if dimension["Name"] == "VariantName"
    ]
    assert sorted(watched) == ["new"] * 6 + ["old"] * 6
    (endpoint,) = template.find_resources("AWS::SageMaker::Endpoint").values()
    named = endpoint["Properties"]["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    assert {each["AlarmName"]["Ref"] for each in named} == {name for name in alarms if "OnCall" not in name}
    described = alarms_that_roles_may_describe(template)
    assert len(described) == 2
    assert all(each == {alarm["AlarmName"]["Ref"] for alarm in named} for each in described.values())
