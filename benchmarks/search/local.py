"""The adaptive search beside the full doubling sweep on the local engine: real requests, on this machine.

    python -m benchmarks.search.local [--slots 16] [--seconds 480]

llama.cpp with a small random model answers through the embedded AWS, 16 + 16 tokens, not streamed. The sweep 1, 2, …,
512 comes first; the SLO's bound is put where it is crossed halfway between two of its levels. Then the search for the
highest concurrency within the SLO runs from three gates, and the one for the bend of throughput without an SLO; none
has a plan to begin from. The knee that they are held against comes from ten levels of their own, 16 % apart, around the
bound, measured before and after them: where the straight line through their latencies (least squares, logarithms)
crosses the bound. What lies between the two is what the machine itself changed meanwhile.
Engine, embedded AWS and client share the machine's cores: this proves the search, and nothing about a GPU.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.search.local_endpoint import COMPONENT, ENDPOINT, LocalEndpoint, local_endpoint
from seatrial_load.documents.request import Load, Objective, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.knee import saturation_knee, slo_knee
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.result import Knee, LevelResult

DOUBLING = tuple(2**power for power in range(10))
CROSSED_BETWEEN = (16, 32)
REFERENCE = tuple(round(11 * 1.16**step) for step in range(10))
GATES = (4, 16, 64)
SWEEP_GATE = 1
FEWEST = 3  # valid levels that a line is drawn through
LOAD = Load(
    concurrency_levels=DOUBLING,
    requests_per_concurrency=6,
    ramp_per_concurrency=2,
    warmup_requests=32,
    budget_s=480.0,
    request_timeout_s=60.0,
    workers=1,
)
SHORT = Workload(input_tokens=16, output_tokens=16, schema="lmi", stream=False)


@dataclass(slots=True)
class Bench:
    """Trials of one endpoint, within one budget of time."""

    endpoint: LocalEndpoint
    until_s: float

    def trial(
        self, load: Load, *, gate: int, objectives: tuple[Objective, ...] = (), workload: Workload = SHORT
    ) -> TrialResult:
        """Run one trial in the time that is left."""
        request = TrialRequest(
            endpoint="search",
            environment="local",
            plan_digest="0" * 16,
            target=TrialTarget(
                endpoint_name=ENDPOINT,
                inference_component=COMPONENT,
                region=self.endpoint.aws.region,
                endpoint_url=self.endpoint.aws.endpoint_url,
            ),
            expected=None,
            workload=workload,
            load=replace(load, budget_s=max(1.0, self.until_s - time.monotonic())),
            objectives=objectives,
            gate_concurrency=gate,
            copy_count=1,
            mode="report",
            usd_per_hour_per_copy=None,
            fallback_target_concurrency=1.0,
            target_utilization=1.0,
        )
        result = run_trial(request, tools=self.endpoint.tools)
        if not isinstance(result, TrialResult):
            raise TypeError("a trial that never pauses has paused")
        return result


def main() -> None:
    """Run the sweep, the searches and the reference; print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=16, help="sequences that the engine batches")
    parser.add_argument("--seconds", type=float, default=480.0, help="bound of the whole run")
    given = parser.parse_args()
    with local_endpoint(given.slots) as endpoint:
        _compare(Bench(endpoint, time.monotonic() + given.seconds))


def _compare(bench: Bench) -> None:
    sweep = bench.trial(LOAD, gate=SWEEP_GATE)
    _print("full doubling sweep", sweep)
    bound_ms = math.sqrt(math.prod(_e2e_ms(level) for level in sweep.levels if level.concurrency in CROSSED_BETWEEN))
    objective = Objective(metric="e2e_latency_ms", statistic="p95", bound=bound_ms, sense="at_most")
    adaptive = replace(LOAD, concurrency_levels=(1, DOUBLING[-1]), search="adaptive")
    before = _reference(bench, bound_ms)
    found = []
    for gate in GATES:
        result = bench.trial(replace(adaptive, goal="max_concurrency"), gate=gate, objectives=(objective,))
        _print(f"adaptive, end-to-end p95 at most {bound_ms:.0f} ms, gate {gate}", result)
        found.append(result)
    after = _reference(bench, bound_ms)
    unbound = bench.trial(adaptive, gate=GATES[1])
    _print(f"adaptive, no SLO, gate {GATES[1]}", unbound)
    _summary(sweep, found, unbound, bound_ms=bound_ms, true=math.sqrt(before * after))
    print(f"reference: the bound is crossed at {before:.1f} per copy before the searches, at {after:.1f} after them")
    _last_line(found, math.sqrt(before * after), _seconds(sweep))


