"""The command line: one file per command."""

from __future__ import annotations

from typing import NoReturn

from seatrial_base.terminal import run_command_line


def main() -> NoReturn:
    """Run a command and exit with its code."""
    run_command_line(_run)


def _run() -> int:
    from seatrial.cli.app import app
    from seatrial_lint.cli.run import run_typer_app

    return run_typer_app(app)
