"""The command `seatrial-load`; `seatrial bench` shares all of it but argparse and the plain lines."""

from __future__ import annotations

from typing import NoReturn

from seatrial_base.terminal import run_command_line


def main() -> NoReturn:
    """Run `seatrial-load` and exit with its code."""
    run_command_line(_run)


def _run() -> int:
    from seatrial_load.cli.load_command import run_load_command

    return run_load_command()