def _reference(bench: Bench, bound_ms: float) -> float:
    reference = bench.trial(replace(LOAD, concurrency_levels=REFERENCE), gate=SWEEP_GATE)
    _print("reference around the bound", reference)
    return _crossing(reference.levels, bound_ms)


def _summary(
    sweep: TrialResult, found: Sequence[TrialResult], unbound: TrialResult, *, bound_ms: float, true: float
) -> None:
    held = max((level.concurrency for level in sweep.levels if level.valid and _e2e_ms(level) <= bound_ms), default=0)
    print(f"\nsweep: the SLO holds at {held} per copy, in {_seconds(sweep):.1f} s")
    for result in found:
        knee, share = slo_knee(result.levels, result.request.objectives), _seconds(result) / _seconds(sweep)
        _against(f"adaptive, gate {result.request.gate_concurrency}", knee, true, share)
    bend = saturation_knee(sweep.levels)
    print(f"sweep, no SLO: saturation knee {bend.concurrency}")
    share = _seconds(unbound) / _seconds(sweep)
    _against("adaptive, no SLO", saturation_knee(unbound.levels), bend.concurrency, share)


def _last_line(found: Sequence[TrialResult], true: float, whole_s: float) -> None:
    knees = [slo_knee(result.levels, result.request.objectives).concurrency for result in found]
    errors = [1.0 if knee is None else abs(knee / true - 1) for knee in knees]
    shares = [_seconds(result) / whole_s for result in found]
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(
        f"local engine, not a GPU: slo knee off by {max(errors):.0%} at worst, time {max(shares):.0%} of the sweep's "
        f"{whole_s:.0f} s at worst, {len(found)} searches; {os.cpu_count()} cores, load average {load}"
    )


def _against(name: str, knee: Knee, true: float | None, share: float) -> None:
    off = "" if knee.concurrency is None or true is None else f", off by {knee.concurrency / true - 1:+.0%}"
    print(f"{name}: {knee.detector} knee {knee.concurrency}{off}, {share:.0%} of the sweep's time")


def _crossing(levels: Sequence[LevelResult], bound_ms: float) -> float:
    """Return the load at which the line through the levels, logarithm over logarithm, crosses a latency.

    Not a number where the client, short of a core of its own, was the limit almost everywhere.
    """
    points = [(math.log(level.concurrency), math.log(_e2e_ms(level))) for level in levels if level.valid]
    if len(points) < FEWEST:
        return math.nan
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return math.exp(mean_x + (math.log(bound_ms) - mean_y) / slope)


def _e2e_ms(level: LevelResult) -> float:
    return math.inf if level.e2e_latency_ms is None else level.e2e_latency_ms.p95


def _seconds(result: TrialResult) -> float:
    """Return the time of a trial's levels, their ramps included: what a search saves."""
    return sum(level.duration_s or 0.0 for level in result.levels)


def _print(name: str, result: TrialResult) -> None:
    print(f"\n{name}: {len(result.levels)} levels in {_seconds(result):.1f} s; {result.stopped.because}")
    for level in result.levels:
        print(
            f"  {level.concurrency:4}  {level.output_tok_s or 0:7.0f} tok/s  end-to-end p95 {_e2e_ms(level):7.0f} ms  "
            f"{level.succeeded}/{level.requests} answered in {level.duration_s or 0:5.1f} s  {level.invalid_because}"
        )
    if result.request.load.search == "adaptive":
        print("  " + "\n  ".join(f"{step.concurrency}: {step.because}" for step in result.search))


if __name__ == "__main__":
    main()
