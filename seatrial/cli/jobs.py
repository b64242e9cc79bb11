"""`seatrial jobs`: the optimization jobs that make the weights of endpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

NOT_COMPLETED = 1

jobs = typer.Typer(name="jobs", help="Optimization jobs of endpoints.", no_args_is_help=True)


@jobs.callback()
def job_options() -> None:
    """Show the state of an endpoint's optimization job, or start it again."""


@jobs.command("status")
def job_status(spec: SpecFile, environment: EnvironmentName, environments: EnvironmentsFolder = None) -> None:
    """Show the job of an endpoint's recipe: state, artifacts, recommended image.

    It exits with 0 when the job is completed, else with 1.
    """
    import boto3

    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import job_state, request_of

    deployment = _deployment(spec, environment, environments)
    request = request_of(deployment)
    with aws_failures(environment):
        client = boto3.client("ssm", region_name=deployment.environment.region)
    state = job_state(client, request)
    typer.echo(f"{state.job}: {state.state}" + (f", created {state.created}" if state.created else ""))
    for name, value in (
        ("artifacts", state.artifact_s3_uri),
        ("recommended image", state.recommended_image),
        ("failure", state.failure_reason),
    ):
        if value:
            typer.echo(f"{name}: {value}")
    if state.state != "COMPLETED":
        raise typer.Exit(NOT_COMPLETED)


@jobs.command("start")
def start_job(spec: SpecFile, environment: EnvironmentName, environments: EnvironmentsFolder = None) -> None:
    """Start the job again, when it failed, was stopped or its artifacts were deleted.

    A job that runs or is completed is left as it is. The first start is that of `cdk deploy`.
    """
    from uuid import uuid4

    import boto3

    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import request_of, start_job

    deployment = _deployment(spec, environment, environments)
    request = request_of(deployment)
    with aws_failures(environment):
        client = boto3.client("lambda", region_name=deployment.environment.region)
    name, state = start_job(client, request, f"{uuid4()}")
    typer.echo(f"{name}: {state}; follow it with `seatrial jobs status {spec} -e {environment}`")


def _deployment(spec: Path, environment: str, environments: Path | None) -> Deployment:
    from seatrial.deployment.load import load_deployment

    return load_deployment(spec, environments_folder(environments, spec), environment)
