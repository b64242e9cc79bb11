"""What an update waits for between its steps: some time, in which no alarm may go off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.alarms.alarm_rule import StateValue
from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.json_document import child, children, text_member
from seatrial_laptop.aws.runtime.copy_process import CopyFailed

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.json_document import Document


WATCH_S: Final = 1.0
"""Virtual seconds between two looks at the alarms."""


class AlarmWatch:
    """The alarms and the execution timeout of one update, which begins now.

    Args:
        cloud: Whose clock and alarms.
        deployment: The DeploymentConfig; empty for none.
        limit_s: MaximumExecutionTimeoutInSeconds; 0 for none.
    """

    def __init__(self, cloud: Cloud, deployment: Document, limit_s: int) -> None:
        self._cloud = cloud
        self._alarms = watched_alarms(deployment)
        self._limit_s = limit_s
        self._deadline_s = cloud.clock.now_s() + limit_s if limit_s else None

    def wait(self, seconds: float) -> None:
        """Return after so many virtual seconds.

        Raises:
            CopyFailed: An alarm went off, or the update takes too long.
        """
        clock = self._cloud.clock
        end_s = clock.now_s() + seconds
        while True:
            self.check()
            if clock.now_s() >= end_s:
                return
            clock.wait(min(WATCH_S, end_s - clock.now_s()))

    def check(self) -> None:
        """Look once.

        Raises:
            CopyFailed: An alarm went off, or the update takes too long.
        """
        if self._deadline_s is not None and self._cloud.clock.now_s() > self._deadline_s:
            raise CopyFailed(f"It took more than MaximumExecutionTimeoutInSeconds ({self._limit_s} s).")
        raised = [name for name in self._alarms if self._cloud.alarm_state(name) is StateValue.ALARM]
        if raised:
            raise CopyFailed(f"Alarms in state ALARM: {', '.join(raised)}.")


def watched_alarms(deployment: Document) -> list[str]:
    """Return the names of the alarms that roll an update back."""
    return [
        text_member(alarm, "AlarmName") for alarm in children(child(deployment, "AutoRollbackConfiguration"), "Alarms")
    ]


def check_alarms(cloud: Cloud, deployment: Document, config: Record) -> None:
    """Refuse a deployment that names an alarm which isn't there, or which an execution role may not describe.

    The roles are that of the endpoint configuration, else those of its models: which one SageMaker takes, when it asks
    and how it words a refusal is assumed (developer guide, "Auto-Rollback Configuration and Monitoring", names "your
    IAM execution role").

    Args:
        cloud: Where the alarms are.
        deployment: The DeploymentConfig; empty for none.
        config: The endpoint configuration that the endpoint has afterwards.

    Raises:
        ApiError: ValidationException.
    """
    alarms = watched_alarms(deployment)
    for name in alarms:
        if cloud.alarm_state(name) is None:
            raise invalid(f'Could not find alarm "{name}".')
    for role in _roles(cloud, config) if alarms else ():
        if denied := [name for name in alarms if not cloud.reads_alarm(role, name)]:
            raise invalid(f"Role {role} is not authorized to perform cloudwatch:DescribeAlarms on {', '.join(denied)}.")


def _roles(cloud: Cloud, config: Record) -> set[str]:
    """Return the execution roles of an endpoint's configuration, or of its models."""
    if role := text_member(config.request, "ExecutionRoleArn"):
        return {role}
    names = [text_member(each, "ModelName") for each in children(config.request, "ProductionVariants")]
    models = [cloud.store.find(Kind.MODEL, name) for name in names if name]
    return {text_member(model.request, "ExecutionRoleArn") for model in models if model}
