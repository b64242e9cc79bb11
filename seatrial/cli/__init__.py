"""The command line: one file per command, and one place where errors become messages."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from seatrial.errors import SeatrialError
from seatrial.secrets import redacted

INTERRUPTED = 128 + signal.SIGINT  # as shells report it
SIGNALLED = {128 + number: f"ended by {number.name}" for number in (signal.SIGTERM, signal.SIGHUP)}


def main() -> None:
    """Run a command; a user's mistake is printed without a traceback and exits with its error's code."""
    try:
        from seatrial.cli.app import app

        app()
    except SeatrialError as error:
        sys.stderr.write(f"{redacted(str(error))}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _exit_interrupted()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # what typer makes of a KeyboardInterrupt, without a word
            _exit_interrupted()
        if isinstance(ended.code, int) and ended.code in SIGNALLED:
            sys.stderr.write(f"{SIGNALLED[ended.code]}\n")
        raise


def _exit_interrupted() -> NoReturn:
    sys.stderr.write("interrupted\n")
    sys.exit(INTERRUPTED)
