"""The commands and their order in the help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial import __version__
from seatrial.cli.alternatives import compare_instances_command, recipes_command
from seatrial.cli.audit import audit_command
from seatrial.cli.bench import bench_command
from seatrial.cli.calibrate import calibrate_command
from seatrial.cli.compare import compare_command
from seatrial.cli.deploy import deploy_command
from seatrial.cli.diff import diff_command
from seatrial.cli.doctor import doctor_command
from seatrial.cli.drift import drift_command
from seatrial.cli.images import images
from seatrial.cli.init import init_command
from seatrial.cli.jobs import jobs
from seatrial.cli.keys import guard_rails_command, keys_command
from seatrial.cli.local import demo_command, local
from seatrial.cli.mcp import mcp_command
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
from seatrial.cli.quality import quality_command
from seatrial.cli.render import export_command, render_command
from seatrial.cli.report import report_command
from seatrial.cli.schema import schema_command
from seatrial.cli.simulate import simulate_command
from seatrial.cli.stage import stage_command
from seatrial.cli.teams import teams_command
from seatrial.cli.token import token_command
from seatrial.cli.trial import trial
from seatrial.cli.validate import validate_command
from seatrial_lint.cli.app import check_command, rules_command
from seatrial_lint.cli.convert import convert_command
from seatrial_lint.cli.lint import lint_command

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    name="seatrial",
    help="Infrastructure as code for LLM endpoints on Amazon SageMaker.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_COMMANDS: dict[str, dict[Callable[..., None] | typer.Typer, str]] = {
    "Start": {
        init_command: "Write a repository of endpoints with its pipeline.",
        validate_command: "Check specs: every problem, with line and remedy.",
        demo_command: "Deploy, try, update and roll back on this machine.",
        local: "An embedded AWS with an LLM engine on this machine.",
        schema_command: "Print a document's JSON schema, for editors.",
        migrate_command: "Bring specs and locks to this release.",
        mcp_command: "Serve plans and checks to an assistant, read-only.",
    },
    "Plan": {
        plan_command: "Choose what to deploy: instances, limits, price, why.",
        compare_instances_command: "Compare instance types: SLO, price, speed.",
        recipes_command: "Compare optimizations: speed, price, what they cost.",
        predict_command: "Predict speed and latency of each row of a table.",
        simulate_command: "Simulate days of traffic: users, scaling, cost.",
        render_command: "Show the files that the container reads.",
    },
    "Deploy": {
        preflight_command: "Check the account: quotas, secrets, keys, weights.",
        deploy_command: "Deploy an endpoint and show its trial meanwhile.",
        stage_command: "Copy a model to S3 at one revision, checked.",
        export_command: "Write a template or Terraform module without Python.",
        diff_command: "Show what an update does and what users notice.",
        promote_command: "Take a tried plan to the next environment.",
        keys_command: "Read the key that signs an environment's trials.",
        guard_rails_command: "Print guard rails for cfn-guard, a hook or IAM.",
        products: "Standard endpoints that product teams launch.",
        jobs: "Jobs that make weights, or recommend a deployment.",
    },
    "Operate": {
        trial: "Follow the trial of a deployment, or start one.",
        token_command: "Print a bearer token for OpenAI clients.",
        drift_command: "Compare what runs with what is locked.",
        audit_command: "Show which model served when, on what evidence.",
        doctor_command: "Explain a stuck or failed endpoint, and fix it.",
        teams_command: "List each team's endpoints, costs and trials.",
    },
    "Measure": {
        bench_command: "Load an endpoint: how much it carries, is the SLO met.",
        probe_command: "Measure whether a cheaper deployment would do.",
        compare_command: "Measure two recipes: speed, cost, quality.",
        quality_command: "Score an endpoint: GSM8K, IFEval, suites of yours.",
        calibrate_command: "Fit predictions to what you measured.",
        report_command: "Write a trial's report as HTML, Markdown and JSON.",
    },
    "Check configurations": {
        lint_command: "Show what a container does with serving options.",
        check_command: "Find what SageMaker would refuse in a template.",
        convert_command: "Write a configuration for another engine.",
        rules_command: "List every rule with its ID and severity.",
    },
    "Library": {
        presets: "Recipes to start from, by model and instance type.",
        models: "Models that can be planned by hub id.",
        images: "Container images: list, pin, find newer builds.",
        prices: "Prices of instance types, read from AWS.",
    },
}
"""The commands by what a user is about to do, in this order, each with its line in the help."""


def command_name(function: Callable[..., None]) -> str:
    """Return how a command is called: `compare-instances` of `compare_instances_command`."""
    return function.__name__.removesuffix("_command").replace("_", "-")


for _panel, _commands in _COMMANDS.items():
    for _command, _line in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, rich_help_panel=_panel, short_help=_line)
        else:
            app.command(command_name(_command), rich_help_panel=_panel, short_help=_line)(_command)


def _version(*, show: bool) -> None:
    if show:
        typer.echo(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def main_options(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=lambda value: _version(show=value), is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Infrastructure as code for LLM endpoints on Amazon SageMaker. Alone, it shows the next five commands."""
    del version
    if context.invoked_subcommand is None:
        from seatrial.cli.support.next_commands import lines_of, situation_of

        for line in lines_of(situation_of(Path())):
            typer.echo(line)
