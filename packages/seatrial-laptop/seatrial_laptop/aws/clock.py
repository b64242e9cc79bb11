"""The clocks of the embedded AWS: what it waits for by itself can pass faster than the time of day.

Cooldowns, evaluation periods, wait intervals, execution timeouts, the start of instances and their idle time are
virtual seconds. Requests, downloads and the start of containers are real.

AWS's date is the real one, plus the seconds that were skipped. They are skipped while something waits that would take
long on AWS, and no function runs: to a function it seems as if it had taken as long. Functions (`function_modules`),
AWS Step Functions and the times of SageMaker go by AWS's date.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FASTEST: Final = 600.0
"""The largest speed factor: ten virtual seconds, the shortest period, last longer than 16 ms."""


class WaitingClock(Protocol):
    """What waits in virtual seconds."""

    def now_s(self) -> float:
        """Return the virtual seconds since the start; they never go back."""

    def wait(self, seconds: float) -> None:
        """Return when `seconds` of virtual time have passed."""


class VirtualClock:
    """A monotonic clock whose speed can be changed while others wait for it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, *, epoch_s: float | None = None) -> None:
        self._monotonic = monotonic
        self._epoch_s = time.time() if epoch_s is None else epoch_s
        self._changed = threading.Condition(threading.RLock())
        self._speed = 1.0
        self._wait_speed: float | None = None
        self._waiting = 0
        self._running = 0
        self._virtual_s = 0.0
        self._skipped_s = 0.0
        self._real_s = monotonic()
        self._started_s = self._real_s
        self._tell: Callable[[float], object] = lambda _skipped_s: None

    @property
    def speed(self) -> float:
        """Virtual seconds per real second, while nothing is skipped."""
        with self._changed:
            return self._speed

    def set_speed(self, speed: float) -> None:
        """Let the time pass faster or slower from now on; the time of now stays what it is.

        Raises:
            ValueError: The speed isn't above 0 and at most `FASTEST`.
        """
        if not 0 < speed <= FASTEST:
            raise ValueError(f"speed {speed:g} is not above 0 and at most {FASTEST:g}")
        with self._changing():
            self._speed = speed

    def set_wait_speed(self, speed: float | None) -> None:
        """Set how many virtual seconds pass per real second while something waits and no function runs.

        None skips nothing.
        """
        with self._changing():
            self._wait_speed = speed

    def tell_skipped(self, tell: Callable[[float], object]) -> None:
        """Call `tell` with the seconds that AWS's date is ahead of the real one: now, and before a function goes on."""
        with self._changing():
            self._tell = tell

    def now_s(self) -> float:
        """Return the virtual seconds since the start; they never go back."""
        with self._changed:
            return self._virtual_s + (self._monotonic() - self._real_s) * self._rate

    def date_s(self, at_s: float | None = None) -> float:
        """Return the virtual date and time of a virtual moment (now when it is None), in seconds since the epoch."""
        return self._epoch_s + (self.now_s() if at_s is None else at_s)

    def aws_date_s(self) -> float:
        """Return AWS's date and time: the real ones, plus what was skipped; in seconds since the epoch."""
        with self._changed:
            now_s = self._monotonic()
            return self._epoch_s + now_s - self._started_s + self._skipped_s + (now_s - self._real_s) * self._gain

    def wait(self, seconds: float, *, is_idle: bool = False) -> None:
        """Return when `seconds` of virtual time have passed; a change of the speed counts immediately.

        Args:
            is_idle: Whether nothing waits for it, so that no time is skipped.
        """
        with self._changed:
            end_s = self.now_s() + seconds
            # The loops of the background wait all the time: counted, they would let time be skipped for
            # ever.
            with self._counted(0 if is_idle else 1):
                while (left_s := end_s - self.now_s()) > 0:
                    # Each change of the speed wakes it, and it waits for what is left at the new
                    # one.
                    self._changed.wait(left_s / self._rate)

    def wait_aws(self, seconds: float) -> None:
        """Return when `seconds` have passed by AWS's date."""
        with self._changed:
            end_s = self.aws_date_s() + seconds
            with self._counted(1):
                while (left_s := end_s - self.aws_date_s()) > 0:
                    self._changed.wait(left_s / (1.0 + self._gain))

    @contextmanager
    def function_runs(self) -> Iterator[None]:
        """Skip no time while the block runs: a function does, by the real clock."""
        with self._changing():
            self._running += 1
        try:
            yield
        finally:
            with self._changing():
                self._running -= 1

    @contextmanager
    def function_sleeps(self) -> Iterator[None]:
        """Let time be skipped although a function runs: it sleeps until the block ends."""
        with self._changing():
            self._running -= 1
            self._waiting += 1
        try:
            yield
        finally:
            with self._changing():
                self._running += 1
                self._waiting -= 1

    @property
    def _skips(self) -> bool:
        # A function works in real seconds: none are skipped while one runs.
        return self._wait_speed is not None and self._waiting > 0 and self._running <= 0

    @property
    def _rate(self) -> float:
        return max(self._speed, self._wait_speed or 0.0) if self._skips else self._speed

    @property
    def _gain(self) -> float:
        # The real second passes by itself: AWS's date gains only what is above it.
        return max(0.0, (self._wait_speed or 0.0) - 1.0) if self._skips else 0.0

    @contextmanager
    def _counted(self, waiting: int) -> Iterator[None]:
        if waiting:
            with self._changing():
                self._waiting += waiting
        try:
            yield
        finally:
            if waiting:
                with self._changing():
                    self._waiting -= waiting

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Let the times of now stay what they are while the block changes how they pass."""
        with self._changed:
            now_s = self._monotonic()
            # What has passed until now passed at the old rate: added before the rate changes, no time
            # jumps.
            self._virtual_s += (now_s - self._real_s) * self._rate
            self._skipped_s += (now_s - self._real_s) * self._gain
            self._real_s = now_s
            yield
            # Told while the lock is held: a function that goes on never reads an older date.
            self._tell(self._skipped_s)
            self._changed.notify_all()
