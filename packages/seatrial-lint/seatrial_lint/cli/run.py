"""Reads a command line of typer and runs its command."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import typer

from seatrial_base.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

ABORTED = 1


def run_typer_app(app: typer.Typer) -> int:
    """Run what the command line asks for and return its exit code; a wrong command line is told with its usage."""
    try:
        code: object = app(standalone_mode=False)
    except typer.Abort:
        sys.stderr.write("aborted\n")
        return ABORTED
    except typer.TyperException as error:
        return _tell_usage(cast("typer.BadParameter", error))
    except SystemExit as ended:
        code = ended.code
    return code if isinstance(code, int) else 0


@dataclass(frozen=True)
class _Usage:
    """What typer shows of an error, with a message that a terminal shows and does not obey."""

    ctx: typer.Context | None
    format_message: Callable[[], str]


def _tell_usage(error: typer.BadParameter) -> int:
    from typer.rich_utils import rich_format_error

    # That one has shown the help already.
    if type(error).__name__ != "NoArgsIsHelpError":
        message = printable(error.format_message())
        rich_format_error(cast("typer.BadParameter", _Usage(cast("typer.Context", error.ctx), lambda: message)))
    return error.exit_code
