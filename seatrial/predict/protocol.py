"""How load is applied in a prediction: the published articles' way, and the trial's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Protocol:
    """A closed loop: each client sends its next request when the last one is answered.

    Attributes:
        requests_per_concurrency: Measured requests of a level, times its concurrency.
        stagger_s: Time between the first requests of two clients.
        round_trip_s: Time of a request outside the engine: network, the service's front end, tokenising.
        ramp_per_concurrency: First requests of a level, times its concurrency, which fill the batch and aren't
            measured. With them, throughput is that of the steady window; without, that of the whole level.
    """

    requests_per_concurrency: int
    stagger_s: float
    round_trip_s: float
    ramp_per_concurrency: int = 0

    def ramp(self, concurrency: int) -> int:
        """Return the requests of a level that aren't measured."""
        return self.ramp_per_concurrency * concurrency

    def measured(self, concurrency: int) -> int:
        """Return the requests of a level that are measured."""
        return self.requests_per_concurrency * concurrency


# Three requests a client, no warm-up: the articles' public harness. It starts its clients one by one: 30 ms each fits
# the published latencies best; 20 ms a round trip is an assumption, on which the predictions hardly depend.
PUBLISHED = Protocol(requests_per_concurrency=3, stagger_s=0.030, round_trip_s=0.020)

# The trial's client opens every connection beforehand and sends the first requests of a level at once.
TRIAL = Protocol(requests_per_concurrency=3, stagger_s=0.0, round_trip_s=0.020, ramp_per_concurrency=1)
