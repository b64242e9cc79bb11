"""The embedded SageMaker without a server or engines: copies are processes that only wait."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial_laptop.aws.control_plane.cloud import Cloud, open_cloud
from seatrial_laptop.aws.control_plane.records import Kind, Record
from seatrial_laptop.aws.control_plane.sagemaker import call_sagemaker
from seatrial_laptop.aws.runtime.running_copies import CopyFailed, CopyPlace, CopyProcess, RunningCopies

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial_laptop.aws.alarms import StateValue
    from seatrial_laptop.aws.clock import VirtualClock
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.json_document import Document

WAIT_S = 20.0
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
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
