"""Target tracking without a server: alarms, metrics and time are given, calls are noted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
from seatrial_laptop.aws.autoscaling.scaling_actions import ScalingActions
from seatrial_laptop.aws.control_plane.cloud import Cloud, open_cloud
from seatrial_laptop.aws.control_plane.records import Kind, Record, Status
from seatrial_laptop.aws.json_document import child, whole

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_laptop.aws.alarms import StateValue
    from seatrial_laptop.aws.json_document import Document

KEY = ("sagemaker", "inference-component/chat", "sagemaker:inference-component:DesiredCopyCount")
CHAT = frozenset({("InferenceComponentName", "chat")})
PERIODS = {"High": (10, 3, "GreaterThanThreshold", 4.0), "Low": (60, 15, "LessThanThreshold", 3.6)}


def alarm(side: str, metric: str, *, state: str, period_s: int) -> dict[str, object]:
    _, periods, comparison, threshold = PERIODS[side]
    return {
        "AlarmName": f"TargetTracking-Alarm{side}-1",
        "Namespace": "AWS/SageMaker",
        "MetricName": metric,
        "Dimensions": [{"Name": "InferenceComponentName", "Value": "chat"}],
        "Statistic": "Sum" if metric.startswith("Invocations") else "Maximum",
        "Period": period_s,
        "EvaluationPeriods": periods,
        "Threshold": threshold,
        "ComparisonOperator": comparison,
        "StateValue": state,
    }


@dataclass
class Alarms:
    """The two alarms of one policy."""

    metric: str = "ConcurrentRequestsPerCopy"
    high: str = "OK"
    low: str = "OK"
    high_period_s: int = 10

    def alarms(self) -> list[Document]:
        return [
            alarm("High", self.metric, state=self.high, period_s=self.high_period_s),
            alarm("Low", self.metric, state=self.low, period_s=60),
        ]

    def raised(self, action: str) -> list[Document]:
        raise NotImplementedError(action)

    def state(self, name: str) -> StateValue | None:
        raise NotImplementedError(name)

    def set_state(self, name: str, state: StateValue, reason: str) -> None:
        raise NotImplementedError(name, state, reason)


@dataclass
class World:
    """One component with two copies, its target and its policy."""

    cloud: Cloud
    book: Alarms = field(default_factory=Alarms)
    scaling: Scaling = field(init=False)
    actions: ScalingActions = field(init=False)
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        request = {"EndpointName": "host", "RuntimeConfig": {"CopyCount": 2}}
        self.cloud.store.add(Record(Kind.INFERENCE_COMPONENT, "chat", request, status=Status.IN_SERVICE))
        self.scaling = Scaling(self.cloud.store)
        self.scaling.targets[KEY] = {"MinCapacity": 1, "MaxCapacity": 5}
        names = [{"AlarmName": entry["AlarmName"]} for entry in self.book.alarms()]
        self.scaling.policies[KEY, "knee"] = {
            "PolicyName": "knee",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 4.0, "ScaleOutCooldown": 60},
            "Alarms": names,
        }
        self.actions = ScalingActions(self.cloud, self.scaling, self.book, self.scale)

    def scale(self, _cloud: Cloud, request: Document) -> Document:
        record = self.cloud.store.need(Kind.INFERENCE_COMPONENT, "chat")
        if record.status and record.status.in_transit:
            raise ApiError("ValidationException", "in-progress")
        self.asked.append(whole(child(request, "DesiredRuntimeConfig"), "CopyCount"))
        self.settle(Status.UPDATING, copies=self.asked[-1])
        return {}

    def settle(self, status: Status, *, copies: int, reason: str = "") -> None:
        record = self.cloud.store.need(Kind.INFERENCE_COMPONENT, "chat")
        wanted = {**record.request, "RuntimeConfig": {"CopyCount": copies}}
        self.cloud.store.change(record, status=status, request=wanted, failure_reason=reason)

    def sample(self, end_s: float, value: float, *, times: int = 1) -> None:
        self.cloud.history.add(CHAT, end_s, {self.book.metric: [value] * times})

    def told(self) -> list[tuple[str, int]]:
        return [(each.status, each.desired) for each in self.scaling.activities]


def test_it_scales_out_by_the_latest_of_three_periods_and_waits_for_fresh_ones(tmp_path: Path) -> None:
    world = World(open_cloud(tmp_path, {}), Alarms(high="ALARM"))
    for end_s, value in ((10.0, 5.0), (20.0, 9.0), (30.0, 6.0)):
        world.sample(end_s, value)
    world.actions.act(30.0)
    assert (world.asked, world.told()) == ([3], [("InProgress", 3)])
    world.actions.act(40.0)
    assert world.asked == [3]
    world.settle(Status.IN_SERVICE, copies=3)
    for end_s in range(40, 130, 10):
        world.sample(end_s, 8.0)
        world.actions.act(float(end_s))
    assert world.asked == [3, 5]
    assert [each[0] for each in world.told()] == ["Successful", "InProgress"]
    # the first one ended at 40 s; its cooldown of 60 s ended at 100 s
    assert world.scaling.activities[0].cause == "monitor alarm AlarmHigh in state ALARM triggered policy knee"


def test_two_of_three_periods_are_too_few(tmp_path: Path) -> None:
    world = World(open_cloud(tmp_path, {}), Alarms(high="ALARM"))
    world.sample(20.0, 9.0)
    world.sample(30.0, 9.0)
    world.actions.act(30.0)
    assert world.asked == []


def test_it_scales_in_by_the_most_of_fifteen_minutes(tmp_path: Path) -> None:
    world = World(open_cloud(tmp_path, {}), Alarms(low="ALARM"))
    world.settle(Status.IN_SERVICE, copies=5)
    for end_s in range(10, 910, 10):
        world.sample(float(end_s), 2.2 if end_s == 300 else 0.0)
    world.actions.act(900.0)
    assert world.asked == [3]


def test_invocations_count_per_copy_and_minute(tmp_path: Path) -> None:
    book = Alarms(metric="InvocationsPerCopy", high="ALARM", high_period_s=60)
    world = World(open_cloud(tmp_path, {}), book)
    for end_s in range(10, 190, 10):
        world.sample(float(end_s), 0.5, times=2)
    world.actions.act(180.0)
    assert world.asked == [3]


def test_a_component_in_transit_is_left_alone_until_it_settles(tmp_path: Path) -> None:
    world = World(open_cloud(tmp_path, {}), Alarms(high="ALARM"))
    for end_s in (10.0, 20.0, 30.0, 40.0):
        world.sample(end_s, 9.0)
    world.settle(Status.UPDATING, copies=2)
    world.actions.act(30.0)
    assert (world.asked, world.told()) == ([], [])
    world.settle(Status.IN_SERVICE, copies=2)
    world.actions.act(40.0)
    assert world.asked == [5]


def test_what_failed_or_was_deleted_meanwhile_is_told(tmp_path: Path) -> None:
    world = World(open_cloud(tmp_path, {}), Alarms(high="ALARM"))
    for end_s in (10.0, 20.0, 30.0):
        world.sample(end_s, 9.0)
    world.actions.act(30.0)
    world.settle(Status.IN_SERVICE, copies=2, reason="InsufficientInstanceCapacity: no")
    world.actions.act(40.0)
    assert (world.scaling.activities[0].status, world.scaling.activities[0].message) == (
        "Failed",
        "InsufficientInstanceCapacity: no",
    )
    for end_s in range(50, 130, 10):
        world.sample(float(end_s), 9.0)
        world.actions.act(float(end_s))
    assert world.told()[-1] == ("InProgress", 5)
    world.cloud.store.remove(world.cloud.store.need(Kind.INFERENCE_COMPONENT, "chat"))
    world.actions.act(130.0)
    world.actions.act(140.0)
    assert world.scaling.activities[-1].message == "The inference component was deleted."
    assert len(world.asked) == 2
