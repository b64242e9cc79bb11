"""The command line as a process of its own, without the second of CPU that its imports take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from seatrial.operations.app import source_roots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[1]
SERVER = Path(__file__).with_name("cli_server.py")
LONGEST_S = 300
"""A command that synthesizes takes 9 s of CPU, which took more than a minute beside eight other processes."""
READ_BY_PYTHON = ("PYTHON", "LC_", "LANG")
"""Variables that Python itself reads when it starts; a process that was forked would not heed them."""


class CommandLine:
    """Runs `seatrial` with arguments, in a fork of the server where that makes no difference."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Self]:
        """Start the server; it ends with the block."""
        path = os.pathsep.join([*source_roots(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        with subprocess.Popen(
            [sys.executable, SERVER],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            yield cls(server)

    def run(
        self, *arguments: str, folder: Path, variables: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder to its end, with these variables beside ours and a text as its standard input."""
        variables = variables or {}
        if any(name.startswith(READ_BY_PYTHON) for name in variables):
            return run_afresh(*arguments, folder=folder, variables=variables, stdin=stdin)
        with (
            tempfile.NamedTemporaryFile("r+") as given,
            tempfile.NamedTemporaryFile("r+") as stdout,
            tempfile.NamedTemporaryFile("r+") as stderr,
        ):
            given.write(stdin)
            given.flush()
            order = {
                "arguments": arguments,
                "folder": str(folder),
                "environment": {**os.environ, **variables},
                "stdin": given.name,
                "stdout": stdout.name,
                "stderr": stderr.name,
                "timeout_s": LONGEST_S,
            }
            exit_code = self._obey(json.dumps(order))
            return subprocess.CompletedProcess(arguments, exit_code, stdout.read(), stderr.read())

    def _obey(self, order: str) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{order}\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


def run_afresh(
    *arguments: str, folder: Path, variables: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does, in a Python that starts for it."""
    return subprocess.run(
        [sys.executable, "-m", "seatrial.cli", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
        env={**os.environ, **variables},
    )
