"""`seatrial jobs`: the optimization jobs that make the weights of endpoints, and recommendations beside plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

NOT_COMPLETED = 1

jobs = typer.Typer(name="jobs", help="Optimization and recommendation jobs of endpoints.", no_args_is_help=True)


@jobs.callback()
def job_options() -> None:
    """Show the state of an endpoint's optimization job, start it again, or compare a recommendation with its plan."""


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


@jobs.command("compare")
def compare_recommendation(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    *,
    job: Annotated[str | None, typer.Option("--job", help="Name of an AI recommendation job of the account.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="What `aws sagemaker describe-ai-recommendation-job` printed of it.")
    ] = None,
) -> None:
    """Show what a recommendation job of SageMaker would deploy, beside the locked plan: a second opinion."""
    import boto3

    from seatrial.account.reader import aws_failures, error_sentence
    from seatrial.locks.locked_plan import read_locked_plan
    from seatrial.operations.recommendations import recommendation_table
    from seatrial.report.terminal.tables import table_view
    from seatrial.specs.load import load_spec
    from seatrial.specs.prices import list_price
    from seatrial_base.files import read_text
    from seatrial_base.terminal import show
    from seatrial_base.text import json_document

    if (job is None) == (file is None):
        raise typer.BadParameter("give one of --job and --file", param_hint="--job")
    loaded = load_spec(spec, environment, environments=environments_folder(environments, spec))
    plan, answer = read_locked_plan(loaded), None
    if file is not None:
        try:
            answer = json_document(read_text(file))
        except (OSError, ValueError) as error:
            raise SpecError.of("SEA633", f"the job can't be read: {error}", where=file.as_posix()) from error
    elif job is not None:
        with aws_failures(environment, lambda error: SpecError.of("SEA633", error_sentence(error), where=job)):
            client = boto3.client("sagemaker", region_name=loaded.environment.region)
            if not hasattr(client, "describe_ai_recommendation_job"):
                raise SpecError.of("SEA633", "this boto3 can't read jobs", hint="upgrade boto3, or give --file")
            answer = dict(client.describe_ai_recommendation_job(AIRecommendationJobName=job))
    whole = answer if isinstance(answer, dict) else {}
    table = recommendation_table(plan, whole, job or f"{file}", lambda name: list_price(name, loaded))
    show(table_view(table))
    typer.echo(table.caption)


def _deployment(spec: Path, environment: str, environments: Path | None) -> Deployment:
    from seatrial.deployment.load import load_deployment

    return load_deployment(spec, environments_folder(environments, spec), environment)
