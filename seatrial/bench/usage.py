"""What the load costs the thread that makes it: CPU time, and time spent ready to run without a core."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from dataclasses import dataclass, field

SCHEDSTAT = "/proc/thread-self/schedstat"
LEAST_SPAN_S = 0.25
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The thread at one time of the clock.

    Attributes:
        at_s: The time.
        cpu_s: CPU seconds used so far.
        run_delay_s: Seconds spent ready to run without a core so far; None where the kernel doesn't tell.
    """

    at_s: float
    cpu_s: float
    run_delay_s: float | None


@dataclass(slots=True)
class UsageMeter:
    """Samples of the thread, in order of time."""

    samples: list[Sample] = field(default_factory=list)

    @property
    def cpu_s(self) -> float:
        """CPU seconds between the first and the last sample."""
        return self.samples[-1].cpu_s - self.samples[0].cpu_s if self.samples else 0.0

    def sample(self, at_s: float) -> None:
        """Take a sample; costs some 20 µs."""
        self.samples.append(Sample(at_s, time.thread_time(), run_delay_s()))

    def shares(self, since_s: float, until_s: float) -> tuple[float | None, float | None]:
        """Return the shares of CPU and run delay between the samples nearest outside these times.

        None below a quarter of a second: a few time slices of a scheduler say nothing.
        """
        if not self.samples or until_s <= since_s:
            return None, None
        times_s = [sample.at_s for sample in self.samples]
        first = self.samples[max(0, bisect_left(times_s, since_s + 1e-9) - 1)]
        last = self.samples[min(len(times_s) - 1, bisect_left(times_s, until_s))]
        seconds = last.at_s - first.at_s
        if seconds < LEAST_SPAN_S:
            return None, None
        waited_s = None
        if first.run_delay_s is not None and last.run_delay_s is not None:
            waited_s = last.run_delay_s - first.run_delay_s
        return (last.cpu_s - first.cpu_s) / seconds, None if waited_s is None else waited_s / seconds


def run_delay_s(schedstat: str = SCHEDSTAT) -> float | None:
    """Return the run delay of this thread, s; its file holds ns on a core, ns of waiting, number of time slices."""
    try:
        descriptor = os.open(schedstat, os.O_RDONLY)
    except OSError:
        return None
    try:
        _, waited_ns, *_ = os.read(descriptor, 100).split()
        return int(waited_ns) / _NS_PER_S
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
