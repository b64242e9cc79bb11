"""Scaling of copies and instances without a server: to zero and back, by steps, by schedules, by the backlog."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.clock import VirtualClock
from seatrial_laptop.aws.control_plane.records import Kind, Status
from seatrial_laptop.aws.runtime.async_queue import AsyncJob
from seatrial_laptop.aws.runtime.routing import route_request
from tests.stub_cloud import (
    CHAT,
    COMPONENT,
    CONCURRENCY,
    REFUSED_AT_ZERO,
    World,
    component,
    scaling_world,
    step_policy,
    tracking,
    variant,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MIDNIGHT_S = 1_795_305_600.0
"""2026-11-22T00:00:00Z."""
QUEUE: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/queue/variant/a",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with scaling_world(tmp_path, VirtualClock(lambda: 0.0, epoch_s=MIDNIGHT_S)) as made:
        yield made


def test_a_component_goes_to_zero_with_its_instance_and_one_request_wakes_it(world: World) -> None:
    component(world)
    tracking(world, CHAT, 4.0, **CONCURRENCY)
    step_policy(world, CHAT, REFUSED_AT_ZERO)
    assert world.ask() == "answered"
    world.pass_s(960)
    assert world.copies() == 0
    world.pass_s(310)
    assert world.stub.variants("host")["main"]["CurrentInstanceCount"] == 0
    assert world.ask().startswith("Inference Component has no capacity to process this request.")
    world.pass_s(60)
    assert (world.copies(), world.ask()) == (1, "answered")
    assert world.stub.variants("host")["main"]["CurrentInstanceCount"] == 1
    world.pass_s(120)
    assert world.copies() == 1
    assert world.told() == [
        ("Setting desired copy count to 0.", "Successful"),
        ("Setting desired copy count to 1.", "Successful"),
    ]


@pytest.fixture
def tracked(world: World) -> World:
    component(world, least=1, most=5, copies=2)
    tracking(world, CHAT, 4.0, ScaleOutCooldown=60, **CONCURRENCY)
    return world


def hold(world: World, component: str | None) -> None:
    """Let the changes of a component not end; of none, end."""
    world.stub.cloud.faults.change({"stuck": component})
    world.settle()


def test_it_scales_out_by_the_latest_of_three_periods_and_waits_for_fresh_ones(tracked: World) -> None:
    hold(tracked, "chat")
    tracked.see(5.0, 9.0)
    assert tracked.told() == []
    tracked.see(6.0, 8.0)
    assert tracked.told() == [("Setting desired copy count to 3.", "InProgress")]
    hold(tracked, None)
    tracked.see(*repeat(8.0, 6))
    # The first one ended at 50 s; its cooldown of 60 s ends at 110 s.
    assert tracked.copies() == 3
    tracked.see(8.0)
    assert tracked.copies() == 5
    assert tracked.scaling.activities[0].cause.endswith("in state ALARM triggered policy follow")


def test_it_scales_in_by_the_most_of_fifteen_minutes(world: World) -> None:
    component(world, least=1, most=5, copies=5)
    tracking(world, CHAT, 4.0, **CONCURRENCY)
    world.see(*repeat(0.0, 29), 2.2, *repeat(0.0, 59))
    assert world.copies() == 5
    world.see(0.0)
    assert world.copies() == 3
    assert [(each["Period"], each["EvaluationPeriods"]) for each in world.book.alarms()] == [(10, 3), (10, 90)]


def test_invocations_count_per_copy_and_minute(world: World) -> None:
    component(world, least=1, most=5, copies=2)
    metric = {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"}
    tracking(world, CHAT, 4.0, PredefinedMetricSpecification=metric)
    world.see(*repeat(1.0, 18), metric="InvocationsPerCopy")
    assert world.copies() == 3
    assert [(each["Period"], each["EvaluationPeriods"]) for each in world.book.alarms()] == [(60, 3), (60, 15)]


def test_a_component_in_transit_is_left_alone_until_it_settles(tracked: World) -> None:
    hold(tracked, "chat")
    again = {"InferenceComponentName": "chat", "DesiredRuntimeConfig": {"CopyCount": 2}}
    tracked.stub.call("UpdateInferenceComponentRuntimeConfig", **again)
    tracked.see(9.0, 9.0, 9.0)
    assert tracked.told() == []
    hold(tracked, None)
    tracked.see(9.0)
    assert tracked.copies() == 5


def test_what_failed_or_was_deleted_meanwhile_is_told(tracked: World) -> None:
    tracked.stub.cloud.faults.change({"no_capacity": ["ml.g5.12xlarge"]})
    tracked.see(*repeat(9.0, 4))
    (failed,) = tracked.scaling.activities
    assert (failed.status, failed.message.partition(":")[0]) == ("Failed", "InsufficientInstanceCapacity")
    hold(tracked, "chat")
    tracked.see(*repeat(9.0, 8))
    assert tracked.told()[-1] == ("Setting desired copy count to 5.", "InProgress")
    tracked.stub.cloud.store.remove(tracked.stub.cloud.store.need(Kind.INFERENCE_COMPONENT, "chat"))
    tracked.see(9.0, 9.0)
    assert tracked.scaling.activities[-1].message == "The inference component was deleted."
    assert len(tracked.scaling.activities) == 2
    hold(tracked, None)


def test_concurrent_requests_are_normalized_by_copies(world: World) -> None:
    component(world)
    world.call("RegisterScalableTarget", **CHAT, MinCapacity=2)
    tracking(world, CHAT, 4.0, **CONCURRENCY)
    world.pass_s(20)
    taken = [route_request(world.stub.cloud, "host", {COMPONENT: "chat"}).copy for _ in range(5)]
    taken[0].outstanding -= 2
    world.pass_s(10)
    whose = frozenset({("InferenceComponentName", "chat")})
    # The most was five in flight on two copies; then three go on.
    world.pass_s(10)
    samples = world.stub.cloud.history.samples(whose, after_s=10.0, until_s=40.0)
    assert [each.values["ConcurrentRequestsPerCopy"] for each in samples] == [[0.0], [2.5], [1.5]]


def test_scale_in_protection_keeps_the_copies(world: World) -> None:
    component(world)
    tracking(world, CHAT, 4.0, DisableScaleIn=True, **CONCURRENCY)
    world.pass_s(1_200)
    assert (world.copies(), world.told()) == (1, [])


def test_capacities_follow_the_schedule_in_virtual_time(world: World) -> None:
    component(world, least=1)
    for name, hour, least in (("evening", 1, 0), ("morning", 2, 2)):
        world.call(
            "PutScheduledAction",
            **CHAT,
            ScheduledActionName=name,
            Schedule=f"cron(0 {hour} * * ? *)",
            ScalableTargetAction={"MinCapacity": least, "MaxCapacity": least},
        )
    world.pass_s(3_590)
    assert world.copies() == 1
    world.pass_s(20)
    assert world.copies() == 0
    world.pass_s(3_600)
    assert world.copies() == 2
    assert world.told() == [
        ("Setting min capacity to 0 and max capacity to 0", "Successful"),
        ("Setting desired copy count to 0.", "Successful"),
        ("Setting min capacity to 2 and max capacity to 2", "Successful"),
        ("Setting desired copy count to 2.", "Successful"),
    ]


def test_a_suspended_target_has_no_schedule_and_a_single_action_ends(world: World) -> None:
    component(world, least=1)
    world.call("RegisterScalableTarget", **CHAT, SuspendedState={"ScheduledScalingSuspended": True})
    once = {"ScheduledActionName": "once", "Schedule": "at(2026-11-22T00:01:00)"}
    world.call("PutScheduledAction", **CHAT, **once, ScalableTargetAction={"MinCapacity": 2})
    found = world.call("DescribeScheduledActions", ServiceNamespace="sagemaker")["ScheduledActions"]
    assert isinstance(found, list)
    assert [each["ScheduledActionName"] for each in found] == ["once"]
    world.pass_s(120)
    assert (world.copies(), world.told()) == (1, [])
    assert world.call("DescribeScheduledActions", ServiceNamespace="sagemaker")["ScheduledActions"] == []


def queue(world: World) -> None:
    config = {"OutputConfig": {"S3OutputPath": "s3://bucket/out"}}
    world.stub.model("one")
    world.stub.config("queued", variant("a", "one"), AsyncInferenceConfig=config)
    world.stub.endpoint("queue", "queued")
    world.call("RegisterScalableTarget", **QUEUE, MinCapacity=0, MaxCapacity=4)


def job(number: int) -> AsyncJob:
    return AsyncJob(
        endpoint="queue",
        inference_id=str(number),
        input_location="",
        body=b"",
        headers={},
        output_location="s3://bucket/out/x",
        failure_location="",
        received_s=0.0,
        queued_s=0.0,
        ttl_s=1e9,
        timeout_s=1.0,
    )


def test_instances_follow_the_backlog_to_zero_and_back(world: World) -> None:
    queue(world)
    backlog = {
        "CustomizedMetricSpecification": {
            "MetricName": "ApproximateBacklogSizePerInstance",
            "Namespace": "AWS/SageMaker",
            "Dimensions": [{"Name": "EndpointName", "Value": "queue"}],
            "Statistic": "Average",
        },
        "ScaleInCooldown": 60,
        "ScaleOutCooldown": 60,
    }
    tracking(world, QUEUE, 2.0, **backlog)
    waits: dict[str, object] = {
        "MetricName": "HasBacklogWithoutCapacity",
        "Dimensions": [{"Name": "EndpointName", "Value": "queue"}],
        "Statistic": "Maximum",
    }
    step_policy(world, QUEUE, waits)
    world.pass_s(960)
    assert world.stub.variants("queue")["a"]["CurrentInstanceCount"] == 0
    world.stub.cloud.queues.add(job(0))
    world.pass_s(70)
    assert world.stub.variants("queue")["a"]["CurrentInstanceCount"] == 1
    for number in range(1, 6):
        world.stub.cloud.queues.add(job(number))
    world.pass_s(320)
    assert world.stub.variants("queue")["a"]["CurrentInstanceCount"] == 3
    assert ("Setting desired instance count to 3.", "Successful") in world.told()


@pytest.mark.parametrize(
    ("place", "request_", "said"),
    [
        ({**QUEUE, "ResourceId": "endpoint/queue/variant/z"}, {}, "Could not find variant"),
        ({**QUEUE, "ResourceId": "endpoint/queue"}, {}, "Unsupported resource ID"),
        ({**QUEUE, "ResourceId": "endpoint/plain/variant/a"}, {"MinCapacity": 0}, "must be at least 1"),
        ({**QUEUE, "ResourceId": "endpoint/host/variant/main"}, {}, "hosts inference components"),
        (
            {**QUEUE, "ScalableDimension": "sagemaker:variant:DesiredProvisionedConcurrency"},
            {},
            "a variant on instances takes no ScalableDimension",
        ),
        ({**QUEUE, "ResourceId": "endpoint/small/variant/a"}, {}, "a variant on burstable instances takes no Scalable"),
    ],
)
def test_targets_that_can_not_be_scaled_are_refused(
    world: World, place: dict[str, Any], request_: dict[str, Any], said: str
) -> None:
    queue(world)
    world.stub.config("plain", variant("a", "one"))
    world.stub.config("hosting", variant("main"))
    world.stub.config("burstable", {**variant("a", "one"), "InstanceType": "ml.t2.medium"})
    for name, config in (("plain", "plain"), ("host", "hosting"), ("small", "burstable")):
        assert world.stub.endpoint(name, config).status is Status.IN_SERVICE
    with pytest.raises(ApiError, match=said):
        world.call("RegisterScalableTarget", **place, **{"MinCapacity": 1, "MaxCapacity": 2, **request_})
