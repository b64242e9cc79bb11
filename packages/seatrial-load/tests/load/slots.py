"""A simulated endpoint of a fixed number of slots, first come, first served. Nothing here is measured."""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.metrics.level import level_of_records
from tests.load.conftest import make_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import Objective
    from seatrial_load.documents.result import LevelResult

TOKENS = 100


@dataclass(frozen=True, slots=True)
class Slots:
    """An endpoint that serves `slots` requests at once.

    Attributes:
        first_ms: From a slot to the first token.
        alone_ms: Each further token of a request that is alone.
        each_ms: More for each request in service.
        noise: Standard deviation of the logarithm of a request's own time.
    """

    slots: int
    first_ms: float = 50.0
    alone_ms: float = 10.0
    each_ms: float = 0.02
    noise: float = 0.05

    def measure(
        self, concurrency: int, objectives: Sequence[Objective], *, seed: object = 0, spread: bool = True
    ) -> LevelResult:
        """Keep `concurrency` requests in flight: one round for the ramp, four that are measured."""
        chance = random.Random(f"{seed} {self} {concurrency}")  # noqa: S311 (noise, no secret)
        service_s = (self.first_ms + TOKENS * (self.alone_ms + self.each_ms * min(concurrency, self.slots))) / 1_000
        waiting = [chance.random() * service_s if spread else index * 1e-6 for index in range(concurrency)]
        heapq.heapify(waiting)
        busy: list[float] = []
        records: list[RequestRecord] = []
        while len(records) < 5 * concurrency:
            sent_s = heapq.heappop(waiting)
            start_s = max(sent_s, busy.pop(0)) if len(busy) >= self.slots else sent_s
            running = 1 + len(busy) - bisect_right(busy, start_s)
            own = chance.lognormvariate(0, self.noise)
            first_s = start_s + self.first_ms / 1_000 * own
            last_s = first_s + (TOKENS - 1) * (self.alone_ms + self.each_ms * running) / 1_000 * own
            insort(busy, last_s)
            heapq.heappush(waiting, last_s)
            times = (first_s, last_s)
            records.append(
                make_record(
                    sent_s=sent_s,
                    first_token_s=first_s,
                    token_times_s=times,
                    last_token_s=last_s,
                    ended_s=last_s,
                    output_tokens=TOKENS,
                    output_tokens_from="reported",
                    index=len(records),
                )
            )
        return level_of_records(concurrency, records, objectives, ramp=concurrency)
