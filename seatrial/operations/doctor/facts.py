"""Facts of an endpoint: one class for each kind of part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from seatrial.documents.live import Existence, LiveComponent, LiveEndpoint, LiveModel, RaisedAlarm
    from seatrial.operations.preflight import AccountCheck
    from seatrial_load.documents.container_metrics import ContainerLoad

_NAMED_BY_CLOUDFORMATION: Final = ("AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Model")
"""SEA637 tells of those that the endpoint and its components name."""
CUSTOM_TYPES: Final = ("Custom::", "AWS::CloudFormation::CustomResource")
SERVING: Final = ("InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed")
"""Statuses of an endpoint that serves, or may (SageMaker API reference, DescribeEndpoint)."""
LONGEST_LINE: Final = 400
"""Characters of a log's line that are kept."""
LOGS: Final = "/aws/sagemaker"
"""The beginning of the names of SageMaker's log groups."""
LEFT_OVER_MINUTES: Final = 120
"""No trial is longer: a custom resource ends after an hour, and the sweep deletes its candidate."""
LOST_MINUTES: Final = 16
"""No function of Lambda lives longer than 15 minutes: without a workflow, nothing works on a request by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """A scalable target.

    Attributes:
        resource_id: `inference-component/NAME` or `endpoint/NAME/variant/VARIANT`.
        suspended: What of its scaling is suspended.
        wakes: Whether a step scaling policy adds a copy to none.
        failure: The error of the last activity; empty when it did not fail.
    """

    resource_id: str
    dimension: str
    least: int = 0
    most: int = 0
    suspended: tuple[str, ...] = ()
    wakes: bool = False
    failure: str = ""

    @property
    def component(self) -> str:
        """The component that is scaled; empty for a variant."""
        kind, _, name = self.resource_id.partition("/")
        return name if kind == "inference-component" else ""


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource of a stack as CloudFormation sees it."""

    logical_id: str
    physical_id: str
    resource_type: str
    status: str
    reason: str = ""
    changed: datetime | None = None

    @property
    def name(self) -> str:
        """The name in the physical ID, which for SageMaker is an ARN."""
        of_arn = self.physical_id.startswith("arn:")
        return self.physical_id.rpartition("/")[2] if of_arn else self.physical_id

    @property
    def is_nameless(self) -> bool:
        """Whether nobody can ask for it: the ARN of what CloudFormation names is in small letters, the name is not."""
        return self.resource_type in _NAMED_BY_CLOUDFORMATION and self.physical_id.startswith("arn:")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """The endpoint's stack.

    Attributes:
        outputs: Its outputs by name.
        failures: The failed events of its last operation, the first of them first.
        last_event: The ID of its last event: another one shows that an operation was at work in between.
        is_ours: Whether it is known as this endpoint's: the spec or the user names it, it has the usual name, or a part
            of the endpoint carries the tag of an environment. Another team's stack may hold the endpoint, too.
    """

    name: str
    existence: Existence
    status: str = ""
    reason: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[ResourceState, ...] = ()
    failures: tuple[ResourceState, ...] = ()
    last_event: str = ""
    is_ours: bool = False

    @property
    def is_at_work(self) -> bool:
        """Whether an operation is at work that may yet end by itself."""
        return self.status.endswith("IN_PROGRESS")

    @property
    def left_behind(self) -> tuple[str, ...]:
        """The logical IDs that a failed rollback could not set back: what CloudFormation may skip."""
        return tuple(resource.logical_id for resource in self.resources if resource.status == "UPDATE_FAILED")

    @property
    def is_gone(self) -> bool:
        """Whether nothing manages its resources any more."""
        return self.existence == "absent" or self.status == "DELETE_COMPLETE"


def waiting_for(stack: StackFacts, at: datetime) -> Iterator[tuple[ResourceState, float]]:
    """Yield the custom resources that CloudFormation waits for, and for how many minutes it has."""
    for resource in stack.resources:
        is_custom = resource.resource_type.startswith(CUSTOM_TYPES)
        if is_custom and resource.status.endswith("IN_PROGRESS") and stack.is_at_work and resource.changed is not None:
            yield resource, (at - resource.changed).total_seconds() / 60


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The end of a container's log; `lines` hold no credential."""

    group: str
    existence: Existence
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """The metrics of a part's containers in the last 15 minutes.

    Attributes:
        part: The component or variant, as findings name it.
        simulated_by: What measured in place of an engine and its accelerators; empty on AWS.
    """

    part: str
    load: ContainerLoad
    simulated_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All facts of an endpoint.

    Attributes:
        name: The endpoint's name on SageMaker.
        components: Its inference components, by name.
        targets: The scalable targets that are its own, by resource.
        logs: The ends of its containers' logs, by log group.
        checks: Role, weights, secrets and quotas.
        workflows: When each running workflow of the trial service began; read only while a custom resource has waited
            for long, else `None`.
        containers: The metrics of its containers; none of those without.
        missing: The resources of its stack that do not exist.
        absent: Its configuration and models that do not exist, as findings name them.
        unreadable: What could not be read.
    """

    name: str
    at: datetime
    endpoint: LiveEndpoint
    stack: StackFacts
    components: tuple[LiveComponent, ...] = ()
    models: tuple[LiveModel, ...] = ()
    targets: tuple[TargetFacts, ...] = ()
    alarms: tuple[RaisedAlarm, ...] = ()
    logs: tuple[LogFacts, ...] = ()
    checks: tuple[AccountCheck, ...] = ()
    workflows: tuple[datetime, ...] | None = None
    containers: tuple[ContainerFacts, ...] = ()
    missing: tuple[ResourceState, ...] = ()
    absent: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether it serves requests, or would once a copy is woken: then nothing that serves may be deleted."""
        if self.endpoint.existence != "found" or self.endpoint.status not in SERVING:
            return False
        with_model = any(variant.model and variant.current for variant in self.endpoint.variants)
        return with_model or any(
            (component.copies or component.status == "InService") and not component.is_candidate
            for component in self.components
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the endpoint is left."""
        return self.endpoint.existence == "absent" and self.stack.is_gone and not (self.components or self.targets)

    def minutes_since(self, moment: datetime | None) -> float:
        """Return the minutes since a moment; 0 where it is not known."""
        return 0.0 if moment is None else max(0.0, (self.at - moment).total_seconds() / 60)


def is_left_over(component: LiveComponent, examination: Examination) -> bool:
    """Return whether a candidate belongs to no trial that could still be at work, and can be deleted."""
    is_old = examination.minutes_since(component.created) > LEFT_OVER_MINUTES
    return component.is_candidate and component.status != "Creating" and is_old


def is_orphan(target: TargetFacts, examination: Examination) -> bool:
    """Return whether a target scales a component that is known to be gone."""
    listed = not any(line.startswith("inference component") for line in examination.unreadable)
    names = {component.name for component in examination.components}
    return bool(target.component) and listed and target.component not in names


def is_left_suspended(target: TargetFacts, examination: Examination) -> bool:
    """Return whether scaling is suspended while nothing that would resume it is at work."""
    stack = examination.stack
    settled = stack.existence == "found" and not stack.is_at_work
    return bool(target.suspended) and settled and not is_orphan(target, examination)
