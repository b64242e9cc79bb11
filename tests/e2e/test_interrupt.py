"""Ctrl-C, a termination and a closed terminal at bad moments: whatever runs is stopped, and one line says why.

A terminal sends Ctrl-C to the whole process group in the foreground, a closed one its SIGHUP likewise; `kill` reaches
one process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pytest

from seatrial.operations.app import source_roots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.conftest import Processes

pytestmark = pytest.mark.e2e

SEATRIAL = Path(sys.executable).with_name("seatrial")
STARTED = "✓ start the embedded AWS"
LONGEST_WAY_S = 900.0
LONGEST_END_S = 120.0  # it takes 3 s on a quiet machine; other tests may run beside


@dataclass(frozen=True, slots=True)
class Moment:
    """When the demo is interrupted, and how.

    Attributes:
        process: A word of the command line of a process that is there from this moment on.
        said: What the demo says last.
        send: Sends the signal: to the group, or to the demo's own process only.
        signal_number: The signal.
    """

    process: str
    send: Callable[[int, int], None]
    signal_number: int
    said: str = "interrupted"


RARE_MOMENTS = {
    "termination-while-the-embedded-aws-starts": Moment(
        "-m seatrial_laptop.aws", os.kill, signal.SIGTERM, "ended by SIGTERM"
    ),
    "closed-terminal-while-the-cdk-synthesizes": Moment("jsii-runtime.js", os.killpg, signal.SIGHUP, "ended by SIGHUP"),
}
MOMENTS = {
    "ctrl-c-in-the-trial": Moment("ministack-lambda-seatrial-local-trials", os.killpg, signal.SIGINT),
    **(RARE_MOMENTS if "SEATRIAL_ALL_FAILURES" in os.environ else {}),
}
"""`make test-failures` has the rare ones, too."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an interrupted demo ended: its exit code, its terminal's text, and the processes and files that it left."""

    exit_code: int
    output: str
    left: list[str]
    scratch: list[str]


@pytest.fixture(scope="module")
def endings(
    checkout: Path,
    tmp_path_factory: pytest.TempPathFactory,
    variables: dict[str, str],
    processes: Processes,
    left: Processes,
) -> dict[str, Ending]:
    """Interrupt one demo at each moment, the later ones side by side; each has its own checkout and embedded AWS."""
    starting = Lock()

    def interrupted(name: str) -> Ending:
        folder = tmp_path_factory.mktemp(name)
        shutil.copytree(checkout, folder / "checkout")
        with ExitStack() as stack:
            with starting:  # one after another: a port that two find free is taken by the faster one
                demo = stack.enter_context(running_demo(folder, variables, processes))
                await_any(demo, folder, processes, MOMENTS[name].process, STARTED)
            await_any(demo, folder, processes, MOMENTS[name].process)
            MOMENTS[name].send(demo.pid, MOMENTS[name].signal_number)
            exit_code = demo.wait(LONGEST_END_S)
            return Ending(exit_code, (folder / "output").read_text(), left(folder), scratch_of(folder))

    early, *later = MOMENTS
    endings = {early: interrupted(early)}
    with ThreadPoolExecutor() as side_by_side:
        return endings | dict(zip(later, side_by_side.map(interrupted, later), strict=True))


def scratch_of(folder: Path) -> list[str]:
    """Return the temporary files that are left: the demo's own, and those in the folder that the user has for them."""
    demo = folder / "checkout" / ".seatrial" / "demo"
    others = [path for path in folder.iterdir() if path.name not in {"checkout", "output"}]
    return [str(path) for path in (*others, demo / "tmp", demo / "local" / "tmp") if path.exists()]


@contextmanager
def running_demo(folder: Path, variables: dict[str, str], processes: Processes) -> Iterator[subprocess.Popen[bytes]]:
    """Start the demo as a shell does, in a process group of its own; whatever is left in the end is killed."""
    code = os.pathsep.join(source_roots(folder / "checkout"))
    with (folder / "output").open("w") as output:
        demo = subprocess.Popen(
            [SEATRIAL, "demo"],
            cwd=folder / "checkout",
            env={**variables, "PYTHONPATH": code, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    try:
        yield demo
    finally:
        for line in processes(folder):
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        demo.wait()


def await_any(demo: subprocess.Popen[bytes], folder: Path, processes: Processes, *words: str) -> None:
    """Wait until a word is in the demo's output, or in the command line of a process of it."""
    deadline = time.monotonic() + LONGEST_WAY_S
    while not any(word in seen(folder, processes) for word in words):
        assert demo.poll() is None, (folder / "output").read_text()
        assert time.monotonic() < deadline, (folder / "output").read_text()
        time.sleep(0.2)


def seen(folder: Path, processes: Processes) -> str:
    return "\n".join([(folder / "output").read_text(), *processes(folder)])


@pytest.mark.parametrize("moment", MOMENTS)
class TestAnInterruptedDemo:
    def test_ends_as_shells_expect_it(self, endings: dict[str, Ending], moment: str) -> None:
        assert endings[moment].exit_code == 128 + MOMENTS[moment].signal_number

    def test_says_so_in_one_line(self, endings: dict[str, Ending], moment: str) -> None:
        output = endings[moment].output
        assert "Traceback" not in output
        assert output.endswith(f"\n{MOMENTS[moment].said}\n")
        assert output.count(MOMENTS[moment].said) == 1

    def test_leaves_no_process(self, endings: dict[str, Ending], moment: str) -> None:
        assert endings[moment].left == []

    def test_leaves_no_temporary_file(self, endings: dict[str, Ending], moment: str) -> None:
        assert endings[moment].scratch == []
