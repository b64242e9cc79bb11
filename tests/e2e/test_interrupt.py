"""Ctrl-C at the worst moments: whatever runs is stopped, and nothing but `interrupted` is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.conftest import Processes

pytestmark = pytest.mark.e2e

SEATRIAL = Path(sys.executable).with_name("seatrial")
LONGEST_STEP_S = 120.0
LONGEST_END_S = 20.0


@pytest.fixture
def demo(
    checkout: Path, tmp_path: Path, environment_variables: dict[str, str], processes: Processes
) -> Iterator[subprocess.Popen[str]]:
    """Start the demo as a shell does: in a process group of its own."""
    code = os.pathsep.join(map(str, (checkout, checkout / "constructs")))
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(
            [SEATRIAL, "demo"],
            cwd=checkout,
            env={**environment_variables, "PYTHONPATH": code, "TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
    try:
        yield process
    finally:
        for line in processes(tmp_path):
            os.kill(int(line.split()[0]), signal.SIGKILL)
        process.wait()


def await_process(processes: Processes, folder: Path, word: str) -> None:
    """Wait until a process of the demo has a word in its command line or environment."""
    deadline = time.monotonic() + LONGEST_STEP_S
    while not any(word in line for line in processes(folder)):
        assert time.monotonic() < deadline, f"no {word}: {(folder / 'output').read_text()}"
        time.sleep(0.2)


def await_end(process: subprocess.Popen[str], processes: Processes, folder: Path) -> None:
    deadline = time.monotonic() + LONGEST_END_S
    process.wait(LONGEST_END_S)
    while (left := processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []


@pytest.mark.parametrize(
    ("moment", "interrupt"),
    [
        pytest.param("-m seatrial.local.aws", os.killpg, id="ctrl-c-while-the-embedded-aws-starts"),
        pytest.param("jsii-runtime.js", os.kill, id="termination-while-the-cdk-synthesizes"),
        pytest.param("-m seatrial.local.engine", os.killpg, id="ctrl-c-while-the-first-engine-starts"),
    ],
)
def test_an_interrupted_demo_stops_all_that_it_started(
    demo: subprocess.Popen[str],
    processes: Processes,
    tmp_path: Path,
    moment: str,
    interrupt: Callable[[int, int], None],
) -> None:
    await_process(processes, tmp_path, moment)
    interrupt(demo.pid, signal.SIGINT if interrupt is os.killpg else signal.SIGTERM)
    await_end(demo, processes, tmp_path)
    output = (tmp_path / "output").read_text()
    assert demo.returncode == 130
    assert "Traceback" not in output
    assert output.endswith("interrupted\n")
    assert output.count("interrupted") == 1
