"""Time and memory of a simulation of days; its copies beside the embedded AWS's; its starts beside published ones.

    python -m benchmarks.simulation [REQUESTS_PER_SECOND:DAYS | cheapest:DAYS | embedded | published]

By default a day at 20 requests per second. Traffic comes as a stream: 300:7 takes minutes and no more memory.
`cheapest` searches the cheapest schedule of three endpoints' days. The days of `embedded` and the starts of
`published`, with their sources, are in `simulation.json`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import replace
from operator import eq
from pathlib import Path
from statistics import fmean

from seatrial.deployment.starts import start_parts
from seatrial.documents.simulation import Traffic
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.fleet import simulate_days
from seatrial.operations.schedule_search import ScheduleSearch
from seatrial.operations.traffic import traffic_source
from seatrial.specs.load import load_spec

ROOT = Path(__file__).parent.parent
REQUESTS_PER_COPY = 10
PROFILES: dict[str, dict[str, object]] = {
    "chat in office hours": {
        "peak_requests_per_second": 20,
        "hours": {"08-18": 1, "18-22": 0.3},
        "other_hours": 0.02,
        "weekend_share": 0.2,
    },
    "agents around the clock": {
        "peak_requests_per_second": 16,
        "hours": {"09-19": 1},
        "other_hours": 0.6,
        "weekend_share": 0.8,
    },
    "a batch at night": {"peak_requests_per_second": 30, "hours": {"01-05": 1}, "ramp_minutes": 10},
}


def measure(rate: float, days: int) -> None:
    """Simulate days at a rate, with copies for it; print requests, CPU seconds and peak memory."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "prod", environments=ROOT / "environments")
    plan, most = read_locked_plan(loaded), int(rate / REQUESTS_PER_COPY * 1.5) + 1
    scaling = loaded.endpoint.scaling.model_copy(update={"max_copies": most})
    loaded = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"scaling": scaling}))
    profile = {"peak_requests_per_second": rate, "hours": {"00-24": 1}}
    traffic = traffic_source("day", Traffic.model_validate({"profile": profile}))
    started_s, plan = time.process_time(), plan.model_copy(update={"max_instances": most})
    done = simulate_days(loaded, plan, traffic, days=days, seed=1, starts=start_parts(plan, loaded))
    spent_s, peak_mib = time.process_time() - started_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    copies = max(done.minutes.copies)
    print(f"{rate:g}/s, {days} d: {done.requests:,} requests, {copies} copies, {spent_s:.1f} CPU s, {peak_mib:.0f} MiB")


def search(days: int) -> None:
    """Search the cheapest schedule for each of the days; print cost before and after, seconds and memory."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "prod", environments=ROOT / "environments")
    for name, profile in PROFILES.items():
        traffic = traffic_source("day", Traffic.model_validate({"profile": profile}))
        started_s, before = time.perf_counter(), _cpu_s()
        found = ScheduleSearch(loaded, read_locked_plan(loaded), traffic, days, 1, start_parts).run()
        spent_s, passed_s = _cpu_s() - before, time.perf_counter() - started_s
        for what, each in (("before", found.current), ("after", found.cheapest)):
            print(f"{name}, {days} d, {what}: ${each.usd_per_month:,.0f} a month, {each.within_slo:.2%} within the SLO")
        for change in found.changes:
            print(f"    {change.field} {change.after}: {change.because}")
        peak_mib = max(resource.getrusage(who).ru_maxrss for who in _PROCESSES) / 1024
        counts = f"{found.screened} schedules, {found.simulated} simulated in full"
        print(f"    {counts}: {spent_s:.1f} CPU s, {passed_s:.1f} s, {peak_mib:.0f} MiB a process")


_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _cpu_s() -> float:
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime for who in _PROCESSES)


def compare_embedded() -> None:
    """Print the share of minutes of each day with equal copies in the embedded AWS."""
    from benchmarks.embedded_days import DAYS, both  # noqa: PLC0415 (its memory is not the simulation's)

    for name, day in DAYS.items():
        done, embedded = both(day)
        equal = fmean(map(eq, zip(done.minutes.copies, done.minutes.instances, strict=True), embedded))
        print(f"{name}: {equal:.1%} of the minutes have equal copies and instances")


def compare_published() -> None:
    """Print how long starts took that others measured, and how long the assumptions make them."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "prod", environments=ROOT / "environments")
    plan = read_locked_plan(loaded)
    for each in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["published"]:
        model = {"hub_id": "org/model" if each["weights_from"] == "the hub" else None}
        endpoint = loaded.endpoint.model_copy(update={"model": loaded.endpoint.model.model_copy(update=model)})
        size = {"weights_bytes": each["weights_gb"] * 1e9 / plan.tensor_parallel_degree.value}
        of_size = plan.model_copy(update={"memory": plan.memory.model_copy(update=size)})
        parts = start_parts(of_size, replace(loaded, endpoint=endpoint))
        ours_s, theirs_s = sum(part.seconds for part in parts if part.part not in each["without"]), each["measured_s"]
        where = f"{each['name']}, {each['instance_type']}, {each['published']}"
        print(f"{where}: measured {theirs_s:,.0f} s, assumed {ours_s:,.0f} s, ratio {ours_s / theirs_s:.1f}")


if __name__ == "__main__":
    given, _, span = (sys.argv[1] if len(sys.argv) > 1 else "20:1").partition(":")
    if given == "cheapest":
        search(int(span or 1))
    elif span:
        measure(float(given), int(span))
    else:
        {"embedded": compare_embedded, "published": compare_published}[given]()
