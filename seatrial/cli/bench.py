"""`seatrial bench`: put a deployed endpoint through its sea trial now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder

if TYPE_CHECKING:
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import LevelResult
    from seatrial.deployment.document import Deployment

FAILED = 1


def bench(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    levels: Annotated[str | None, typer.Option("--levels", help="Concurrency per copy, as in 1,2,4.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write the report here.")] = None,
) -> None:
    """Load the endpoint that is deployed for a spec and judge it; exit 1 unless it passes.

    It refuses to measure unless what is live is what the stack deployed.
    """
    from seatrial.bench.trial import run_trial
    from seatrial.deployment.load import load_deployment
    from seatrial.report import write_report

    deployment = load_deployment(spec, environments_folder(environments, spec), environment)
    result = run_trial(_request(deployment, levels), on_level=_show_level)
    for knee in result.knees:
        typer.echo(f"knee ({knee.detector}): {knee.because}")
    typer.echo(f"verdict: {result.verdict.status}: {result.verdict.because}")
    if result.engine_note:
        typer.echo(f"measured on: {result.engine_note}")
    if output is not None:
        typer.echo(write_report(result, deployment.plan, output).html.as_posix())
    if result.verdict.status != "pass":
        raise typer.Exit(FAILED)


def _request(deployment: Deployment, levels: str | None) -> TrialRequest:
    import boto3

    from seatrial.deployment.aws_failures import aws_failures
    from seatrial.deployment.live_stack import describe_stack
    from seatrial.deployment.trial import complete_request

    region = deployment.environment.region
    with aws_failures(deployment.stack_name):
        cloudformation = boto3.client("cloudformation", region_name=region)
    stack = describe_stack(deployment.stack_name, cloudformation)
    request = complete_request(deployment, stack)
    if levels is None:
        return request
    return replace(request, load=replace(request.load, concurrency_levels=_levels(levels)))


def _levels(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(level) for level in text.split(",")}))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a list of whole numbers as in 1,2,4", param_hint="--levels"
        ) from None


def _show_level(level: LevelResult) -> None:
    ttft = f"{level.ttft_ms.p95:,.0f} ms" if level.ttft_ms else "–"
    speed = f"{level.output_tok_s:,.0f} tok/s" if level.output_tok_s is not None else "–"
    good = "meets the SLO" if level.meets_slo else "; ".join(level.misses) or "no request succeeded"
    typer.echo(f"concurrency {level.concurrency}: {speed}, TTFT p95 {ttft}, {level.succeeded}/{level.requests}: {good}")
