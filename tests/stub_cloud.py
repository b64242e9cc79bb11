"""The embedded SageMaker without a server or engines: copies are processes that only wait."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from seatrial_laptop.aws.__main__ import Life
from seatrial_laptop.aws.alarms import Evaluation, acts
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling import scaling_policies
from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling, call_autoscaling
from seatrial_laptop.aws.autoscaling.scaling_actions import ScalingActions
from seatrial_laptop.aws.control_plane.cloud import Cloud, open_cloud
from seatrial_laptop.aws.control_plane.records import Kind, Record
from seatrial_laptop.aws.control_plane.sagemaker import call_sagemaker
from seatrial_laptop.aws.runtime.routing import route_request
from seatrial_laptop.aws.runtime.running_copies import CopyFailed, CopyPlace, CopyProcess, RunningCopies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial_laptop.aws.alarms import StateValue
    from seatrial_laptop.aws.clock import VirtualClock
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.json_document import Document

WAIT_S = 20.0
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
COMPONENT = "x-amzn-sagemaker-inference-component"
CHAT: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "inference-component/chat",
    "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
}
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
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"


class StubRunning(RunningCopies):
    """Starts processes that only wait; a model whose environment has FAIL doesn't come into service."""

    def __init__(self, state_dir: Path, died: Callable[[CopyPlace, str], None]) -> None:
        super().__init__(state_dir, {}, died)
        self.folder = state_dir
        self.port = 0
        self.launched: list[tuple[CopyPlace, str, int]] = []
        self._serial = itertools.count()

    def launch(self, place: CopyPlace, spec: ContainerSpec, count: int) -> tuple[CopyProcess, ...]:
        if "FAIL" in spec.environment:
            raise CopyFailed("The container ended.")
        self.launched.append((place, spec.environment.get("NAME", ""), count))
        return tuple(self._copy() for _ in range(count))

    def _copy(self) -> CopyProcess:
        process = subprocess.Popen([shutil.which("cat") or "/bin/cat"], stdin=subprocess.PIPE)
        own = self.folder / f"copy-{next(self._serial)}"
        return CopyProcess(self.port, process, own, own)


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
class StubSageMaker:
    """A cloud and the shortest ways to what a test needs."""

    cloud: Cloud
    running: StubRunning
    alarms: dict[str, StateValue] = field(default_factory=dict)

    def call(self, operation: str, **request: object) -> Document:
        """Do one operation."""
        return call_sagemaker(self.cloud, operation, request)

    def model(self, name: str, **environment: str) -> str:
        """Create a model."""
        self.cloud.store.add(
            Record(
                Kind.MODEL,
                name,
                {"PrimaryContainer": {"Image": IMAGE, "Environment": {"NAME": name, **environment}}},
            )
        )
        return name

    def config(self, name: str, *variants: dict[str, object], **more: object) -> str:
        """Create an endpoint configuration."""
        self.call(
            "CreateEndpointConfig",
            EndpointConfigName=name,
            ExecutionRoleArn=ROLE,
            ProductionVariants=list(variants),
            **more,
        )
        return name

    def endpoint(self, name: str, config: str) -> Record:
        """Create an endpoint and wait."""
        self.call("CreateEndpoint", EndpointName=name, EndpointConfigName=config)
        return self.settled(Kind.ENDPOINT, name)

    def settled(self, kind: Kind, name: str) -> Record:
        """Wait until a resource no longer changes."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            record = self.cloud.store.need(kind, name)
            if not (record.status and record.status.in_transit):
                return record
            time.sleep(0.005)
        raise TimeoutError(name)

    def variants(self, endpoint: str) -> dict[str, Document]:
        """Return what DescribeEndpoint says about every variant, shadows too."""
        told = self.call("DescribeEndpoint", EndpointName=endpoint)
        every = [*_list(told, "ProductionVariants"), *_list(told, "ShadowProductionVariants")]
        return {str(each["VariantName"]): each for each in every}


def variant(name: str, model: str = "", *, count: int = 1, **more: object) -> dict[str, object]:
    """Return a production variant; without a model it hosts inference components."""
    named = {"ModelName": model} if model else {}
    kind = {} if "InstancePools" in more else {"InstanceType": "ml.g5.12xlarge"}
    return {"VariantName": name, "InitialInstanceCount": count, **named, **kind, **more}


def stub_sagemaker(state_dir: Path, *, clock: VirtualClock | None = None) -> StubSageMaker:
    """Return an empty one; close its `running` in the end."""
    alarms: dict[str, StateValue] = {}
    cloud = open_cloud(state_dir, {}, alarm_state=alarms.get, clock=clock)
    running = StubRunning(state_dir, lambda _place, _reason: None)
    return StubSageMaker(replace(cloud, running=running), running, alarms)


def _list(document: Document, key: str) -> list[Document]:
    found = document.get(key, [])
    assert isinstance(found, list)
    return found


@dataclass
class World:
    """What is scaled, its alarms, and what happens by itself."""

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
            self.settle()

    def see(self, *values: float, metric: str = "ConcurrentRequestsPerCopy") -> None:
        """Let the component's alarms see a value every ten seconds."""
        for value in values:
            self.now_s += 10
            whose = frozenset({("InferenceComponentName", "chat")})
            self.stub.cloud.history.add(whose, self.now_s, {metric: [value]})
            self.life.evaluation.evaluate(self.now_s)
            self.life.actions.act(self.now_s)
            self.settle()

    def settle(self) -> None:
        """Wait until nothing changes, unless a fault holds it."""
        for kind in (Kind.ENDPOINT, Kind.INFERENCE_COMPONENT):
            for record in self.stub.cloud.store.all(kind):
                if not self.stub.cloud.faults.is_stuck(record.name):
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


@contextmanager
def scaling_world(folder: Path, clock: VirtualClock) -> Iterator[World]:
    """Yield an empty one."""
    stub, book = stub_sagemaker(folder, clock=clock), Book()
    scaling = Scaling(stub.cloud.store, date_s=clock.date_s)
    life = Life(stub.cloud, Evaluation(book, stub.cloud.history), ScalingActions(stub.cloud, scaling, book))
    with patch.object(scaling_policies, "own_cloudwatch", lambda: book):
        yield World(stub, book, scaling, life)
    stub.running.close()


def component(world: World, *, least: int = 0, most: int = 3, minutes: int = 5, copies: int = 1) -> None:
    """Create a component whose copies each fill an instance, and its scalable target."""
    policy = {"Strategy": "IDLE_RELEASE", "CooldownInMinutes": minutes}
    managed = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": most + 1, "ScaleInPolicy": policy}
    world.stub.model("one")
    world.stub.config("hosting", variant("main", ManagedInstanceScaling=managed))
    world.stub.endpoint("host", "hosting")
    needs = {"NumberOfAcceleratorDevicesRequired": 4, "MinMemoryRequiredInMb": 1024}
    world.stub.call(
        "CreateInferenceComponent",
        InferenceComponentName="chat",
        EndpointName="host",
        Specification={"ModelName": "one", "ComputeResourceRequirements": needs},
        RuntimeConfig={"CopyCount": copies},
    )
    world.stub.settled(Kind.INFERENCE_COMPONENT, "chat")
    world.call("RegisterScalableTarget", **CHAT, MinCapacity=least, MaxCapacity=most)


def step_policy(world: World, place: dict[str, Any], alarm: dict[str, object], *, cooldown: int = 60) -> None:
    """Add a policy that adds one copy or instance while an alarm is raised."""
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
    """Add a policy that tracks a metric."""
    world.call(
        "PutScalingPolicy",
        **place,
        PolicyName="follow",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": target, **metric},
    )
