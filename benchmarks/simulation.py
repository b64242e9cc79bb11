"""Time and memory of a simulation of days.

    python -m benchmarks.simulation [REQUESTS_PER_SECOND:DAYS]

    python -m benchmarks.simulation cheapest:DAYS

By default a day at 20 requests per second. Traffic comes as a stream: 300:7 takes minutes and no more memory.
`cheapest` searches the cheapest schedule of three endpoints' days.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.fleet import simulate_days, start_parts
from seatrial.operations.schedule_search import ScheduleSearch
from seatrial.operations.traffic import read_traffic
from seatrial.specs.load import load_spec

ROOT = Path(__file__).parent.parent
REQUESTS_PER_COPY = 10
DAYS = {
    "chat in office hours": "20, hours: {'08-18': 1, '18-22': 0.3}, other_hours: 0.02, weekend_share: 0.2",
    "agents around the clock": "16, hours: {'09-19': 1}, other_hours: 0.6, weekend_share: 0.8",
    "a batch at night": "30, hours: {'01-05': 1}, ramp_minutes: 10",
}
"""Peak rate in requests per second and the rest of a profile."""


def measure(rate: float, days: int) -> None:
    """Simulate days at a rate, with copies for it; print requests, CPU seconds and peak memory."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "prod", environments=ROOT / "environments")
    plan, most = read_locked_plan(loaded), int(rate / REQUESTS_PER_COPY * 1.5) + 1
    scaling = loaded.endpoint.scaling.model_copy(update={"max_copies": most})
    loaded = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"scaling": scaling}))
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "day.yaml")
        document.write_text(f"profile: {{peak_requests_per_second: {rate}, hours: {{'00-24': 1}}}}", encoding="utf-8")
        traffic = read_traffic(document, float)
    started_s, plan = time.process_time(), plan.model_copy(update={"max_instances": most})
    done = simulate_days(loaded, plan, traffic, days=days, seed=1, starts=start_parts(plan, loaded))
    spent_s, peak_mib = time.process_time() - started_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    copies = max(done.minutes.copies)
    print(f"{rate:g}/s, {days} d: {done.requests:,} requests, {copies} copies, {spent_s:.1f} CPU s, {peak_mib:.0f} MiB")


def search(days: int) -> None:
    """Search the cheapest schedule for each of the days; print cost before and after, seconds and memory."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "prod", environments=ROOT / "environments")
    for name, profile in DAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            document = Path(folder, "day.yaml")
            document.write_text(f"profile: {{peak_requests_per_second: {profile}}}", encoding="utf-8")
            traffic = read_traffic(document, float)
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


if __name__ == "__main__":
    given, _, span = (sys.argv[1] if len(sys.argv) > 1 else "20:1").partition(":")
    if given == "cheapest":
        search(int(span or 1))
    else:
        measure(float(given), int(span))
