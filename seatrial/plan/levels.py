"""The simulated levels of one copy: each concurrency is simulated once, under the trial's protocol."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.predict.simulation import TRIAL, Protocol, SimulatedLevel, outcome

if TYPE_CHECKING:
    from seatrial.predict.copy_model import Copy
    from seatrial.spec.endpoint import TrialSpec

MOST_IN_FLIGHT = 512  # per copy: two of the largest batches; past them only the queue grows
_MOST_REQUESTS_PER_CONCURRENCY = 10  # more of them change a percentile less than the prediction is worth


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of one copy.

    Attributes:
        copy: The copy.
        protocol: How the trial sends.
        timeout_s: Time after which a request ends.
        seen: What was simulated so far, by concurrency.
    """

    copy: Copy
    protocol: Protocol
    timeout_s: float
    seen: dict[int, SimulatedLevel] = field(default_factory=dict, compare=False, repr=False)

    def at(self, concurrency: int) -> SimulatedLevel:
        """Return what the copy is simulated to do with this many requests in flight."""
        if concurrency not in self.seen:
            self.seen[concurrency] = outcome(self.copy, concurrency, self.protocol, self.timeout_s)
        return self.seen[concurrency]


def trial_protocol(trial: TrialSpec) -> Protocol:
    """Return how the endpoint's trial sends; the simulation stops at ten requests for each in flight."""
    requests = min(trial.requests_per_concurrency, _MOST_REQUESTS_PER_CONCURRENCY)
    return replace(TRIAL, requests_per_concurrency=requests, ramp_per_concurrency=trial.ramp_per_concurrency)
