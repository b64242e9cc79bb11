"""Runs the real tools as child processes; a failure shows their last useful lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.operations.app import cdk_cli
from seatrial_base.errors import LocalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


LAST_LINES = 25
# So that Ctrl-C ends everything within 3 s.
STOP_S = 1.0


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """How a tool ended."""

    exit_code: int
    output: str

    def last_lines(self) -> str:
        """Return the last lines of the output that are not empty."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return "\n".join(lines[-LAST_LINES:])

    def failure(self) -> str:
        """Say how it failed: its exit code, and its last lines."""
        return f"exit code {self.exit_code}; its last lines:\n{self.last_lines()}"


@dataclass(frozen=True, slots=True)
class CdkCli:
    """The CDK CLI of this installation, in one repository and with one environment of variables.

    Attributes:
        root: The repository, with `cdk.json`.
        log: File that gets all their output.
        verbose: Show their output as it comes.
    """

    root: Path
    env: Mapping[str, str]
    log: Path
    verbose: bool

    def cdk(self, *arguments: str, folder: Path | None = None) -> ToolOutcome:
        """Run the CDK CLI and return how it ended; outside the repository's folder it synthesizes nothing."""
        return self._run([cdk_cli(self.root), *arguments], folder or self.root)

    def cdk_must(self, *arguments: str, folder: Path | None = None) -> ToolOutcome:
        """Run the CDK CLI.

        Raises:
            LocalError: SEA606 with the last lines of its output when it fails.
        """
        return self.must(arguments[0], self.cdk(*arguments, folder=folder))

    def must(self, command: str, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome of a command of the CDK CLI."""
        if outcome.exit_code != 0:
            hint = f"full output: {self.log}; --verbose shows it live"
            raise LocalError.of("SEA606", f"cdk {command} failed: {outcome.failure()}", hint=hint)
        return outcome

    def _run(self, command: Sequence[str | Path], folder: Path) -> ToolOutcome:
        lines: list[str] = []
        with (
            self.log.open("a", encoding="utf-8") as log,
            subprocess.Popen(
                command,
                cwd=folder,
                env=dict(self.env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            ) as process,
        ):
            try:
                for line in process.stdout or ():
                    lines.append(line)
                    log.write(line)
                    if self.verbose:
                        sys.stdout.write(line)
                process.wait()
            except BaseException:
                _stop(process)
                raise
        return ToolOutcome(process.returncode, "".join(lines))


def _stop(process: subprocess.Popen[str]) -> None:
    """End a tool and everything that it started: the wrappers around Node pass no signal on."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(STOP_S)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        # It has ended by itself, or is ended now.
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
