"""Scaling of copies and instances without a server: to zero and back, by steps, by schedules, by the backlog."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_laptop.aws.__main__ import Life
from seatrial_laptop.aws.alarms import Evaluation, acts
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling import scaling_policies
from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling, call_autoscaling
from seatrial_laptop.aws.autoscaling.scaling_actions import ScalingActions
from seatrial_laptop.aws.clock import VirtualClock
from seatrial_laptop.aws.control_plane.records import Kind, Status
from seatrial_laptop.aws.runtime.async_queue import AsyncJob
from seatrial_laptop.aws.runtime.routing import route_request
from tests.stub_cloud import StubSageMaker, stub_sagemaker, variant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial_laptop.aws.alarms import StateValue
    from seatrial_laptop.aws.json_document import Document

MIDNIGHT_S = 1_795_305_600.0
"""2026-11-22T00:00:00Z."""
COMPONENT = "x-amzn-sagemaker-inference-component"
CHAT: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "inference-component/chat",
    "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
}
QUEUE: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/queue/variant/a",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


@dataclass
class Book:
    """A CloudWatch that only keeps alarms."""

    kept: dict[str, dict[str, object]] = field(default_factory=dict)

    def put_metric_alarm(self, **alarm: object) -> None:
        self.kept[str(alarm["AlarmName"])] = {"StateValue": "INSUFFICIENT_DATA", **alarm}

    def delete_alarms(self, **request: Any) -> None:  # noqa: ANN401 (names)
        for name in request["AlarmNames"]:
            self.kept.pop(name, None)

    def alarms(self) -> list[Document]:
        return [dict(alarm) for alarm in self.kept.values()]

    def raised(self, action: str) -> list[Document]:
        return [alarm for alarm in self.alarms() if acts(alarm, action)]

    def state(self, name: str) -> StateValue | None:
        raise NotImplementedError(name)

    def set_state(self, name: str, state: StateValue, reason: str) -> None:
        assert reason
        self.kept[name]["StateValue"] = str(state)


@dataclass
class World:
    stub: StubSageMaker
    book: Book
    scaling: Scaling
    life: Life
    now_s: float = 0.0

    def call(self, operation: str, **request: object) -> Document:
        return call_autoscaling(self.scaling, operation, request)

    def pass_s(self, seconds: float) -> None:
        """Let virtual time pass, step by step; every change settles within its step."""
        for _ in range(round(seconds / 10)):
            self.now_s += 10
            self.life.step(self.now_s, since_s=self.now_s - 10)
            for kind in (Kind.ENDPOINT, Kind.INFERENCE_COMPONENT):
                for record in self.stub.cloud.store.all(kind):
                    self.stub.settled(kind, record.name)

    def copies(self) -> int:
        told = self.stub.call("DescribeInferenceComponent", InferenceComponentName="chat")["RuntimeConfig"]
        assert isinstance(told, dict)
        return int(told["CurrentCopyCount"])

    def ask(self, endpoint: str = "host") -> str:
        try:
            found = route_request(self.stub.cloud, endpoint, {COMPONENT: "chat"})
        except ApiError as error:
            return error.message
        found.copy.outstanding -= 1
        return "answered"

    def told(self) -> list[tuple[str, str]]:
        found: Any = self.call("DescribeScalingActivities", ServiceNamespace="sagemaker")["ScalingActivities"]
        return [(each["Description"], each["StatusCode"]) for each in reversed(found)]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    stub = stub_sagemaker(tmp_path, clock=VirtualClock(lambda: 0.0, epoch_s=MIDNIGHT_S))
    book = Book()
    monkeypatch.setattr(scaling_policies, "own_cloudwatch", lambda: book)
    scaling = Scaling(stub.cloud.store, date_s=stub.cloud.clock.date_s)
    life = Life(stub.cloud, Evaluation(book, stub.cloud.history), ScalingActions(stub.cloud, scaling, book))
    yield World(stub, book, scaling, life)
    stub.running.close()


def component(world: World, *, least: int = 0, minutes: int = 5) -> None:
    policy = {"Strategy": "IDLE_RELEASE", "CooldownInMinutes": minutes}
    managed = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 4, "ScaleInPolicy": policy}
    world.stub.model("one")
    world.stub.config("hosting", variant("main", ManagedInstanceScaling=managed))
    world.stub.endpoint("host", "hosting")
    needs = {"NumberOfAcceleratorDevicesRequired": 4, "MinMemoryRequiredInMb": 1024}
    world.stub.call(
        "CreateInferenceComponent",
        InferenceComponentName="chat",
        EndpointName="host",
        Specification={"ModelName": "one", "ComputeResourceRequirements": needs},
        RuntimeConfig={"CopyCount": 1},
    )
    world.stub.settled(Kind.INFERENCE_COMPONENT, "chat")
    world.call("RegisterScalableTarget", **CHAT, MinCapacity=least, MaxCapacity=3)


def step_policy(world: World, place: dict[str, Any], alarm: dict[str, object], *, cooldown: int = 60) -> None:
    steps = {
        "AdjustmentType": "ChangeInCapacity",
        "MetricAggregationType": "Maximum",
        "Cooldown": cooldown,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
    }
    arn = world.call(
        "PutScalingPolicy", **place, PolicyName="wake", PolicyType="StepScaling", StepScalingPolicyConfiguration=steps
    )["PolicyARN"]
    world.book.put_metric_alarm(
        AlarmName="asked-at-zero",
        Namespace="AWS/SageMaker",
        Threshold=1.0,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        EvaluationPeriods=1,
        Period=60,
        TreatMissingData="notBreaching",
        AlarmActions=[arn],
        **alarm,
    )


def tracking(world: World, place: dict[str, Any], target: float, **metric: object) -> None:
    world.call(
        "PutScalingPolicy",
        **place,
        PolicyName="follow",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": target, **metric},
    )


REFUSED_AT_ZERO: dict[str, object] = {
    "MetricName": "NoCapacityInvocationFailures",
    "Dimensions": [{"Name": "InferenceComponentName", "Value": "chat"}],
    "Statistic": "Sum",
}
CONCURRENCY = {
    "PredefinedMetricSpecification": {
        "PredefinedMetricType": "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
    }
}


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
