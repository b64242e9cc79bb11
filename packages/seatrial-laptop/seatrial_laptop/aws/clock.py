"""The virtual clock: what the embedded AWS waits for by itself can pass faster than the time of day.

Cooldowns, evaluation periods, wait intervals, execution timeouts, the start of instances and their idle time are
virtual seconds. Requests, downloads and the start of containers are real. Times that the API tells are real too.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

FASTEST: Final = 600.0
"""The largest speed factor: ten virtual seconds, the shortest period, last longer than 16 ms."""


class WaitingClock(Protocol):
    """What waits in virtual seconds."""

    def now_s(self) -> float:
        """Return the virtual seconds since the start; they never go back."""

    def wait(self, seconds: float) -> None:
        """Return when so many virtual seconds have passed."""


class VirtualClock:
    """A monotonic clock whose speed can be changed while others wait for it.

    Args:
        monotonic: The real clock below, in seconds.
        epoch_s: The date and time at its start, in seconds since the epoch; the real ones when it is None.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, *, epoch_s: float | None = None) -> None:
        self._monotonic = monotonic
        self._epoch_s = time.time() if epoch_s is None else epoch_s
        self._changed = threading.Condition(threading.RLock())
        self._speed = 1.0
        self._virtual_s = 0.0
        self._real_s = monotonic()

    @property
    def speed(self) -> float:
        """Virtual seconds per real second."""
        with self._changed:
            return self._speed

    def set_speed(self, speed: float) -> None:
        """Let the time pass faster or slower from now on; the time of now stays what it is.

        Raises:
            ValueError: The speed isn't above 0 and at most `FASTEST`.
        """
        if not 0 < speed <= FASTEST:
            raise ValueError(f"speed {speed:g} is not above 0 and at most {FASTEST:g}")
        with self._changed:
            self._virtual_s, self._real_s = self.now_s(), self._monotonic()
            self._speed = speed
            self._changed.notify_all()

    def now_s(self) -> float:
        """Return the virtual seconds since the start; they never go back."""
        with self._changed:
            return self._virtual_s + (self._monotonic() - self._real_s) * self._speed

    def date_s(self, at_s: float | None = None) -> float:
        """Return the virtual date and time of a virtual moment (now when it is None), in seconds since the epoch."""
        return self._epoch_s + (self.now_s() if at_s is None else at_s)

    def wait(self, seconds: float) -> None:
        """Return when so many virtual seconds have passed; a change of the speed counts at once."""
        with self._changed:
            end_s = self.now_s() + seconds
            while (left_s := end_s - self.now_s()) > 0:
                self._changed.wait(left_s / self._speed)
