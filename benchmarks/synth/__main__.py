"""Speed of synthesis: our stacks, the same resources as bare L1 constructs, and a peer's endpoint, in the same run.

    python -m benchmarks.synth [COUNT ...]

Each synthesis is a process of its own, timed from its first import to its assembly; medians, taken in turn. Ours reads
spec and lock, renders the serving configuration, packs it for each endpoint and checks the templates by the rule book.
`bare` writes the same stacks with L1s (`bare_l1.py`). `peer` is the CustomSageMakerEndpoint of
cdklabs.generative-ai-cdk-constructs (model, endpoint configuration, endpoint and role; no scaling, alarms, components
or trial), where PEER_PYTHON names an interpreter that has it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
COUNTS = (1, 10, 100)
RUNS = {1: 5, 10: 5, 100: 3}
BUNDLED_NODE = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
"""The variables of a process that finds the virtual environment's Node before any other, as the CDK CLI does."""
PEER = os.environ.get("PEER_PYTHON")


def main(counts: tuple[int, ...]) -> None:
    """Print a table: seconds of a process that synthesizes."""
    print(f"{'endpoints':>9}  {'resources':>9}  {'ours s':>7}  {'bare s':>7}  {'ratio':>5}  {'peer s':>7}")
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            resources = _run("ours", count, folder)[1]
            same = _run("bare", count, folder)[1]
            if same != resources:
                sys.exit(f"bare has {same} resources, ours {resources}")
            pairs = [
                (_run("ours", count, folder)[0], _run("bare", count, folder)[0]) for _ in range(RUNS.get(count, 1))
            ]
            peer = f"{_run('peer', count, folder)[0]:7.2f}" if PEER else "      –"
        ours_s, bare_s = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{count:9}  {resources:9}  {ours_s:7.2f}  {bare_s:7.2f}  {ours_s / bare_s:5.2f}  {peer}", flush=True)


def _run(kind: str, count: int, folder: str) -> tuple[float, int]:
    python = PEER if kind == "peer" and PEER else sys.executable
    command = [python, "-m", "benchmarks.synth.process", kind, f"{count}", folder]
    done = subprocess.run(
        command, cwd=ROOT, env=BUNDLED_NODE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return float(found["seconds"]), int(found["resources"])


if __name__ == "__main__":
    began_s = time.perf_counter()
    main(tuple(map(int, sys.argv[1:])) or COUNTS)
    print(f"whole run: {time.perf_counter() - began_s:.0f} s")
