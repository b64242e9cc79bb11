"""What the machine or the user does to a command in mid-run: a message of a line or two, an exit code, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from seatrial_base import terminal
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.command_line import CommandLine

SEATRIAL = [sys.executable, "-m", "seatrial.cli"]
FULL = Path("/dev/full")


def shell(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `$SEATRIAL` is the command."""
    env = os.environ | {"SEATRIAL": " ".join(SEATRIAL)} | variables
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_reader_that_goes_ends_the_command_without_a_word(tmp_path: Path) -> None:
    done = shell("{ $SEATRIAL rules; echo $? >&2; } | true", tmp_path)
    assert done.stderr in {"141\n", "0\n"}, "all of it may have been written before the reader went"


@pytest.mark.skipif(not FULL.exists(), reason="/dev/full is Linux's")
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path) -> None:
    done = shell("$SEATRIAL rules > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, "SEA101: the output can't be written: No space left on device\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "2> /dev/full"])
def test_a_closed_output_changes_no_exit_code(tmp_path: Path, closed: str) -> None:
    assert shell(f"$SEATRIAL predict none.csv {closed}", tmp_path).returncode == 2


def test_a_folder_that_was_deleted_is_named(tmp_path: Path) -> None:
    done = shell("mkdir gone && cd gone && rmdir ../gone && $SEATRIAL validate chat.yaml", tmp_path, PYTHONSAFEPATH="1")
    assert done.returncode in {1, 2}
    assert "Traceback" not in done.stderr
    assert "SEA101" in done.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"TERM": "dumb"},
        {"COLUMNS": "0"},
        {"COLUMNS": "1"},
    ],
    ids=str,
)
def test_odd_terminals_are_written_to(tmp_path: Path, variables: dict[str, str], command_line: CommandLine) -> None:
    (tmp_path / "rows.csv").write_text("± ×\n1\n", encoding="utf-8")
    refused = command_line.run("predict", "rows.csv", folder=tmp_path, variables=variables)
    told = command_line.run("--help", folder=tmp_path, variables=variables)
    assert "Traceback" not in refused.stderr + told.stderr
    assert "SEA221" in refused.stderr
    assert told.stdout.strip()


def test_an_argument_that_is_no_utf_8_is_told(tmp_path: Path) -> None:
    done = subprocess.run([*SEATRIAL, "predict", b"caf\xe9.csv"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (
        2,
        "caf�.csv: SEA220: the table can't be read: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("error", "told", "code"),
    [
        (PermissionError(13, "Permission denied", "a.yaml"), "a.yaml: SEA101: Permission denied\n", 1),
        (OSError(24, "Too many open files"), "SEA101: Too many open files\n", 1),
        (OSError(36, "File name too long", "a" * 300), f"{'a' * 300}: SEA101: File name too long\n", 1),
        (MemoryError(), "SEA101: out of memory\n", 1),
        (
            UnicodeEncodeError("utf-8", "a\udce9", 1, 2, "surrogates not allowed"),
            "SEA101: a text holds U+DCE9, which can't be written as utf-8\n",
            1,
        ),
        (
            ModuleNotFoundError("", name="aws_cdk"),
            "SEA603: the package aws_cdk is not installed\n  hint: install it: ",
            1,
        ),
        (ModuleNotFoundError("", name="anyio"), "SEA603: the package anyio is not installed\n  hint: install it: ", 1),
        (ModuleNotFoundError("", name="rich"), "SEA603: the package rich is not installed\n  hint: install Sea", 1),
        (ModuleNotFoundError("No module named 'seatrial.x'", name="seatrial.x"), "SEA517: an internal error: Mod", 70),
        (RecursionError("too deep"), "SEA517: an internal error: RecursionError: too deep\n", 70),
        (KeyError("field"), "SEA517: an internal error: KeyError: 'field'\n", 70),
        (KeyboardInterrupt(), "interrupted\n", 130),
        (SpecError.of("SEA107", "too much"), "SEA107: too much\n", 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_raised_becomes_a_message_and_an_exit_code(
    error: BaseException, told: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> int:
        raise error

    assert terminal.run_and_report(run) == code
    written = capsys.readouterr().err
    assert written.startswith(told)
    assert "Traceback" not in written


def test_the_traceback_of_an_internal_error_is_shown_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> int:
        raise KeyError("field")

    monkeypatch.setenv(terminal.TRACEBACK_VARIABLE, "1")
    terminal.run_and_report(run)
    assert "Traceback" in capsys.readouterr().err


class Silent(BaseHTTPRequestHandler):
    """Takes requests, and answers none until the test is over."""

    asked = Event()
    over = Event()

    def do_POST(self) -> None:
        """Keep a client waiting."""
        self.asked.set()
        self.over.wait(60)

    def log_message(self, *_: object) -> None:
        """Keep standard error clean."""


@contextmanager
def silent_server() -> Iterator[str]:
    Silent.asked.clear()
    Silent.over.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        Silent.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupted_trial_says_what_it_measured(number: signal.Signals, workers: str) -> None:
    with silent_server() as url:
        options = ("--model", "m", "--levels", "4", "--requests", "8", "--workers", workers)
        command = [*SEATRIAL, "bench", "--url", url, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as trial:
            assert Silent.asked.wait(60)
            trial.send_signal(number)
            told, error = trial.communicate(timeout=30)  # it ends by itself; the server would wait for a minute
    assert (trial.returncode, error) == (130, "interrupted\n")
    assert told.splitlines()[-1] == (
        "the trial is incomplete and has no verdict; interrupted before a level was measured"
    )


def test_a_command_that_python_can_not_interrupt_is_ended_and_its_scratch_folder_is_gone(tmp_path: Path) -> None:
    """A look-up of a name, a thread that is waited for: KeyboardInterrupt does not get through."""
    script = (
        "import signal, threading, sys, tempfile\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from seatrial_base.terminal import end_when_interrupted, scratch_folder\n"
        "end_when_interrupted()\n"
        "signal.signal(signal.SIGINT, lambda *_: None)\n"
        "with scratch_folder('scratch-'):\n"
        "    print('waiting', flush=True)\n"
        "    while True: threading.Event().wait(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"waiting\n"
        assert len(list(tmp_path.iterdir())) == 1
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=60)
    assert (child.returncode, error) == (130, b"interrupted\n")
    assert list(tmp_path.iterdir()) == []
