"""A signal ends the demo as shells expect it, and a tool that runs is stopped with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

WAIT = """
import signal, time
from seatrial_laptop.demo.runner import end_on_signals, ignore_signals
end_on_signals()
try:
    print("ready", flush=True)
    time.sleep(60)
finally:
    ignore_signals()
    signal.raise_signal(signal.SIGINT)
    print("stopped", flush=True)
"""
RUN = """
import os, sys
from pathlib import Path
from seatrial_laptop.demo.runner import end_on_signals
from seatrial_laptop.demo.cdk_cli import CdkCli
end_on_signals()
folder = Path(sys.argv[1])
code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
script = f"trap '' TERM; {sys.executable} -c '{code}' > {folder}/child; sleep 60"
CdkCli(folder, os.environ, folder / "log", verbose=True)._run(["/bin/sh", "-c", script], folder)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_end_is_reached_whatever_comes_meanwhile(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stdout.readline() == "ready\n"
        demo.send_signal(number)
        assert demo.stdout.read() == "stopped\n"
    assert demo.returncode == 128 + number


def test_a_closed_terminal_does_not_end_a_demo_under_nohup() -> None:
    code = (
        "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from seatrial_laptop.demo.runner import end_on_signals\nend_on_signals()\n"
        "signal.raise_signal(signal.SIGHUP)\nprint('goes on')"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "goes on\n"
    )


def test_a_tool_that_ignores_a_termination_is_killed_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with subprocess.Popen([sys.executable, "-c", RUN, tmp_path]) as demo:
        pid = awaited_number(child)
        demo.send_signal(signal.SIGHUP)
        demo.wait()
    assert demo.returncode == 128 + signal.SIGHUP
    with pytest.raises(ProcessLookupError):
        await_end(pid)


def awaited_number(file: Path) -> int:
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(file.read_text())


def await_end(pid: int) -> None:
    """Wait until a process is gone.

    Raises:
        ProcessLookupError: It is.
    """
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        os.kill(pid, 0)
        time.sleep(0.02)
