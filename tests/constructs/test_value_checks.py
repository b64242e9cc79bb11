"""Values that SageMaker refuses: told at the construct, all at once, and never as a traceback of the CDK."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, CfnParameter, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match
from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
from seatrial_cdk.endpoint.endpoint_parts import EndpointAlias
from seatrial_cdk.endpoint.inference_component import AddedComponent, ComponentCopies, CopyPlacement
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.endpoint.output_location import DataCapture, OutputLocation
from seatrial_cdk.endpoint.serving_container import ServingContainer
from seatrial_cdk.endpoint.single_model_endpoint import SingleModelEndpoint
from seatrial_cdk.endpoint.variant_instances import (
    ModelVariant,
    RequestRouting,
    ShadowVariant,
    TrafficShift,
    VariantInstances,
)
from seatrial_cdk.scaling.endpoint_scaling import CopyScaling, ScalingLimits, ScheduledCapacity

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu129"
INSTANCES = VariantInstances(instance_type="ml.g5.2xlarge")
CONTAINER = ServingContainer(image=IMAGE)
COPIES = ComponentCopies(accelerators=1, memory_min_mb=1024)
NIGHT = ScheduledCapacity(name="night", schedule="every night", timezone="Mars", min_capacity=1)


def endpoint(scope: Construct, **arguments: object) -> LlmEndpoint:
    given = {"instances": INSTANCES, "container": CONTAINER, "copies": COPIES, **arguments}
    return LlmEndpoint(scope, "Endpoint", **given)  # type: ignore[arg-type] # its arguments


def variants(scope: Construct, **arguments: object) -> SingleModelEndpoint:
    given = {"variants": [ModelVariant(container=CONTAINER, instances=INSTANCES)], **arguments}
    return SingleModelEndpoint(scope, "Endpoint", **given)  # type: ignore[arg-type] # its arguments


def scaling(scope: Construct, limits: ScalingLimits, target: float) -> None:
    imported = ILlmEndpoint(scope, "Endpoint", endpoint_name="chat", inference_component_name="chat-model")
    CopyScaling(scope, "Scaling", endpoint=imported, limits=limits, target_concurrency_per_copy=target)


def added(scope: Construct) -> None:
    copies = replace(COPIES, memory_min_mb=0)
    AddedComponent(scope, "Added", endpoint=endpoint(scope), name="added", container=CONTAINER, copies=copies)


def tokens(scope: Construct) -> None:
    number = CfnParameter(scope, "Number", type="Number").value_as_number
    endpoint(scope, instances=replace(INSTANCES, max_count=number), copies=replace(COPIES, copy_count=number))  # type: ignore[arg-type]
    timed = replace(INSTANCES, startup_timeout_s=number)  # type: ignore[arg-type]
    endpoint(Construct(scope, "Timed"), instances=timed).roll_back_on(["chat-slow"])
    scaling(Construct(scope, "Scaled"), ScalingLimits(min_capacity=number, max_capacity=2), number)  # type: ignore[arg-type]


def shared(scope: Construct) -> None:
    weight = CfnParameter(scope, "Number", type="Number").value_as_number
    shadow = ShadowVariant(container=CONTAINER, instances=INSTANCES, sampling_percentage=50)
    variants(scope, variants=[ModelVariant(container=CONTAINER, instances=INSTANCES, weight=weight)], shadow=shadow)


REPORTED: dict[str, tuple[Callable[[Construct], object], list[str]]] = {
    "right": (endpoint, []),
    "tokens": (tokens, []),
    "all of an endpoint": (
        lambda scope: endpoint(
            scope,
            instances=VariantInstances(
                instance_type="g5.2xlarge", initial_count=-1, routing=RequestRouting(prefix_length=5)
            ),
            container=replace(CONTAINER, weights_s3_uri="bucket/weights/"),
            copies=replace(COPIES, memory_min_mb=0, placement=CopyPlacement(max_imbalance=101)),
        ),
        [
            "instances.instance_type",
            "instances.initial_count is -1",
            "instances.routing.prefix_length is 5",
            "container.weights_s3_uri",
            "copies.memory_min_mb is 0",
            "copies.placement.max_imbalance is 101",
        ],
    ),
    "weight": (
        lambda scope: variants(scope, variants=[ModelVariant(container=CONTAINER, instances=INSTANCES, weight=-1)]),
        ["AllTraffic].weight is -1", "no variant has a weight"],
    ),
    "one more model": (added, ["copies.memory_min_mb is 0"]),
    "share of a token": (shared, ["Give numbers, no tokens"]),
    "view of no variant": (lambda scope: variants(scope).variant("new"), ["no variant is called new"]),
    "scaling": (
        lambda scope: scaling(scope, ScalingLimits(scale_in_cooldown_s=-1, schedules=(NIGHT,)), 0),
        ["limits.scale_in_cooldown_s is -1", "every night is neither", "time zone Mars is unknown", "the target is 0"],
    ),
    "subnets of no VPC": (
        lambda scope: endpoint(scope, vpc_subnets=ec2.SubnetSelection(one_per_az=True)),
        ["Give vpc beside them"],
    ),
    "alias": (
        lambda scope: EndpointAlias(scope, "Alias", endpoint=endpoint(scope, alias_name="seatrial/chat")),
        ["SEA447: the alias_name of Stack/alias/Endpoint is seatrial/chat"],
    ),
}


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    stack = Stack(App(analytics_reporting=False), "Stack")
    for name, (define, _) in REPORTED.items():
        define(Construct(stack, name))
    found = Annotations.from_stack(stack).find_error("*", Match.any_value())
    return {name: [str(each.entry.data) for each in found if f"/{name}" in each.id] for name in REPORTED}


@pytest.mark.parametrize("name", REPORTED)
def test_values_are_reported_at_their_construct(told: dict[str, list[str]], name: str) -> None:
    expected = REPORTED[name][1]
    assert len(told[name]) == len(expected), told[name]
    assert [part for part in expected if not any(part in each for each in told[name])] == []


@pytest.mark.parametrize(
    ("define", "fields"),
    [
        (
            lambda scope: endpoint(
                scope,
                instances=replace(INSTANCES, initial_count="2", pools="ml.g5.4xlarge"),  # type: ignore[arg-type]
                container=replace(CONTAINER, environment={"TP": 4, "HF_TOKEN": "hf_abcdefghij0123456789"}),  # type: ignore[dict-item]
                copies=replace(COPIES, memory_min_mb=0),
            ),
            ["instances.pools", "instances.initial_count", "container.environment.TP", "copies.memory_min_mb"],
        ),
        (lambda scope: variants(scope, data_capture=DataCapture(capture=("inputs",))), ["data_capture.capture"]),  # type: ignore[arg-type]
        (lambda scope: variants(scope, data_capture=DataCapture(capture=())), ["data_capture.capture"]),
        (
            lambda scope: variants(scope, data_capture=DataCapture(sampling_percentage=20.5)),  # type: ignore[arg-type]
            ["data_capture.sampling_percentage"],
        ),
        (lambda scope: variants(scope, shift=TrafficShift(kind="cannary")), ["shift.kind"]),  # type: ignore[arg-type]
        (lambda _: OutputLocation.of_uri("bucket/answers/"), [""]),
        (lambda _: OutputLocation.of_uri("s3://"), [""]),
    ],
)
def test_what_fits_no_template_is_one_error(define: Callable[[Construct], object], fields: list[str]) -> None:
    with pytest.raises(SpecError) as error:
        define(Stack(App(analytics_reporting=False), "Stack"))
    assert sorted(each.field for each in error.value.problems) == sorted(fields)
    assert {each.rule for each in error.value.problems} == {"SEA439"}
    assert "hf_abcdefghij" not in str(error.value)


@pytest.mark.parametrize(("prefix", "key"), [("answers", "answers/"), ("answers/", "answers/"), ("", ""), ("/", "")])
def test_rights_end_where_the_prefix_ends(prefix: str, key: str) -> None:
    assert OutputLocation.of_uri(f"s3://bucket/{prefix}").prefix == key
