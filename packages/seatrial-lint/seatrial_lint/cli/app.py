"""`seatrial-lint`: the commands that need no spec, no plan and no account."""

from __future__ import annotations

import typer

from seatrial_lint.cli.check import check_command
from seatrial_lint.cli.convert import convert_command
from seatrial_lint.cli.lint import lint_command
from seatrial_lint.cli.rules import rules_command

app = typer.Typer(
    name="seatrial-lint",
    help="Lint and convert the configuration of SageMaker's LLM containers; check templates before they are deployed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for _command in (lint_command, check_command, convert_command, rules_command):
    app.command(_command.__name__.removesuffix("_command"))(_command)
