"""The commands and their order in the help."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial import __version__
from seatrial.cli.bench import bench
from seatrial.cli.calibrate import calibrate
from seatrial.cli.compare import compare
from seatrial.cli.compare_instances import compare_instances
from seatrial.cli.demo import demo
from seatrial.cli.diff import diff
from seatrial.cli.doctor import doctor
from seatrial.cli.drift import drift
from seatrial.cli.images import images
from seatrial.cli.init import init
from seatrial.cli.jobs import jobs
from seatrial.cli.local import local
from seatrial.cli.migrate import migrate
from seatrial.cli.models import models
from seatrial.cli.plan import plan
from seatrial.cli.predict import predict
from seatrial.cli.preflight import preflight
from seatrial.cli.presets import presets
from seatrial.cli.prices import prices
from seatrial.cli.probe import probe
from seatrial.cli.products import products
from seatrial.cli.promote import promote
from seatrial.cli.recipes import recipes
from seatrial.cli.render import render
from seatrial.cli.report import report
from seatrial.cli.schema import schema
from seatrial.cli.stage import stage
from seatrial.cli.teams import teams
from seatrial.cli.trial import trial
from seatrial.cli.validate import validate
from seatrial_lint.cli.check import check
from seatrial_lint.cli.convert import convert
from seatrial_lint.cli.lint import lint
from seatrial_lint.cli.rules import rules

app = typer.Typer(
    name="seatrial",
    help="Infrastructure as code for LLM endpoints on Amazon SageMaker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for command in (
    init,
    validate,
    schema,
    migrate,
    plan,
    compare_instances,
    recipes,
    predict,
    render,
    promote,
    diff,
    preflight,
    drift,
    doctor,
    teams,
    lint,
    check,
    convert,
    bench,
    probe,
    compare,
    calibrate,
    report,
    stage,
    demo,
    rules,
):
    app.command()(command)
app.add_typer(images, name="images")
app.add_typer(models, name="models")
app.add_typer(presets, name="presets")
app.add_typer(prices, name="prices")
app.add_typer(products, name="products")
app.add_typer(local, name="local")
app.add_typer(trial, name="trial")
app.add_typer(jobs, name="jobs")


def _version(*, show: bool) -> None:
    if show:
        typer.echo(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=lambda value: _version(show=value), is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Plan, render, deploy and try LLM endpoints."""
    del version
