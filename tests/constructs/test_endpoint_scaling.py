"""Scaling of every kind: what is scaled, by which metric, from zero, on a schedule; and what does not match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Annotations, Match, Template
from constructs import Construct

from seatrial_cdk.endpoint.inference_component import ComponentCopies
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.endpoint.serving_container import ServingContainer
from seatrial_cdk.endpoint.variant_instances import VariantInstances
from seatrial_cdk.scaling.endpoint_scaling import (
    BacklogScaling,
    CopyScaling,
    ScalingLimits,
    ScheduledCapacity,
    VariantScaling,
)

if TYPE_CHECKING:
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu129"
TARGET, POLICY = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"
NIGHT = ScheduledCapacity(
    name="night", schedule="cron(0 20 * * ? *)", timezone="Europe/Berlin", min_capacity=0, max_capacity=2
)


@pytest.fixture(scope="module")
def every_kind() -> Template:
    stack = Stack(App(analytics_reporting=False), "Stack")
    to_zero = ScalingLimits(min_capacity=0, max_capacity=4, scale_in_protection=True)
    name = LlmEndpoint.from_attributes
    components = name(stack, "A", endpoint_name="chat", inference_component_name="chat-model")
    CopyScaling(stack, "Copies", endpoint=components, limits=to_zero, target_concurrency_per_copy=8)
    variant = name(stack, "B", endpoint_name="Summarize")
    two = ScalingLimits(min_capacity=1, max_capacity=2)
    VariantScaling(stack, "Variant", endpoint=variant, limits=two, target_concurrency_per_instance=6)
    queue = name(stack, "C", endpoint_name="batch", is_asynchronous=True)
    by_night = ScalingLimits(min_capacity=1, max_capacity=3, schedules=(NIGHT,))
    BacklogScaling(stack, "Backlog", endpoint=queue, limits=by_night, target_backlog_per_instance=5)
    return Template.from_stack(stack)


@pytest.mark.parametrize(
    ("resource", "dimension", "limits"),
    [
        ("inference-component/chat-model", "sagemaker:inference-component:DesiredCopyCount", (0, 4)),
        ("endpoint/Summarize/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", (1, 2)),
        ("endpoint/batch/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", (1, 3)),
    ],
)
def test_what_is_scaled(every_kind: Template, resource: str, dimension: str, limits: tuple[int, int]) -> None:
    expected = {"ResourceId": resource, "ScalableDimension": dimension, "MinCapacity": limits[0]}
    every_kind.has_resource_properties(TARGET, {**expected, "MaxCapacity": limits[1]})


@pytest.mark.parametrize(
    ("metric", "target"),
    [
        ("SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution", 8),
        ("SageMakerVariantConcurrentRequestsPerModelHighResolution", 6),
    ],
)
def test_the_metric_is_that_of_the_kind(every_kind: Template, metric: str, target: int) -> None:
    tracking = {
        "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
        "CustomizedMetricSpecification": Match.absent(),
        "TargetValue": target,
        "ScaleOutCooldown": 60,
        "ScaleInCooldown": 300,
    }
    every_kind.has_resource_properties(POLICY, {"TargetTrackingScalingPolicyConfiguration": tracking})


def test_a_queue_is_scaled_by_what_waits_per_instance(every_kind: Template) -> None:
    metric = {
        "MetricName": "ApproximateBacklogSizePerInstance",
        "Namespace": "AWS/SageMaker",
        "Statistic": "Average",
        "Dimensions": [{"Name": "EndpointName", "Value": "batch"}],
    }
    tracking = {"CustomizedMetricSpecification": metric, "PredefinedMetricSpecification": Match.absent()}
    every_kind.has_resource_properties(
        POLICY, {"TargetTrackingScalingPolicyConfiguration": Match.object_like(tracking)}
    )


def test_protected_copies_are_not_removed_and_others_are(every_kind: Template) -> None:
    policies = every_kind.find_resources(POLICY, {"Properties": {"PolicyType": "TargetTrackingScaling"}}).values()
    tracking = [each["Properties"]["TargetTrackingScalingPolicyConfiguration"] for each in policies]
    assert {each["TargetValue"]: each.get("DisableScaleIn") for each in tracking} == {8: True, 6: None, 5: None}


@pytest.mark.parametrize(
    ("metric", "expected", "aggregation", "cooldown_s"),
    [
        (
            "NoCapacityInvocationFailures",
            {
                "Dimensions": [{"Name": "InferenceComponentName", "Value": "chat-model"}],
                "Statistic": "Sum",
                "EvaluationPeriods": 1,
                "TreatMissingData": "notBreaching",
            },
            "Maximum",
            60,
        ),
        (
            "HasBacklogWithoutCapacity",
            {
                "Dimensions": [{"Name": "EndpointName", "Value": "batch"}],
                "Statistic": "Average",
                "EvaluationPeriods": 2,
                "TreatMissingData": "missing",
            },
            "Average",
            300,
        ),
    ],
)
def test_the_first_one_is_started_by_an_alarm(
    every_kind: Template, metric: str, expected: dict[str, object], aggregation: str, cooldown_s: int
) -> None:
    found = every_kind.find_resources("AWS::CloudWatch::Alarm", {"Properties": {"MetricName": metric, **expected}})
    (alarm,) = (each["Properties"] for each in found.values())
    assert (alarm["Threshold"], alarm["Period"], alarm["Namespace"]) == (1, 60, "AWS/SageMaker")
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    (action,) = alarm["AlarmActions"]
    policy = every_kind.to_json()["Resources"][action["Ref"]]["Properties"]
    assert policy["PolicyType"] == "StepScaling"
    assert policy["StepScalingPolicyConfiguration"] == {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": cooldown_s,
        "MetricAggregationType": aggregation,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
    }


def test_only_what_goes_to_zero_has_a_step(every_kind: Template) -> None:
    every_kind.resource_count_is(POLICY, 3 + 2)


def test_a_schedule_is_an_action_of_the_target(every_kind: Template) -> None:
    action = {
        "ScheduledActionName": "night",
        "Schedule": "cron(0 20 * * ? *)",
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MinCapacity": 0, "MaxCapacity": 2},
    }
    every_kind.has_resource_properties(TARGET, {"ScheduledActions": [action]})


KINDS: dict[str, dict[str, object]] = {
    "CopyScaling": {"endpoint_name": "chat", "inference_component_name": "chat-model"},
    "VariantScaling": {"endpoint_name": "chat"},
    "BacklogScaling": {"endpoint_name": "chat", "is_asynchronous": True},
}
TWO = ScalingLimits(min_capacity=1, max_capacity=2)
ONE_TO_ZERO = ScalingLimits(min_capacity=0, max_capacity=2)
CONTRADICTIONS: dict[str, tuple[ScalingLimits, list[str]]] = {
    "none": (TWO, []),
    "equal": (ScalingLimits(min_capacity=2, max_capacity=2), []),
    "reversed": (ScalingLimits(min_capacity=3, max_capacity=2), ["SEA444"]),
    "below": (ScalingLimits(min_capacity=-1, max_capacity=2), ["SEA444"]),
    "zero": (ONE_TO_ZERO, ["SEA443"]),
    "zero by night": (ScalingLimits(max_capacity=2, schedules=(NIGHT,)), ["SEA443"]),
    "no change": (
        ScalingLimits(max_capacity=2, schedules=(ScheduledCapacity(name="a", schedule="rate(1 day)"),)),
        ["SEA444"],
    ),
    "same name and reversed": (
        ScalingLimits(
            max_capacity=2,
            schedules=(
                ScheduledCapacity(name="a", schedule="rate(1 day)", min_capacity=2),
                ScheduledCapacity(name="a", schedule="rate(2 days)", min_capacity=3),
            ),
        ),
        ["SEA444", "SEA444"],
    ),
}


def scale(scope: Construct, used: str, endpoint: ILlmEndpoint, limits: ScalingLimits) -> None:
    if used == "CopyScaling":
        CopyScaling(scope, "Scaling", endpoint=endpoint, limits=limits, target_concurrency_per_copy=8)
    elif used == "VariantScaling":
        VariantScaling(scope, "Scaling", endpoint=endpoint, limits=limits, target_concurrency_per_instance=8)
    else:
        BacklogScaling(scope, "Scaling", endpoint=endpoint, limits=limits, target_backlog_per_instance=8)


def component_endpoint(scope: Construct, *, min_count: int | None, copy_count: int = 1) -> LlmEndpoint:
    return LlmEndpoint(
        scope,
        "Endpoint",
        instances=VariantInstances(instance_type="ml.g5.2xlarge", min_count=min_count),
        container=ServingContainer(image=IMAGE),
        copies=ComponentCopies(accelerators=1, memory_min_mb=1024, copy_count=copy_count),
    )


@pytest.fixture(scope="module")
def told() -> Annotations:
    """Synthesize every case once, each below a construct of its own."""
    stack = Stack(App(analytics_reporting=False), "Stack")
    for used in KINDS:
        for matching, attributes in KINDS.items():
            case = Construct(stack, f"{used} of {matching}")
            endpoint = LlmEndpoint.from_attributes(case, "Endpoint", **attributes)  # type: ignore[arg-type] # its fields
            scale(case, used, endpoint, TWO)
    for name, (limits, _) in CONTRADICTIONS.items():
        case = Construct(stack, name)
        scale(case, "VariantScaling", LlmEndpoint.from_attributes(case, "Endpoint", endpoint_name="chat"), limits)
    for min_count in (0, None):
        case = Construct(stack, f"at least {min_count}")
        scale(case, "CopyScaling", component_endpoint(case, min_count=min_count), ONE_TO_ZERO)
    for copies in (0, 1):
        component_endpoint(Construct(stack, f"{copies} at first"), min_count=0, copy_count=copies)
    return Annotations.from_stack(stack)


def errors(told: Annotations, path: str, rule: str = "SEA") -> list[str]:
    found = told.find_error(f"/Stack/{path}", Match.string_like_regexp(rule))
    return sorted(str(each.entry.data) for each in found)


@pytest.mark.parametrize("matching", KINDS)
@pytest.mark.parametrize("used", KINDS)
def test_a_wrong_pair_is_an_error_that_names_the_right_one(told: Annotations, used: str, matching: str) -> None:
    found = errors(told, f"{used} of {matching}/Scaling", "SEA442")
    assert [each.endswith(f"Use {matching}.") for each in found] == ([] if used == matching else [True])


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_limits_that_contradict_each_other(told: Annotations, name: str) -> None:
    rules = [each.partition(":")[0] for each in errors(told, f"{name}/Scaling")]
    assert rules == CONTRADICTIONS[name][1]


@pytest.mark.parametrize(("min_count", "warnings"), [(0, 0), (None, 1)])
def test_instances_that_stay_without_copies_are_told(told: Annotations, min_count: int | None, warnings: int) -> None:
    path = f"/Stack/at least {min_count}/Scaling"
    assert len(told.find_warning(path, Match.string_like_regexp("SEA443"))) == warnings


@pytest.mark.parametrize(("copies", "expected"), [(0, 1), (1, 0)])
def test_a_component_is_created_with_a_copy(told: Annotations, copies: int, expected: int) -> None:
    assert len(errors(told, f"{copies} at first/Endpoint", "SEA443")) == expected
