"""How long instances and copies take until they serve, in virtual seconds; the faults say how long.

An instance needs capacity, its start and the pull of the image, which no timeout of SageMaker covers. A copy then needs
the download of its model and the start of its container, each with a timeout of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.runtime.copy_process import CopyFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.clock import WaitingClock
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.faults import ControlSettings

    Meanwhile = Callable[[], object]

LOOK_S: Final = 1.0
"""Virtual seconds between two looks at what may end a wait."""
PENDING_POLL_S: Final = 0.05
"""Real seconds between two looks whether there is capacity, where nothing ends the wait: no time is skipped for it."""


@dataclass(frozen=True, slots=True)
class StartTimes:
    """Waits for instances and copies.

    Attributes:
        clock: What it waits by.
        settings: The faults in force.
    """

    clock: WaitingClock
    settings: Callable[[], ControlSettings]

    def await_instances(self, *, capacity_s: float = 0.0, meanwhile: Meanwhile | None = None) -> None:
        """Return when new instances run and have their image.

        Args:
            capacity_s: VariantInstanceProvisionTimeoutInSeconds; 0 for none.
            meanwhile: Is called once a virtual second; what it raises ends the wait.

        Raises:
            CopyFailed: There was no capacity within that time.
        """
        since_s = self.clock.now_s()
        while self.settings().capacity_pending:
            if capacity_s and self.clock.now_s() - since_s > capacity_s:
                raise lack_of_capacity(
                    self.settings(), f"InsufficientInstanceCapacity: no instance within {capacity_s:g} s."
                )
            self._look(meanwhile)
        self._wait(self.settings().start_s, meanwhile)

    def await_copies(self, spec: ContainerSpec, meanwhile: Meanwhile | None = None) -> None:
        """Return when copies have their model and answer the health check.

        Raises:
            CopyFailed: One of the two timeouts is over.
        """
        settings = self.settings()
        self._within(
            settings.download_s,
            spec.download_limit_s,
            "Model data download timed out: it took more than ModelDataDownloadTimeoutInSeconds ({} s).",
            meanwhile,
        )
        self._within(
            settings.startup_s,
            spec.startup_limit_s,
            "The primary container did not pass the ping health check within {} s.",
            meanwhile,
        )

    def _within(self, seconds: float, limit_s: int | None, said: str, meanwhile: Meanwhile | None) -> None:
        if limit_s is not None and seconds > limit_s:
            self._wait(limit_s, meanwhile)
            raise CopyFailed(said.format(limit_s))
        self._wait(seconds, meanwhile)

    def _look(self, meanwhile: Meanwhile | None) -> None:
        if meanwhile is None:
            time.sleep(PENDING_POLL_S)
            return
        meanwhile()
        self.clock.wait(LOOK_S)

    def _wait(self, seconds: float, meanwhile: Meanwhile | None) -> None:
        if meanwhile is None:
            if seconds:
                self.clock.wait(seconds)
            return
        end_s = self.clock.now_s() + seconds
        while (left_s := end_s - self.clock.now_s()) > 0:
            meanwhile()
            self.clock.wait(min(LOOK_S, left_s))


def lack_of_capacity(settings: ControlSettings, usual: str) -> CopyFailed:
    """Return the failure of a lack of capacity, in the words of `no_capacity_reason` where that is set."""
    return CopyFailed(settings.no_capacity_reason or usual)
