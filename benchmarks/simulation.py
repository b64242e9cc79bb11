"""Time and memory of a simulation of days.

    python -m benchmarks.simulation [REQUESTS_PER_SECOND:DAYS]

By default a day at 20 requests per second. Traffic comes as a stream: 300:7 takes minutes and no more memory.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from seatrial.deployment.starts import start_parts
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.fleet import simulate_days
from seatrial.operations.traffic import read_traffic
from seatrial.specs.load import load_spec

ROOT = Path(__file__).parent.parent
REQUESTS_PER_COPY = 10


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


if __name__ == "__main__":
    given, _, span = (sys.argv[1] if len(sys.argv) > 1 else "20:1").partition(":")
    measure(float(given), int(span))
