"""Tools of a user, run to their end: the CDK CLI, `seatrial`, a shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).parents[1]
BIN: Final = Path(sys.executable).parent
LONGEST_TOOL_S: Final = 420.0
JSII_CACHE: Final = {"JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache")}
"""Where jsii keeps the CDK unpacked, also for a test with a home of its own: unpacking takes 4 s of CPU."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a tool ended, and what it wrote."""

    exit_code: int
    output: str

    @property
    def last_lines(self) -> str:
        """Its last 25 lines that are not empty."""
        return "\n".join([line for line in self.output.splitlines() if line.strip()][-25:])


def run_to_end(*command: str | Path, folder: Path, env: Mapping[str, str], longest_s: float = LONGEST_TOOL_S) -> Ended:
    """Run a tool in a session of its own; when it takes too long, or we are interrupted, all of it is killed."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=longest_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Ended(process.returncode, output)
