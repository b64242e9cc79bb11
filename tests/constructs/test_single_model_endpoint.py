"""Endpoints whose variants have their models: asynchronous, A/B, shadow, captured; updates, rights, contradictions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Annotations, Match, Template
from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.output_location import AsynchronousInference, DataCapture, OutputLocation
from seatrial_cdk.endpoint.serving_container import ServingContainer
from seatrial_cdk.endpoint.single_model_endpoint import SingleModelEndpoint
from seatrial_cdk.endpoint.variant_instances import (
    InstanceScaleIn,
    ModelVariant,
    ShadowVariant,
    TrafficShift,
    VariantInstances,
)
from seatrial_cdk.scaling.endpoint_scaling import BacklogScaling, ScalingLimits, VariantScaling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu129"
NEWER = IMAGE.replace("0.36.0", "0.37.0")
CONFIG, ENDPOINT = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Endpoint"
KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


def instances(count: int = 1) -> VariantInstances:
    return VariantInstances(instance_type="ml.g5.2xlarge", initial_count=count, scale_in=InstanceScaleIn())


def variant(name: str = "AllTraffic", *, image: str = IMAGE, weight: float = 1.0, count: int = 1) -> ModelVariant:
    return ModelVariant(container=ServingContainer(image=image), instances=instances(count), name=name, weight=weight)


def queue(scope: Construct) -> SingleModelEndpoint:
    topics = {name: sns.Topic(scope, name) for name in ("Success", "Error")}
    endpoint = SingleModelEndpoint(
        scope,
        "Endpoint",
        endpoint_name="Batch",
        variants=[variant()],
        asynchronous=AsynchronousInference(
            success_topic=topics["Success"], error_topic=topics["Error"], max_concurrent_invocations=4
        ),
    )
    limits = ScalingLimits(min_capacity=0, max_capacity=3)
    BacklogScaling(scope, "Scaling", endpoint=endpoint, limits=limits, target_backlog_per_instance=5)
    endpoint.grant_invoke(iam.Role(scope, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
    return endpoint


def split(scope: Construct) -> SingleModelEndpoint:
    captured = s3.Bucket.from_bucket_name(scope, "Captures", "captures-of-chat")
    endpoint = SingleModelEndpoint(
        scope,
        "Endpoint",
        endpoint_name="chat",
        variants=[variant("old", weight=9), variant("new", image=NEWER, count=2)],
        data_capture=DataCapture(
            destination=OutputLocation.in_bucket(captured, "chat/"), sampling_percentage=20, capture=("input",)
        ),
        shift=TrafficShift(kind="canary", percent=10, wait_s=120),
    )
    new = endpoint.variant("new")
    new.metric_model_latency().create_alarm(scope, "Slow", threshold=1, evaluation_periods=1)
    limits = ScalingLimits(min_capacity=1, max_capacity=3)
    VariantScaling(scope, "Scaling", endpoint=new, limits=limits, target_concurrency_per_instance=6)
    endpoint.roll_back_on(["chat-slow"])
    return endpoint


def shadowed(scope: Construct) -> SingleModelEndpoint:
    shadow = ShadowVariant(container=ServingContainer(image=NEWER), instances=instances(), sampling_percentage=25)
    endpoint = SingleModelEndpoint(scope, "Endpoint", endpoint_name="chat", variants=[variant()], shadow=shadow)
    endpoint.grant_invoke(iam.Role(scope, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
    return endpoint


@pytest.fixture(scope="module")
def templates() -> dict[str, Template]:
    app = App(analytics_reporting=False)
    found = {}
    for define in (queue, split, shadowed):
        stack = Stack(app, define.__name__)
        define(stack)
        found[define.__name__] = stack
    return {name: Template.from_stack(stack) for name, stack in found.items()}


@pytest.mark.parametrize(
    ("resource", "name"),
    [("AWS::SageMaker::Model", "ModelName"), (CONFIG, "EndpointConfigName")],
)
def test_what_is_replaced_has_no_name(templates: dict[str, Template], resource: str, name: str) -> None:
    for template in templates.values():
        template.all_resources_properties(resource, {name: Match.absent()})


def variants_of(template: Template, kind: str = "ProductionVariants") -> list[dict[str, object]]:
    (config,) = template.find_resources(CONFIG).values()
    found: list[dict[str, object]] = config["Properties"].get(kind, [])
    return found


def image_of(template: Template, variant: dict[str, object]) -> object:
    name = variant["ModelName"]
    assert isinstance(name, dict)
    return template.to_json()["Resources"][name["Fn::GetAtt"][0]]["Properties"]["PrimaryContainer"]["Image"]


def test_each_variant_has_its_model_and_no_managed_scaling(templates: dict[str, Template]) -> None:
    template = templates["split"]
    variants = variants_of(template)
    assert [(each["VariantName"], each["InitialVariantWeight"]) for each in variants] == [("old", 9), ("new", 1)]
    assert [image_of(template, each) for each in variants] == [IMAGE, NEWER]
    assert [each.get("ManagedInstanceScaling") for each in variants] == [None, None]
    assert [each["InitialInstanceCount"] for each in variants] == [1, 2]


def test_a_shadow_gets_its_share_of_the_only_variant(templates: dict[str, Template]) -> None:
    template = templates["shadowed"]
    (shadow,) = variants_of(template, "ShadowProductionVariants")
    assert (shadow["VariantName"], shadow["InitialVariantWeight"]) == ("Shadow", 0.25)
    assert image_of(template, shadow) == NEWER


def test_answers_go_to_a_private_bucket_by_default(templates: dict[str, Template]) -> None:
    template = templates["queue"]
    template.has_resource_properties(
        "AWS::S3::Bucket",
        {
            "PublicAccessBlockConfiguration": {
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
                "RestrictPublicBuckets": True,
            },
            "LifecycleConfiguration": {"Rules": [{"ExpirationInDays": 30, "Status": "Enabled"}]},
        },
    )
    template.has_resource_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
    output = {
        "S3OutputPath": Match.object_like({"Fn::Join": ["", ["s3://", Match.any_value(), "/answers/"]]}),
        "S3FailurePath": Match.object_like({"Fn::Join": ["", ["s3://", Match.any_value(), "/failures/"]]}),
        "KmsKeyId": Match.any_value(),
        "NotificationConfig": {"SuccessTopic": Match.any_value(), "ErrorTopic": Match.any_value()},
    }
    client = {"MaxConcurrentInvocationsPerInstance": 4}
    config = {"AsyncInferenceConfig": {"OutputConfig": output, "ClientConfig": client}}
    template.has_resource_properties(CONFIG, config)
    assert "shadowed" in templates
    templates["shadowed"].resource_count_is("AWS::S3::Bucket", 0)


def statements(template: Template, role: str) -> Iterator[tuple[set[str], str]]:
    """Yield actions and resources of the policies of a role, by the beginning of its logical ID."""
    for policy in template.find_resources("AWS::IAM::Policy").values():
        if policy["Properties"]["Roles"][0]["Ref"].startswith(role):
            for each in policy["Properties"]["PolicyDocument"]["Statement"]:
                action = each["Action"]
                yield {action} if isinstance(action, str) else set(action), str(each["Resource"])


@pytest.mark.parametrize(
    ("role", "action", "where"),
    [
        ("EndpointVariantAllTrafficModelRole", "s3:PutObject", "/answers/*"),
        ("EndpointVariantAllTrafficModelRole", "s3:PutObject", "/failures/*"),
        ("EndpointVariantAllTrafficModelRole", "s3:GetObject", "/requests/*"),
        ("EndpointVariantAllTrafficModelRole", "kms:GenerateDataKey", "Key"),
        ("EndpointVariantAllTrafficModelRole", "sns:Publish", "Success"),
        ("Caller", "sagemaker:InvokeEndpointAsync", "endpoint/batch"),
        ("Caller", "s3:PutObject", "/requests/*"),
        ("Caller", "s3:GetObject", "/answers/*"),
    ],
)
def test_the_rights_of_an_asynchronous_endpoint(
    templates: dict[str, Template], role: str, action: str, where: str
) -> None:
    found = [resources for actions, resources in statements(templates["queue"], role) if action in actions]
    assert any(where in each for each in found)


@pytest.mark.parametrize(
    ("role", "action", "where"),
    [
        ("EndpointVariantAllTrafficModelRole", "s3:PutObject", "/requests/*"),
        ("EndpointVariantAllTrafficModelRole", "s3:GetObject", "/answers/*"),
        ("Caller", "s3:PutObject", "/answers/*"),
    ],
)
def test_nobody_may_do_the_others_part(templates: dict[str, Template], role: str, action: str, where: str) -> None:
    found = [resources for actions, resources in statements(templates["queue"], role) if action in actions]
    assert not any(where in each for each in found)


def test_callers_of_a_queue_can_not_invoke_in_real_time_and_others_can(templates: dict[str, Template]) -> None:
    queued = set.union(*(actions for actions, _ in statements(templates["queue"], "Caller")))
    direct = set.union(*(actions for actions, _ in statements(templates["shadowed"], "Caller")))
    assert "sagemaker:InvokeEndpoint" not in queued
    assert direct == {"sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"}


def test_what_is_captured(templates: dict[str, Template]) -> None:
    capture = {
        "EnableCapture": True,
        "InitialSamplingPercentage": 20,
        "DestinationS3Uri": "s3://captures-of-chat/chat/",
        "CaptureOptions": [{"CaptureMode": "Input"}],
        "CaptureContentTypeHeader": {"JsonContentTypes": ["application/json"]},
    }
    templates["split"].has_resource_properties(CONFIG, {"DataCaptureConfig": capture})


@pytest.mark.parametrize(
    ("name", "excluded"),
    [
        ("shadowed", ["DesiredInstanceCount", "DesiredWeight", "DataCaptureConfig"]),
        ("split", ["DesiredWeight", "DataCaptureConfig"]),
        ("queue", ["DesiredWeight", "DataCaptureConfig"]),
    ],
)
def test_an_update_keeps_only_what_scaling_has_reached(
    templates: dict[str, Template], name: str, excluded: list[str]
) -> None:
    kept = [{"VariantPropertyType": each} for each in excluded]
    properties = {"RetainAllVariantProperties": True, "ExcludeRetainedVariantProperties": kept}
    templates[name].has_resource_properties(ENDPOINT, properties)


def test_a_canary_is_rolled_back_by_its_alarms(templates: dict[str, Template]) -> None:
    routing = {
        "Type": "CANARY",
        "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 10},
        "WaitIntervalInSeconds": 120,
    }
    update = {
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "chat-slow"}]},
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": routing,
            "TerminationWaitInSeconds": 300,
            "MaximumExecutionTimeoutInSeconds": 600 + 2 * 1800 + 2 * 120 + 300,
        },
        "RollingUpdatePolicy": Match.absent(),
    }
    templates["split"].has_resource_properties(ENDPOINT, {"DeploymentConfig": update})
    templates["shadowed"].has_resource_properties(ENDPOINT, {"DeploymentConfig": Match.absent()})


def test_metrics_and_scaling_are_of_the_variant(templates: dict[str, Template]) -> None:
    dimensions = [{"Name": "EndpointName", "Value": "chat"}, {"Name": "VariantName", "Value": "new"}]
    templates["split"].has_resource_properties("AWS::CloudWatch::Alarm", {"Dimensions": dimensions})
    target = {"ResourceId": "endpoint/chat/variant/new"}
    templates["split"].has_resource_properties("AWS::ApplicationAutoScaling::ScalableTarget", target)


def test_scaling_waits_for_the_endpoint(templates: dict[str, Template]) -> None:
    (target,) = templates["queue"].find_resources("AWS::ApplicationAutoScaling::ScalableTarget").values()
    (endpoint,) = templates["queue"].find_resources(ENDPOINT)
    assert target["DependsOn"] == [endpoint]


SHADOW = ShadowVariant(container=ServingContainer(image=IMAGE), instances=instances())
OTHER_KEY = VariantInstances(instance_type="ml.m5.large", volume_key_arn=KEY_ARN)
CONTRADICTIONS: dict[str, tuple[dict[str, object], list[str]]] = {
    "none": ({"variants": [variant()]}, []),
    "ten": ({"variants": [variant(f"v{each}") for each in range(10)]}, []),
    "eleven": ({"variants": [variant(f"v{each}") for each in range(11)]}, ["11 variants"]),
    "weightless": ({"variants": [variant(weight=0)]}, ["no variant has a weight"]),
    "two and shadow": ({"variants": [variant("a"), variant("b")], "shadow": SHADOW}, ["exactly one production"]),
    "queue and shadow": (
        {
            "variants": [variant()],
            "shadow": SHADOW,
            "asynchronous": AsynchronousInference(answers=OutputLocation.of_uri("s3://bucket/answers/")),
        },
        ["asynchronous endpoint has no shadow"],
    ),
    "keys": (
        {
            "variants": [
                variant("a"),
                ModelVariant(container=ServingContainer(image=IMAGE), instances=OTHER_KEY, name="b"),
            ]
        },
        ["different volume keys"],
    ),
    "capture of 101": (
        {
            "variants": [variant()],
            "data_capture": DataCapture(
                destination=OutputLocation.of_uri("s3://bucket/captures/"), sampling_percentage=101
            ),
        },
        ["data capture is 101"],
    ),
}


@pytest.fixture(scope="module")
def told() -> Callable[[str], list[str]]:
    stack = Stack(App(analytics_reporting=False), "Stack")
    for name, (arguments, _) in CONTRADICTIONS.items():
        SingleModelEndpoint(Construct(stack, name), "Endpoint", **arguments)  # type: ignore[arg-type] # its arguments
    annotations = Annotations.from_stack(stack)

    def errors(name: str) -> list[str]:
        found = annotations.find_error(f"/Stack/{name}/Endpoint", Match.string_like_regexp("SEA445"))
        return [str(each.entry.data) for each in found]

    return errors


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_variants_that_contradict_each_other(told: Callable[[str], list[str]], name: str) -> None:
    expected = CONTRADICTIONS[name][1]
    errors = told(name)
    assert [part in error for part, error in zip(expected, errors, strict=True)] == [True] * len(expected)


@pytest.mark.parametrize(
    ("variants", "shadow"),
    [([], None), ([variant("a"), variant("a")], None), ([variant("Shadow")], SHADOW)],
    ids=["none", "two of a name", "shadow of a name"],
)
def test_variants_that_can_not_be_told_apart(variants: list[ModelVariant], shadow: ShadowVariant | None) -> None:
    with pytest.raises(SpecError) as raised:
        SingleModelEndpoint(Stack(), "Endpoint", variants=variants, shadow=shadow)
    assert [problem.rule for problem in raised.value.problems] == ["SEA445"]


@pytest.mark.parametrize(("counts", "kind"), [((4,), "rolling"), ((4, 2), "CANARY"), ((4, 1), "ALL_AT_ONCE")])
def test_several_variants_move_by_a_canary_and_never_in_batches(counts: tuple[int, ...], kind: str) -> None:
    stack = Stack(App(), "S")
    variants = [variant(f"v{number}", count=count) for number, count in enumerate(counts)]
    SingleModelEndpoint(stack, "Endpoint", endpoint_name="chat", variants=variants).roll_back_on(["chat-slow"])
    (endpoint,) = Template.from_stack(stack).find_resources("AWS::SageMaker::Endpoint").values()
    config = endpoint["Properties"]["DeploymentConfig"]
    assert config["AutoRollbackConfiguration"] == {"Alarms": [{"AlarmName": "chat-slow"}]}
    assert ("RollingUpdatePolicy" in config, "BlueGreenUpdatePolicy" in config) == (
        kind == "rolling",
        kind != "rolling",
    )
    if kind != "rolling":
        routing = config["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
        assert routing["Type"] == kind
        canary = {"Type": "CAPACITY_PERCENT", "Value": 10} if kind == "CANARY" else None
        assert routing.get("CanarySize") == canary


def test_rolling_several_variants_is_refused() -> None:
    stack = Stack(App(), "S")
    variants = [variant("old", count=2), variant("new", count=2)]
    shift = TrafficShift(kind="rolling", percent=50)
    SingleModelEndpoint(stack, "Endpoint", endpoint_name="chat", variants=variants, shift=shift)
    Annotations.from_stack(stack).has_error("*", Match.string_like_regexp("SEA445: SageMaker rolls no update"))


def test_each_model_role_may_describe_the_alarms_of_the_rollback() -> None:
    stack = Stack(App(), "S")
    given = iam.Role(stack, "Given", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    variants = [variant("old"), replace(variant("new"), model_role=given)]
    SingleModelEndpoint(stack, "Endpoint", endpoint_name="chat", variants=variants).roll_back_on(["chat-slow"])
    template = Template.from_stack(stack)
    own = [each["Properties"].get("Policies", []) for each in template.find_resources("AWS::IAM::Role").values()]
    other = [each["Properties"] for each in template.find_resources("AWS::IAM::Policy").values()]
    documents = [policy["PolicyDocument"] for policies in own for policy in policies]
    documents += [each["PolicyDocument"] for each in other]
    alarms = [
        statement["Resource"]["Fn::Join"][1][-1]
        for document in documents
        for statement in document["Statement"]
        if statement["Action"] == "cloudwatch:DescribeAlarms"
    ]
    assert [name.rpartition(":")[2] for name in alarms] == ["chat-slow"] * 2


@pytest.mark.parametrize("is_mutable", [True, False])
def test_a_given_role_gets_the_rights_of_ours_or_its_owner_is_told_each(*, is_mutable: bool) -> None:
    stack = Stack(App(), "S", env=Environment(account="123456789012", region="us-east-1"))
    arn = "arn:aws:iam::123456789012:role/serving"
    given = iam.Role.from_role_arn(stack, "Given", arn, mutable=is_mutable)
    SingleModelEndpoint(stack, "Endpoint", endpoint_name="chat", variants=[replace(variant("new"), model_role=given)])
    template = Template.from_stack(stack)
    told = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("SEA668"))
    attached = [*template.find_resources("AWS::IAM::Policy").items()]
    if is_mutable:
        ((policy, made),) = attached
        text = json.dumps(made["Properties"])
        (model,) = template.find_resources("AWS::SageMaker::Model").values()
        assert policy in model["DependsOn"], "the model is not made before its role may read"
        assert told == []
    else:
        assert attached == []
        (warning,) = told
        text = f"{warning.entry.data}"
    for action in ("ecr:BatchGetImage", "logs:PutLogEvents", "cloudwatch:PutMetricData"):
        assert action in text
