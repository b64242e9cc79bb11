"""Speed and memory of what a user waits for, each as a whole process: medians.

    make bench

The numbers depend on the machine; compare them with those of the same machine only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SPEC = "endpoints/llama-2-7b-chat.yaml"
RUNS = 5
MIB_PER_KIB = 1 / 1024

COMMANDS = {
    "seatrial --help": ["-m", "seatrial.cli", "--help"],
    "seatrial validate (three specs, three environments)": [
        *("-m", "seatrial.cli", "validate"),
        *(f"endpoints/{name}.yaml" for name in ("falcon-40b", "llama-2-7b-chat", "mixtral-8x7b")),
    ],
    "seatrial plan": ["-m", "seatrial.cli", "plan", SPEC, "-e", "dev"],
    "seatrial render (locked)": ["-m", "seatrial.cli", "render", SPEC, "-e", "dev"],
    "import seatrial_load.trial.run (the Lambda function's start)": ["-c", "import seatrial_load.trial.run"],
}


def main() -> None:
    """Print a table: wall and CPU seconds, and peak memory of the largest process."""
    print(f"{'command':60}  wall s   CPU s  peak MiB")
    for name, arguments in COMMANDS.items():
        _row(name, [sys.executable, *arguments], RUNS)
    with tempfile.TemporaryDirectory() as folder:
        synth = [sys.executable, "app.py"]
        context = '{"environment": "dev", "endpoint": "llama-2-7b-chat"}'
        _row("synth of one endpoint (python app.py)", synth, 3, CDK_OUTDIR=folder, CDK_CONTEXT_JSON=context)


def _row(name: str, command: list[str], runs: int, **variables: str) -> None:
    figures = [_measure(command, variables) for _ in range(runs)]
    wall_s, cpu_s, peak_mib = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"{name:60}  {wall_s:6.2f}  {cpu_s:6.2f}  {peak_mib:8.0f}")


def _measure(command: list[str], variables: dict[str, str]) -> tuple[float, float, float]:
    """Run a command to its end and return wall seconds, CPU seconds and peak memory in MiB, children included."""
    began_s = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - began_s
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * MIB_PER_KIB


if __name__ == "__main__":
    main()
