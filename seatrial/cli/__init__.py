"""The command line: one file per command, and one place where errors become messages."""

from __future__ import annotations

import sys
from typing import NoReturn

from seatrial.errors import SeatrialError
from seatrial.secrets import redacted

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


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
        raise


def _exit_interrupted() -> NoReturn:
    sys.stderr.write("interrupted\n")
    sys.exit(INTERRUPTED)
