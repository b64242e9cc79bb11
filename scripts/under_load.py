"""Runs a command while every core of the machine has something else to do: `python scripts/under_load.py COMMAND…`.

stress-ng makes the load where it is installed, else processes of this script that compute. They are started here and
ended here; each also ends by itself after LONGEST_S.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_S = 3_600
BURN = f"import time\nend = time.monotonic() + {LONGEST_S}\nwhile time.monotonic() < end: sum(range(100_000))"


def loads() -> list[list[str]]:
    """Return the commands that keep all cores busy."""
    cores = os.cpu_count() or 1
    if found := shutil.which("stress-ng"):
        return [[found, "--cpu", str(cores), "--timeout", f"{LONGEST_S}s", "--quiet"]]
    return [[sys.executable, "-c", BURN]] * cores


def run_under_load(command: Sequence[str]) -> int:
    """Run the command under load and return its exit code."""
    with ExitStack() as stack:
        for load in loads():
            process = stack.enter_context(subprocess.Popen(load))
            stack.callback(process.terminate)
        began_s = time.monotonic()
        exit_code = subprocess.run(command, check=False).returncode
        print(
            f"exit code {exit_code} after {time.monotonic() - began_s:.0f} s, beside a load of {os.cpu_count()} cores"
        )
    return exit_code


if __name__ == "__main__":
    sys.exit(run_under_load(sys.argv[1:]))
