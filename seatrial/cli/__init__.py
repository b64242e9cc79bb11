"""The command line: one file per command, and one place where errors become messages."""

from __future__ import annotations

import sys

from seatrial.errors import SeatrialError

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main() -> None:
    """Run a command; a user's mistake is printed without a traceback and exits with its error's code."""
    from seatrial.cli.app import app

    try:
        app()
    except SeatrialError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
