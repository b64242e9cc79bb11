"""The commands and their order in the help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial import __version__
from seatrial.cli.bench import bench_command
from seatrial.cli.calibrate import calibrate_command
from seatrial.cli.compare import compare_command
from seatrial.cli.compare_instances import compare_instances_command
from seatrial.cli.demo import demo_command
from seatrial.cli.diff import diff_command
from seatrial.cli.doctor import doctor_command
from seatrial.cli.drift import drift_command
from seatrial.cli.images import images
from seatrial.cli.init import init_command
from seatrial.cli.jobs import jobs
from seatrial.cli.local import local
from seatrial.cli.migrate import migrate_command
from seatrial.cli.models import models
from seatrial.cli.plan import plan_command
from seatrial.cli.predict import predict_command
from seatrial.cli.preflight import preflight_command
from seatrial.cli.presets import presets
from seatrial.cli.prices import prices
from seatrial.cli.probe import probe_command
from seatrial.cli.products import products
from seatrial.cli.promote import promote_command
from seatrial.cli.recipes import recipes_command
from seatrial.cli.render import render_command
from seatrial.cli.report import report_command
from seatrial.cli.schema import schema_command
from seatrial.cli.stage import stage_command
from seatrial.cli.teams import teams_command
from seatrial.cli.token import token_command
from seatrial.cli.trial import trial
from seatrial.cli.validate import validate_command
from seatrial_lint.cli.check import check_command
from seatrial_lint.cli.convert import convert_command
from seatrial_lint.cli.lint import lint_command
from seatrial_lint.cli.rules import rules_command

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    name="seatrial",
    help="Infrastructure as code for LLM endpoints on Amazon SageMaker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_COMMANDS: dict[str, tuple[Callable[..., None] | typer.Typer, ...]] = {
    "Start": (init_command, validate_command, demo_command, local, schema_command, migrate_command),
    "Plan": (
        plan_command,
        compare_instances_command,
        recipes_command,
        predict_command,
        render_command,
    ),
    "Deploy": (preflight_command, stage_command, diff_command, promote_command, products, jobs),
    "Operate": (trial, token_command, drift_command, doctor_command, teams_command),
    "Measure": (bench_command, probe_command, compare_command, calibrate_command, report_command),
    "Check configurations": (lint_command, check_command, convert_command, rules_command),
    "Library": (presets, models, images, prices),
}
"""The commands by what a user is about to do, in this order."""


def command_name(function: Callable[..., None]) -> str:
    """Return how a command is called: `compare-instances` of `compare_instances_command`."""
    return function.__name__.removesuffix("_command").replace("_", "-")


for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, rich_help_panel=_panel)
        else:
            app.command(command_name(_command), rich_help_panel=_panel)(_command)


def _version(*, show: bool) -> None:
    if show:
        typer.echo(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def main_options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=lambda value: _version(show=value), is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Plan, render, deploy and try LLM endpoints."""
    del version
