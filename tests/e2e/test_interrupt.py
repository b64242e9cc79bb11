"""Ctrl-C and a termination at bad moments: whatever runs is stopped, and nothing but `interrupted` is said.

A terminal sends Ctrl-C to the whole process group in the foreground; `kill` reaches one process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Processes

pytestmark = pytest.mark.e2e

SEATRIAL = Path(sys.executable).with_name("seatrial")
LONGEST_WAY_S = 150.0
LONGEST_END_S = 20.0


@dataclass(frozen=True, slots=True)
class Moment:
    """When the demo is interrupted, and how.

    Attributes:
        process: A word of the command line of a process that is there from this moment on.
        send: Sends the signal: to the group, or to the demo's own process only.
        signal_number: The signal.
    """

    process: str
    send: Callable[[int, int], None]
    signal_number: int


MOMENTS = {
    "ctrl-c-while-the-embedded-aws-starts": Moment("-m seatrial.local.aws", os.killpg, signal.SIGINT),
    "termination-while-the-cdk-synthesizes": Moment("jsii-runtime.js", os.kill, signal.SIGTERM),
    "ctrl-c-while-the-first-engine-starts": Moment("-m seatrial.local.engine", os.killpg, signal.SIGINT),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How an interrupted demo ended: its exit code, its terminal's text, and the processes that it left."""

    exit_code: int
    output: str
    left: list[str]


@pytest.fixture(scope="module")
def endings(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str], processes: Processes
) -> dict[str, Ending]:
    """Interrupt one demo at each moment; they run side by side, each with a checkout and an embedded AWS of its own."""

    def interrupted(name: str) -> Ending:
        folder = tmp_path_factory.mktemp(name)
        copy = shutil.copytree(checkout, folder / "checkout")
        return interrupt(copy, folder, variables, processes, MOMENTS[name])

    with ThreadPoolExecutor() as side_by_side:
        return dict(zip(MOMENTS, side_by_side.map(interrupted, MOMENTS), strict=True))


def interrupt(checkout: Path, folder: Path, variables: dict[str, str], processes: Processes, moment: Moment) -> Ending:
    """Start the demo as a shell does, in a process group of its own, and interrupt it at a moment."""
    code = os.pathsep.join(map(str, (checkout, checkout / "constructs")))
    with (folder / "output").open("w") as output:
        demo = subprocess.Popen(
            [SEATRIAL, "demo"],
            cwd=checkout,
            env={**variables, "PYTHONPATH": code, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    try:
        await_moment(processes, folder, moment.process)
        moment.send(demo.pid, moment.signal_number)
        exit_code = demo.wait(LONGEST_END_S)
        return Ending(exit_code, (folder / "output").read_text(), what_is_left(processes, folder))
    finally:
        for line in processes(folder):
            os.kill(int(line.split()[0]), signal.SIGKILL)
        demo.wait()


def await_moment(processes: Processes, folder: Path, word: str) -> None:
    deadline = time.monotonic() + LONGEST_WAY_S
    while not any(word in line for line in processes(folder)):
        assert time.monotonic() < deadline, f"no {word}:\n{(folder / 'output').read_text()}"
        time.sleep(0.2)


def what_is_left(processes: Processes, folder: Path) -> list[str]:
    """Return the processes that are still there when all should have ended."""
    deadline = time.monotonic() + LONGEST_END_S
    while (left := processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


@pytest.mark.parametrize("moment", MOMENTS)
class TestAnInterruptedDemo:
    def test_ends_as_shells_expect_it(self, endings: dict[str, Ending], moment: str) -> None:
        assert endings[moment].exit_code == 128 + signal.SIGINT

    def test_says_so_in_one_word(self, endings: dict[str, Ending], moment: str) -> None:
        output = endings[moment].output
        assert "Traceback" not in output
        assert output.endswith("\ninterrupted\n")
        assert output.count("interrupted") == 1

    def test_leaves_no_process(self, endings: dict[str, Ending], moment: str) -> None:
        assert endings[moment].left == []
