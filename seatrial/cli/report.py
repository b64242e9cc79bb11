"""`seatrial report`: a trial's result as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.options import EnvironmentsFolder, environments_folder
from seatrial.errors import BenchError

if TYPE_CHECKING:
    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan


def report(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="The result's file, or its s3:// URI.")],
    spec: Annotated[Path | None, typer.Option("--spec", help="Spec whose locked plan is shown beside.")] = None,
    environment: Annotated[str | None, typer.Option("--environment", "-e", help="Its environment.")] = None,
    environments: EnvironmentsFolder = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the report.")] = Path(
        "report"
    ),
) -> None:
    """Write the report of a trial as HTML, Markdown and JSON."""
    from seatrial.report import write_report

    measured = _read(result)
    plan = None
    if spec is not None:
        plan = _locked_plan(spec, environment or measured.request.environment, environments)
    written = write_report(measured, plan, output)
    for file in (written.html, written.markdown, written.json):
        typer.echo(file.as_posix())


def _read(result: str) -> TrialResult:
    from seatrial.bench.result import TrialResult
    from seatrial.deployment.aws_failures import aws_failures
    from seatrial.deployment.live_stack import fetch_result

    if result.startswith("s3://"):
        import boto3

        with aws_failures(result):
            s3 = boto3.client("s3")
        return fetch_result(result, s3)
    try:
        return TrialResult.from_json(Path(result).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        message = f"the result can't be read: {error}"
        raise BenchError.of("SEA501", message, where=result, hint="name the file, or its s3:// URI") from error


def _locked_plan(spec: Path, environment: str, environments: Path | None) -> Plan:
    from seatrial.plan.lock import read_locked_plan
    from seatrial.spec.load import load_spec

    return read_locked_plan(load_spec(spec, environment, environments=environments_folder(environments, spec)))
