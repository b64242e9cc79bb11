"""The command of a command line, for the tests of the pages."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import typer.core
from typer.main import get_command

from seatrial.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer._click.core import Command  # typer brings its own click


def command_of(words: Sequence[str]) -> tuple[Command | None, list[str]]:
    """Return the command that words behind `seatrial` name, and those behind it.

    Without such a command the first of the words left is the unknown one.
    """
    command, rest = every_command(), list(words)
    while isinstance(command, typer.core.TyperGroup) and rest and not rest[0].startswith("-"):
        found = command.commands.get(rest[0])
        if found is None:
            return None, rest
        command, rest = found, rest[1:]
    return command, rest


@cache
def every_command() -> Command:
    """Return the group of all commands; to build it takes 0.05 s of CPU."""
    return get_command(app)
