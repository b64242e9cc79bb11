"""Endpoints whose variants have models: weights, shadows, updates, instance pools."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from seatrial_laptop.aws.alarms import StateValue
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.control_plane.records import Kind, Status
from seatrial_laptop.aws.control_plane.rollout import traffic_shifts
from seatrial_laptop.aws.runtime.routing import Route, route_request, shadow_route
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from tests.stub_cloud import StubSageMaker, variant

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.runtime.running_copies import CopyProcess

TARGET = "x-amzn-sagemaker-target-variant"
SERVERLESS = {"MemorySizeInMB": 4096, "MaxConcurrency": 5}
NETWORK = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


def serverless(name: str, **size: int) -> dict[str, object]:
    return {"VariantName": name, "ModelName": "one", "ServerlessConfig": SERVERLESS | size}


def asked(stub: StubSageMaker, count: int, **headers: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    for _ in range(count):
        found = route_request(stub.cloud, "chat", headers)
        found.copy.outstanding -= 1
        seen[found.variant] += 1
    return seen


def shadowed(stub: StubSageMaker, count: int) -> int:
    found: list[Route] = [each for _ in range(count) if (each := shadow_route(stub.cloud, "chat"))]
    for each in found:
        each.copy.outstanding -= 1
    return len(found)


def a_and_b(stub: StubSageMaker) -> None:
    stub.model("one")
    stub.model("two")
    stub.config("ab", variant("a", "one", InitialVariantWeight=3.0), variant("b", "two", InitialVariantWeight=1.0))
    assert stub.endpoint("chat", "ab").status is Status.IN_SERVICE


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ApiError) as refusal:
        call()
    return refusal.value.message


def test_requests_go_to_variants_by_weight_or_by_name(stub: StubSageMaker) -> None:
    a_and_b(stub)
    assert asked(stub, 8) == {"a": 6, "b": 2}
    assert asked(stub, 3, **{TARGET: "b"}) == {"b": 3}
    assert "Variant c was not found" in refused(lambda: asked(stub, 1, **{TARGET: "c"}))


def test_weights_and_instance_counts_change_without_an_update(stub: StubSageMaker) -> None:
    a_and_b(stub)
    wanted = [{"VariantName": "a", "DesiredWeight": 0.0}, {"VariantName": "b", "DesiredInstanceCount": 3}]
    stub.call("UpdateEndpointWeightsAndCapacities", EndpointName="chat", DesiredWeightsAndCapacities=wanted)
    stub.settled(Kind.ENDPOINT, "chat")
    told = stub.variants("chat")
    assert [told[name]["CurrentWeight"] for name in "ab"] == [0.0, 1.0]
    assert [told[name]["CurrentInstanceCount"] for name in "ab"] == [1, 3]
    assert asked(stub, 4) == {"b": 4}


def test_weights_of_what_is_not_there_or_not_allowed_are_refused(stub: StubSageMaker) -> None:
    a_and_b(stub)

    def change(**what: object) -> Callable[[], object]:
        wanted = [{"VariantName": "a", **what}]
        return lambda: stub.call(
            "UpdateEndpointWeightsAndCapacities", EndpointName="chat", DesiredWeightsAndCapacities=wanted
        )

    assert "Could not find variant" in refused(change(VariantName="z", DesiredWeight=1.0))
    assert "must be at least 1" in refused(change(DesiredInstanceCount=0))
    assert stub.cloud.store.need(Kind.ENDPOINT, "chat").status is Status.IN_SERVICE


def test_a_lack_of_capacity_keeps_what_serves(stub: StubSageMaker) -> None:
    a_and_b(stub)
    stub.cloud.faults.change({"capacity_limit": 2})
    wanted = [{"VariantName": "b", "DesiredInstanceCount": 3}]
    stub.call("UpdateEndpointWeightsAndCapacities", EndpointName="chat", DesiredWeightsAndCapacities=wanted)
    record = stub.settled(Kind.ENDPOINT, "chat")
    assert (record.status, record.failure_reason.partition(":")[0]) == (
        Status.IN_SERVICE,
        "InsufficientInstanceCapacity",
    )
    assert stub.variants("chat")["b"]["DesiredInstanceCount"] == 1


def test_a_shadow_variant_gets_its_share_and_is_never_routed_to(stub: StubSageMaker) -> None:
    stub.model("one")
    stub.model("two")
    shadow = [variant("new", "two", InitialVariantWeight=0.5)]
    stub.config("with-shadow", variant("a", "one"), ShadowProductionVariants=shadow)
    stub.endpoint("chat", "with-shadow")
    assert asked(stub, 4) == {"a": 4}
    assert shadowed(stub, 8) == 4
    told = stub.call("DescribeEndpoint", EndpointName="chat")
    assert [len(told[key]) for key in ("ProductionVariants", "ShadowProductionVariants")] == [1, 1]  # type: ignore[arg-type]
    stub.call("DeleteEndpoint", EndpointName="chat")
    deadline = time.monotonic() + 20
    while stub.cloud.store.find(Kind.ENDPOINT, "chat") and time.monotonic() < deadline:
        time.sleep(0.005)
    assert stub.running.places() == []


@pytest.mark.parametrize(
    ("variants", "more", "said"),
    [
        ([variant("a", "one"), variant("a", "one")], {}, "Variant names must be unique: a."),
        ([variant("a", "one"), variant("b")], {}, "Either every variant has a model, or none"),
        (
            [variant("a", "one"), variant("b", "one")],
            {"ShadowProductionVariants": [variant("s", "one")]},
            "exactly one production variant and one shadow variant",
        ),
        ([variant("a", "one")], {"AsyncInferenceConfig": {"OutputConfig": {}}}, "needs S3OutputPath"),
        ([variant("a")], {"AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": "s3://b/o"}}}, "with a ModelName"),
        (
            [variant("a", "one", InstancePools=[{"InstanceType": "ml.g5.xlarge", "Priority": 1}] * 2)],
            {},
            "the same InstanceType more than once: ml.g5.xlarge",
        ),
        (
            [
                {
                    **variant("a", InstancePools=[{"InstanceType": "ml.g5.xlarge", "Priority": 1}]),
                    "InstanceType": "ml.g5.xlarge",
                }
            ],
            {},
            "exclude each other",
        ),
        (
            [variant("a", ManagedInstanceScaling={"Status": "ENABLED", "MinInstanceCount": 3, "MaxInstanceCount": 2})],
            {},
            "MinInstanceCount of variant a is greater",
        ),
        (
            [
                variant(
                    "a", RoutingConfig={"RoutingStrategy": "RANDOM", "PrefixAwareRoutingConfig": {"PrefixLength": 1024}}
                )
            ],
            {},
            "needs RoutingStrategy PREFIX_AWARE",
        ),
        (
            [variant("a", "one")],
            {
                "AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": "s3://b/o"}},
                "ShadowProductionVariants": [variant("s", "one")],
            },
            "an asynchronous endpoint takes no ShadowProductionVariants",
        ),
        (
            [variant("a", "one", ServerlessConfig=SERVERLESS)],
            {},
            "takes no InstanceType; a serverless variant takes no InitialInst",
        ),
        ([serverless("a"), serverless("b")], {}, "a serverless variant takes at most 1 of ProductionVariants, not 2"),
        ([serverless("a")], {"VpcConfig": NETWORK}, "a serverless variant takes no VpcConfig"),
        ([serverless("a", MemorySizeInMB=4000)], {}, "MemorySizeInMB is one of 1024, 2048, 3072, 4096, 5120, 6144"),
        ([serverless("a", ProvisionedConcurrency=6)], {}, "ProvisionedConcurrency is at most MaxConcurrency"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    stub: StubSageMaker, variants: list[dict[str, object]], more: dict[str, object], said: str
) -> None:
    stub.model("one")
    assert said in refused(lambda: stub.config("c", *variants, **more))
    assert stub.cloud.store.all(Kind.ENDPOINT_CONFIG) == []


def test_a_model_in_a_vpc_is_no_serverless_one_and_a_configuration_that_fits_is_kept(stub: StubSageMaker) -> None:
    stub.model("one")
    stub.call(
        "CreateModel", ModelName="inside", PrimaryContainer={"Image": "r/djl-inference:0.36.0"}, VpcConfig=NETWORK
    )
    inside = {**serverless("a"), "ModelName": "inside"}
    assert "a serverless variant takes no VpcConfig" in refused(lambda: stub.config("c", inside))
    stub.config("c", serverless("a"))
    stub.config("d", variant("a", "one"), VpcConfig=NETWORK)
    assert [each.name for each in stub.cloud.store.all(Kind.ENDPOINT_CONFIG)] == ["c", "d"]


def updated(stub: StubSageMaker, **request: object) -> tuple[Status | None, str]:
    stub.call("UpdateEndpoint", EndpointName="chat", **request)
    record = stub.settled(Kind.ENDPOINT, "chat")
    return record.status, record.failure_reason


@pytest.mark.parametrize(
    "deployment",
    [
        {},
        {
            "BlueGreenUpdatePolicy": {
                "TrafficRoutingConfiguration": {
                    "Type": "CANARY",
                    "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 25},
                    "WaitIntervalInSeconds": 10,
                },
                "TerminationWaitInSeconds": 10,
            }
        },
        {
            "RollingUpdatePolicy": {
                "MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2},
                "WaitIntervalInSeconds": 10,
            }
        },
    ],
    ids=["all-at-once", "canary", "rolling"],
)
def test_an_update_replaces_every_copy(stub: StubSageMaker, deployment: dict[str, object]) -> None:
    stub.model("one")
    stub.model("two")
    stub.config("old", variant("a", "one", count=4))
    stub.config("new", variant("a", "two", count=4))
    stub.endpoint("chat", "old")
    old = set(stub.running.copies(CopyPlace("chat", "a")))
    given = {"DeploymentConfig": deployment} if deployment else {}
    assert updated(stub, EndpointConfigName="new", **given) == (Status.IN_SERVICE, "")
    assert len(stub.running.copies(CopyPlace("chat", "a"))) == 4
    assert not old & stub.running.every_copy(CopyPlace("chat", "a"))
    assert all(copy.process.poll() is not None for copy in old)
    assert sum(count for _, name, count in stub.running.launched if name == "two") == 4


def test_an_alarm_during_the_canary_returns_all_traffic_to_the_old_copies(stub: StubSageMaker) -> None:
    stub.model("one")
    stub.model("two")
    stub.config("old", variant("a", "one", count=2))
    stub.config("new", variant("a", "two", count=2))
    stub.endpoint("chat", "old")
    old = stub.running.copies(CopyPlace("chat", "a"))
    stub.alarms["errors"] = StateValue.ALARM
    routing = {
        "Type": "CANARY",
        "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1},
        "WaitIntervalInSeconds": 60,
    }
    deployment = {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]},
    }
    status, reason = updated(stub, EndpointConfigName="new", DeploymentConfig=deployment)
    assert (status, reason) == (Status.IN_SERVICE, "Alarms in state ALARM: errors.")
    assert stub.running.copies(CopyPlace("chat", "a")) == old
    assert stub.running.every_copy(CopyPlace("chat", "a")) == set(old)
    assert stub.call("DescribeEndpoint", EndpointName="chat")["EndpointConfigName"] == "old"


def test_a_copy_that_fails_keeps_the_old_ones(stub: StubSageMaker) -> None:
    a_and_b(stub)
    stub.model("broken", FAIL="1")
    stub.config("bad", variant("a", "one"), variant("b", "broken"))
    before = stub.running.copies(CopyPlace("chat", "a"))
    assert updated(stub, EndpointConfigName="bad") == (Status.IN_SERVICE, "The container ended.")
    assert stub.running.copies(CopyPlace("chat", "a")) == before


def test_an_update_retains_weights_and_counts_when_it_is_told_to(stub: StubSageMaker) -> None:
    a_and_b(stub)
    wanted = [{"VariantName": "b", "DesiredWeight": 7.0, "DesiredInstanceCount": 2}]
    stub.call("UpdateEndpointWeightsAndCapacities", EndpointName="chat", DesiredWeightsAndCapacities=wanted)
    stub.settled(Kind.ENDPOINT, "chat")
    stub.config("next", variant("a", "one"), variant("b", "one"))

    def told() -> tuple[object, object]:
        seen = stub.variants("chat")["b"]
        return seen["CurrentWeight"], seen["CurrentInstanceCount"]

    updated(stub, EndpointConfigName="next", RetainAllVariantProperties=True)
    assert told() == (7.0, 2)
    excluded = [{"VariantPropertyType": "DesiredWeight"}]
    updated(stub, EndpointConfigName="next", RetainAllVariantProperties=True, ExcludeRetainedVariantProperties=excluded)
    assert told() == (1.0, 2)
    updated(stub, EndpointConfigName="next")
    assert told() == (1.0, 1)


def test_the_first_pool_with_capacity_is_used(stub: StubSageMaker) -> None:
    stub.model("one")
    stub.model("small")
    pools = [
        {"InstanceType": "ml.g6e.12xlarge", "Priority": 1},
        {"InstanceType": "ml.g5.12xlarge", "Priority": 2, "ModelNameOverride": "small"},
    ]
    stub.config("pools", variant("a", "one", count=2, InstancePools=pools))
    stub.cloud.faults.change({"no_capacity": ["ml.g6e.12xlarge"]})
    stub.endpoint("chat", "pools")
    assert stub.variants("chat")["a"]["InstancePools"] == [
        {"InstanceType": "ml.g6e.12xlarge", "CurrentInstanceCount": 0},
        {"InstanceType": "ml.g5.12xlarge", "CurrentInstanceCount": 2},
    ]
    assert stub.running.launched == [(CopyPlace("chat", "a"), "small", 2)]
    stub.cloud.faults.change({"no_capacity": ["ml.g6e.12xlarge", "ml.g5.12xlarge"]})
    assert stub.endpoint("second", "pools").failure_reason == (
        "InsufficientInstanceCapacity: no instance of ml.g6e.12xlarge, ml.g5.12xlarge can be had."
    )


def test_the_same_prefix_reaches_the_same_copy_while_it_has_few_requests(stub: StubSageMaker) -> None:
    stub.model("one")
    config = {"PrefixLength": 1024, "ConcurrencyThreshold": 2}
    routing = {"RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": config}
    stub.config("prefix", variant("a", "one", count=3, RoutingConfig=routing))
    stub.endpoint("chat", "prefix")

    def ask(body: bytes, **headers: str) -> CopyProcess:
        return route_request(stub.cloud, "chat", headers, body).copy

    start = b"x" * 1024
    first = ask(start + b"one")
    assert ask(start + b"two") is first
    assert ask(start + b"three") is not first
    for copy in stub.running.copies(CopyPlace("chat", "a")):
        copy.outstanding = 0
    ids = [ask(bytes([at]), **{"x-amzn-sagemaker-prefix-aware-id": "user-1"}) for at in range(2)]
    assert ids[0] is ids[1]


@pytest.mark.parametrize(
    ("routing", "copies", "shifted"),
    [
        ({}, 4, [4]),
        ({"Type": "ALL_AT_ONCE"}, 4, [4]),
        ({"Type": "CANARY", "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 10}}, 4, [1, 4]),
        ({"Type": "CANARY", "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 2}}, 4, [2, 4]),
        ({"Type": "LINEAR", "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 25}}, 8, [2, 4, 6, 8]),
        ({"Type": "LINEAR", "LinearStepSize": {"Type": "INSTANCE_COUNT", "Value": 3}}, 8, [3, 6, 8]),
        ({"Type": "LINEAR", "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 10}}, 1, [1]),
    ],
)
def test_traffic_is_shifted_in_steps(routing: dict[str, object], copies: int, shifted: list[int]) -> None:
    every = tuple(range(copies))
    assert [shift(every) for shift in traffic_shifts(routing, copies)] == shifted  # type: ignore[arg-type] # only counted
