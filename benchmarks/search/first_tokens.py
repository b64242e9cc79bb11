"""TTFT of a spread and of a common start beside that of random arrivals, on the local engine: real requests.

    python -m benchmarks.search.first_tokens

llama.cpp with a small random model and 32 slots answers through the embedded AWS, 128 + 32 tokens, streamed. Each round
measures closed loops with both starts, then Poisson arrivals at shares of their highest throughput; each of these is
held against the closed loops at as many in flight, between the nearest ones on logarithms. Engine, embedded AWS and
client share the machine's cores.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from benchmarks.search.local import LOAD, Bench
from benchmarks.search.local_endpoint import local_endpoint
from seatrial_load.documents.request import Workload
from seatrial_load.knee import interpolated
from seatrial_load.slo.evaluate import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.result import LevelResult

IN_FLIGHT, SHARES, ROUNDS, LEVEL_S, BUDGET_S = (1, 2, 3, 4, 6, 8), (0.4, 0.55, 0.7), 3, 12.0, 1_800.0
CLOSED = replace(LOAD, concurrency_levels=IN_FLIGHT, requests_per_concurrency=30, search="every_level")
STREAMED = Workload(input_tokens=128, output_tokens=32, schema="lmi")


def main() -> None:
    """Print TTFT of each rate and, at as many in flight, of both starts, with the load of the machine."""
    with local_endpoint(32) as endpoint:
        bench = Bench(endpoint, time.monotonic() + BUDGET_S)
        for _ in range(ROUNDS):
            spread = bench.trial(replace(CLOSED, start="spread"), gate=1, workload=STREAMED).levels
            together = bench.trial(replace(CLOSED, start="together"), gate=1, workload=STREAMED).levels
            most_per_s = max(level.requests_per_s or 0.0 for level in spread)
            rates = tuple(share * most_per_s for share in SHARES)
            load = replace(CLOSED, arrival="poisson", rates_per_s=rates, level_s=LEVEL_S)
            for level in bench.trial(load, gate=1, workload=STREAMED).levels:
                numbers = ", ".join(
                    f"{name} {_at([level], level, name):.0f} random {_at(spread, level, name):.0f} spread "
                    f"{_at(together, level, name):.0f} together"
                    for name in ("mean", "p95")
                )
                print(f"{level.load:4.1f} in flight, {level.offered_load:5.1f}/s: TTFT {numbers} ms", flush=True)
    print(f"load average {os.getloadavg()[0]:.1f}")


def _at(levels: Sequence[LevelResult], at: LevelResult, name: Literal["mean", "p95"]) -> float:
    known = [one for level in levels if level.valid and (one := reading(level, "ttft_ms", name)) is not None]
    found = interpolated(known, at.load) if at.load <= IN_FLIGHT[-1] else None
    return float("nan") if found is None else found.value


if __name__ == "__main__":
    main()
