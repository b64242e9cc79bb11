"""The tutorial, run as it stands: its files written, its commands run in one shell, its shown output compared.

Shown output is the whole output, but `…` stands for any text in a line, and a line `…` for any lines.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.operations.app import source_roots
from seatrial_laptop import lifecycle
from tests.checkout import copy_repository
from tests.tools import JSII_CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "start" / "laptop.md"
BIN = Path(sys.executable).parent
DONE_ALREADY = ("make install", ". .venv/bin/activate")
MARK = "@@ command"
LONGEST_S = 900.0


@dataclass(frozen=True, slots=True)
class File:
    """A block with a file, named by its first comment line."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A prompt's command, and the output that is shown below it."""

    line: str
    shown: str


def read_steps(markdown: str) -> Iterator[File | Command]:
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", markdown, re.DOTALL | re.MULTILINE):
        if language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
                yield Command(line, shown)
        else:
            yield File(text.partition("\n")[0].removeprefix("# "), text)


STEPS = tuple(read_steps(TUTORIAL.read_text(encoding="utf-8")))
COMMANDS = tuple(step for step in STEPS if isinstance(step, Command) and step.line not in DONE_ALREADY)


def script_of(steps: tuple[File | Command, ...]) -> str:
    lines = ["set -euo pipefail"]
    for step in steps:
        if isinstance(step, File):
            lines.append(f"cat > '{step.path}' <<'END_OF_FILE'\n{step.text}END_OF_FILE")
        elif step.line not in DONE_ALREADY:
            lines += [f"printf '\\n%s\\n' '{MARK}'", step.line]
    return "\n".join(lines) + "\n"


def environment_of(repository: Path, home: Path) -> dict[str, str]:
    """Return the variables of a new user's shell: no account, the copy's own code, a terminal 100 columns wide."""
    return {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(source_roots(repository)),
        "HOME": str(home),
        **JSII_CACHE,
        "LANG": "C.UTF-8",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "CDK_VALIDATION": "false",  # the CDK's own check takes half of a synthesis; tests/e2e/test_synth.py makes it
    }


@dataclass(frozen=True, slots=True)
class Session:
    """How the shell ended, and the output of each command that it reached."""

    exit_code: int
    outputs: tuple[str, ...]


def run_shell(script: str, repository: Path, home: Path) -> Session:
    output = home / "output.txt"
    bash = shutil.which("bash") or "bash"
    with (
        output.open("wb") as file,
        subprocess.Popen(
            [bash, "-c", script],
            cwd=repository,
            env=environment_of(repository, home),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as shell,
    ):
        try:
            shell.wait(LONGEST_S)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
    outputs = output.read_text(encoding="utf-8").split(f"\n{MARK}\n")[1:]
    return Session(shell.returncode, tuple(outputs))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    repository = copy_repository(tmp_path_factory.mktemp("repository"))
    try:
        yield run_shell(script_of(STEPS), repository, tmp_path_factory.mktemp("home"))
    finally:
        lifecycle.stop_embedded_aws(repository / ".seatrial" / "local")


def pattern_of(shown: str) -> str:
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", ".*") + r"\n"
        for line in shown.splitlines()
    ]
    return "".join(lines)


def plain(output: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in output.strip("\n").splitlines())


def test_the_tutorial_runs_to_its_end(session: Session) -> None:
    last = COMMANDS[len(session.outputs) - 1].line
    assert session.exit_code == 0, f"$ {last}\n{session.outputs[-1]}"
    assert len(session.outputs) == len(COMMANDS)


@pytest.mark.parametrize("index", range(len(COMMANDS)), ids=lambda index: COMMANDS[index].line[:60])
def test_the_shown_output_is_the_real_one(index: int, session: Session) -> None:
    if index >= len(session.outputs):
        pytest.skip("the tutorial ended before this command")
    shown, real = COMMANDS[index].shown, plain(session.outputs[index])
    # A machine that is busy voids a level between; the page shows an idle one.
    real = re.sub(r": void: the client was the limit: .*", ": meets the SLO", real)
    assert re.fullmatch(pattern_of(shown), real), f"the tutorial shows:\n{shown}\nthe command wrote:\n{real}"


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ("valid\n", "valid\n", True),
        ("valid\n", "valid\nand more\n", False),
        ("3 of … MiB\n", "3 of 512 MiB\n", True),
        ("first\n…\nlast\n", "first\nsecond\nthird\nlast\n", True),
        ("first\n…\n", "second\n", False),
        ("", "", True),
        ("", "something\n", False),
    ],
)
def test_an_ellipsis_stands_for_any_text(shown: str, real: str, same: bool) -> None:  # noqa: FBT001 (a table)
    assert bool(re.fullmatch(pattern_of(shown), real)) is same
