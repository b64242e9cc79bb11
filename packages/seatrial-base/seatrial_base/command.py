"""Where a command ends: errors become messages and exit codes, for every command line of ours."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

from seatrial_base.errors import SeatrialError
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import redacted
from seatrial_base.terminal import INTERRUPTED, OutputClosedError, guard_output

if TYPE_CHECKING:
    from collections.abc import Callable

FAILED = 1
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
SIGNALLED = {128 + number: f"ended by {number.name}" for number in (signal.SIGTERM, signal.SIGHUP)}
UNREAD = 141  # 128 + SIGPIPE, likewise
TRACEBACK_VARIABLE = "SEATRIAL_TRACEBACK"
"""With any text in it, an unexpected error is printed with its traceback."""


def run_command_line(run: Callable[[], int]) -> NoReturn:
    """Run a command line and exit with its code; whatever goes wrong is a message without a traceback."""
    guard_output()
    code = run_and_report(run)
    written = run_and_report(_flush_output)
    if written:  # what is left unwritten would fail once more when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code or written)


def _flush_output() -> int:
    sys.stdout.flush()
    return 0


def run_and_report(run: Callable[[], int]) -> int:
    """Run, write what went wrong, and return the exit code."""
    try:
        code = run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SeatrialError as error:
        _write(redacted(str(error)))
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 (the border: what nobody expected becomes a message that can be reported)
        code = _unexpected(error)
    if code == INTERRUPTED:  # also what typer makes of a KeyboardInterrupt, without a word
        _write("interrupted")
    elif code in SIGNALLED:
        _write(SIGNALLED[code])
    return code


def _unexpected(error: Exception) -> int:
    """Tell an error that no command made a message of: one of the system, or one of ours."""
    if isinstance(error, OutputClosedError):
        return UNREAD
    if os.environ.get(TRACEBACK_VARIABLE):
        _write(redacted("".join(traceback.format_exception(error))))
    problem = _of_the_system(error) or _internal(error)
    _write(redacted(str(problem)))
    return INTERNAL if problem.rule == "SEA517" else FAILED


def _of_the_system(error: Exception) -> Finding | None:
    """Return what the machine refused: a file, room on a disk, memory, a text in the encoding asked for."""
    hint = f"set {TRACEBACK_VARIABLE}=1 for a traceback"
    match error:
        case OSError(filename=file, strerror=str(reason)):
            where = os.fsdecode(file) if isinstance(file, str | bytes) else ""
            return Finding("SEA101", Place.at(where), reason, _without_folder() or hint)
        case UnicodeEncodeError(object=text, start=at):
            message = f"a text holds U+{ord(text[at]):04X}, which can't be written as {error.encoding}"
            return Finding("SEA101", Place(), message, "a file's name or an argument is not UTF-8")
        case MemoryError():
            return Finding("SEA101", Place(), "out of memory", hint)
    return None


def _without_folder() -> str:
    try:
        os.getcwd()  # noqa: PTH109 (Path.cwd() says the same)
    except OSError:
        return "the working folder no longer exists: change to another"
    return ""


def _internal(error: Exception) -> Finding:
    what = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    hint = f"report this bug with the output of {TRACEBACK_VARIABLE}=1"
    return Finding("SEA517", Place(), f"an internal error: {what}", hint)


def _write(text: str) -> None:
    """Write a message, unless nobody can read it."""
    try:
        sys.stderr.write(f"{text.rstrip()}\n")
        sys.stderr.flush()
    except (OutputClosedError, SeatrialError):
        return
