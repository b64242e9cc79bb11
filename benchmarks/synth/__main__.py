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
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
COUNTS = (1, 10, 100)
RUNS = {1: 5, 10: 5, 100: 3}
BUNDLED_NODE = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
"""The variables of a process that finds the virtual environment's Node before any other, as the CDK CLI does."""
PEER = os.environ.get("PEER_PYTHON")


def main(counts: tuple[int, ...]) -> None:
    """Print a table: seconds of a process that synthesizes, and its crossings into Node for each endpoint."""
    print(
        f"{'endpoints':>9}  {'resources':>9}  {'ours s':>7}  {'bare s':>7}  {'ratio':>5}"
        f"  {'ours crossings':>14}  {'bare crossings':>14}  {'peer s':>7}"
    )
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            ours, bare = _run("ours", count, folder), _run("bare", count, folder)
            if bare.resources != ours.resources:
                sys.exit(f"bare has {bare.resources} resources, ours {ours.resources}")
            pairs = [
                (_run("ours", count, folder).seconds, _run("bare", count, folder).seconds)
                for _ in range(RUNS.get(count, 1))
            ]
            peer = f"{_run('peer', count, folder).seconds:7.2f}" if PEER else "      –"
        ours_s, bare_s = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(
            f"{count:9}  {ours.resources:9}  {ours_s:7.2f}  {bare_s:7.2f}  {ours_s / bare_s:5.2f}"
            f"  {ours.crossings / count:14.0f}  {bare.crossings / count:14.0f}  {peer}",
            flush=True,
        )


class _Synthesis(NamedTuple):
    seconds: float
    crossings: int
    resources: int


def _run(kind: str, count: int, folder: str) -> _Synthesis:
    python = PEER if kind == "peer" and PEER else sys.executable
    command = [python, "-m", "benchmarks.synth.process", kind, f"{count}", folder]
    done = subprocess.run(
        command, cwd=ROOT, env=BUNDLED_NODE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    return _Synthesis(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    began_s = time.perf_counter()
    main(tuple(map(int, sys.argv[1:])) or COUNTS)
    print(f"whole run: {time.perf_counter() - began_s:.0f} s")
