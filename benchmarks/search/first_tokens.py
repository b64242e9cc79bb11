"""TTFT of a spread and of a common start beside that of random arrivals, on the local engine: real requests.

    python -m benchmarks.search.first_tokens [--slots 32] [--rounds 3]

llama.cpp with a small random model answers through the embedded AWS, 128 + 32 tokens, streamed. Each round measures a
number in flight with both starts, then Poisson arrivals of the throughput that the spread one had; printed are the
medians of the rounds. Engine, embedded AWS and client share the machine's cores.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.search.local import LOAD
from benchmarks.search.local_endpoint import COMPONENT, ENDPOINT, LocalEndpoint, local_endpoint
from seatrial_load.documents.request import Load, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from seatrial_load.documents.result import LevelResult

IN_FLIGHT = (2, 4, 8, 16)
REQUESTS = 240  # of a level
CLOSED = replace(LOAD, ramp_per_concurrency=1, warmup_requests=16, search="every_level")
KINDS = ("spread", "together", "random")


def measured(endpoint: LocalEndpoint, load: Load) -> LevelResult:
    """Run a trial of one level and return it."""
    request = TrialRequest(
        endpoint="search",
        environment="local",
        plan_digest="0" * 16,
        target=TrialTarget(
            endpoint_name=ENDPOINT,
            inference_component=COMPONENT,
            region=endpoint.aws.region,
            endpoint_url=endpoint.aws.endpoint_url,
        ),
        expected=None,
        workload=Workload(input_tokens=128, output_tokens=32, schema="lmi"),
        load=load,
        objectives=(),
        gate_concurrency=load.concurrency_levels[0],
        copy_count=1,
        mode="report",
        usd_per_hour_per_copy=None,
        fallback_target_concurrency=1.0,
        target_utilization=1.0,
    )
    result = run_trial(request, tools=endpoint.tools)
    if not isinstance(result, TrialResult) or len(result.levels) != 1:
        raise TypeError(f"no level was measured: {getattr(result, 'stopped', result)}")
    return result.levels[0]


def one_round(endpoint: LocalEndpoint, in_flight: int) -> tuple[LevelResult, LevelResult, LevelResult]:
    """Return a spread and a common start of a number in flight, and random arrivals of the first one's throughput."""
    closed = replace(CLOSED, concurrency_levels=(in_flight,), requests_per_concurrency=REQUESTS // in_flight)
    spread = measured(endpoint, replace(closed, start="spread"))
    together = measured(endpoint, replace(closed, start="together"))
    per_s = spread.requests_per_s or 0.0
    rate = replace(closed, arrival="poisson", rates_per_s=(per_s,), level_s=REQUESTS / per_s, start="together")
    return spread, together, measured(endpoint, rate)


def main() -> None:
    """Print TTFT, requests in flight, throughput and convoys of each kind, with the load of the machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=32, help="sequences that the engine batches at once")
    parser.add_argument("--rounds", type=int, default=3, help="trials of each kind")
    given = parser.parse_args()
    with local_endpoint(given.slots) as endpoint:
        for in_flight in IN_FLIGHT:
            rounds = [one_round(endpoint, in_flight) for _ in range(given.rounds)]
            for kind, levels in zip(KINDS, zip(*rounds, strict=True), strict=True):
                firsts = [level.ttft_ms for level in levels if level.ttft_ms is not None]
                mean_ms, p95_ms = (median(getattr(each, name) for each in firsts) for name in ("mean", "p95"))
                print(
                    f"{in_flight:3} {kind:8} TTFT mean {mean_ms:6.0f} p95 {p95_ms:6.0f} ms, "
                    f"{median(level.load for level in levels):5.1f} in flight, "
                    f"{median(level.output_tok_s or 0.0 for level in levels):6.0f} tok/s, "
                    f"convoy {median(level.convoy_share or 0.0 for level in levels):4.0%}, "
                    f"{sum(not level.valid for level in levels)} void",
                    flush=True,
                )
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
