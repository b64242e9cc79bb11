"""TTFT of a spread and of a common start beside that of random arrivals, on the local engine: real requests.

    python -m benchmarks.search.first_tokens

llama.cpp with a small random model and 32 slots answers through the embedded AWS, 128 + 32 tokens, streamed. Each round
measures a number in flight n with both starts, then Poisson arrivals at n / (n + 1) of the spread one's throughput: two
cores are full with two requests, and as many are in flight on a full machine at that rate. Printed are the medians of
the rounds. Engine, embedded AWS and client share the machine's cores.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.search.local import LOAD, Bench
from benchmarks.search.local_endpoint import local_endpoint
from seatrial_load.documents.request import Workload

if TYPE_CHECKING:
    from seatrial_load.documents.result import LevelResult

IN_FLIGHT = (2, 4, 8, 16)
REQUESTS, ROUNDS, BUDGET_S = 240, 3, 1_800.0
CLOSED = replace(LOAD, ramp_per_concurrency=1, warmup_requests=16, search="every_level")
STREAMED = Workload(input_tokens=128, output_tokens=32, schema="lmi")


def main() -> None:
    """Print TTFT, requests in flight and convoys of each kind, with the load of the machine."""
    with local_endpoint(32) as endpoint:
        bench = Bench(endpoint, time.monotonic() + BUDGET_S)
        for in_flight in IN_FLIGHT:
            measured: dict[str, list[LevelResult]] = {"spread": [], "together": [], "random": []}
            closed = replace(CLOSED, concurrency_levels=(in_flight,), requests_per_concurrency=REQUESTS // in_flight)
            for _ in range(ROUNDS):
                load = replace(closed, start="spread")
                for kind, levels in measured.items():
                    result = bench.trial(load, gate=in_flight, workload=STREAMED)
                    levels.append(result.levels[0])
                    load = replace(closed, start="together")
                    if kind == "together":
                        per_s = (measured["spread"][-1].requests_per_s or 1.0) * in_flight / (in_flight + 1)
                        load = replace(load, arrival="poisson", rates_per_s=(per_s,), level_s=REQUESTS / per_s)
            for kind, levels in measured.items():
                firsts = [level.ttft_ms for level in levels if level.ttft_ms is not None]
                mean_ms, p95_ms = (median(getattr(each, name) for each in firsts) for name in ("mean", "p95"))
                held, convoy = (median(level.load for level in levels), levels[-1].convoy_share or 0.0)
                void = sum(not level.valid for level in levels)
                numbers = f"TTFT mean {mean_ms:4.0f} p95 {p95_ms:4.0f} ms, {held:4.1f} in flight, convoy {convoy:.0%}"
                print(f"{in_flight:3} {kind:8} {numbers}, {void} void", flush=True)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
