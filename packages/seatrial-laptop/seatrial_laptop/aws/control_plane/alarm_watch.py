"""What an update waits for between its steps: some time, in which no alarm may go off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.alarms.alarm_rule import StateValue
from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.json_document import child, children, text_member
from seatrial_laptop.aws.runtime.copy_process import CopyFailed

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.cloud import Cloud
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


def check_alarms_exist(cloud: Cloud, deployment: Document) -> None:
    """Refuse a deployment that names an alarm which isn't there.

    Raises:
        ApiError: ValidationException.
    """
    for name in watched_alarms(deployment):
        if cloud.alarm_state(name) is None:
            raise invalid(f'Could not find alarm "{name}".')
