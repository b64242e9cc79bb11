"""`seatrial plan`: what would be deployed, why, and what it costs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from seatrial.cli.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder


def plan(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    output_format: Annotated[
        Literal["text", "json"], typer.Option("--format", help="For people or machines.")
    ] = "text",
    *,
    write: Annotated[bool, typer.Option("--write", help="Write the plan to the lock beside the spec.")] = False,
    accept_slo_miss: Annotated[
        bool, typer.Option("--accept-slo-miss", help="Plan even if no deployment is predicted to meet the SLO.")
    ] = False,
) -> None:
    """Choose instance type, degree, copies and limits, and say why."""
    from seatrial.plan.changes import changes
    from seatrial.plan.lock import locked_document, write_lock
    from seatrial.plan.planner import make_plan
    from seatrial.spec.load import load_spec

    loaded = load_spec(spec, environment, environments=environments_folder(environments, spec))
    made = make_plan(loaded, accept_slo_miss=accept_slo_miss)
    if output_format == "json":
        typer.echo(made.model_dump_json(indent=2))
    else:
        from rich.console import Console

        from seatrial.report.plan_view import plan_view

        Console().print(plan_view(made, loaded))
    if write:
        before = locked_document(loaded)
        file = write_lock(made, spec)
        typer.echo(f"locked in {file.as_posix()}", err=True)
        for line in changes(before, made) if before is not None else ():
            typer.echo(f"  {line}", err=True)
