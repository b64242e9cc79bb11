"""`seatrial plan`: what would be deployed, why, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial.cli.outputs import check_lock
from seatrial.cli.terminal import show, show_json

if TYPE_CHECKING:
    from seatrial.plan.document import Plan
    from seatrial.spec.load import LoadedSpec

Format = Literal["text", "json"]


def plan(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    output_format: Annotated[Format, typer.Option("--format", help="For people or machines.")] = "text",
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="INSTANCE_TYPE", help="Say only why this instance type won or lost."),
    ] = None,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write the plan to the lock beside the spec.")] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over what was set by hand in the lock, and say what it overrules.")
    ] = False,
    accept_slo_miss: Annotated[
        bool, typer.Option("--accept-slo-miss", help="Plan even if no deployment is predicted to meet the SLO.")
    ] = False,
) -> None:
    """Choose instance type, degree, copies and limits, and say why."""
    if why is not None and (write or adopt):
        raise typer.BadParameter("it makes no plan to write", param_hint="'--why'")
    if adopt and (write or accept_slo_miss):
        raise typer.BadParameter("it takes the plan that is locked, and makes no other", param_hint="'--adopt'")
    from seatrial.spec.load import load_spec

    folder = environments_folder(environments, spec)
    if write:
        check_lock(spec, folder, environment)
    loaded = load_spec(spec, environment, environments=folder)
    if why is not None:
        _explain(loaded, why, output_format, accept_slo_miss=accept_slo_miss)
        return
    if adopt:
        _adopt(loaded, output_format)
        return
    from seatrial.plan.planner import make_plan

    made = make_plan(loaded, accept_slo_miss=accept_slo_miss)
    _show(made, loaded, output_format)
    if write:
        _lock(made, loaded)


def _show(made: Plan, loaded: LoadedSpec, output_format: Format) -> None:
    if output_format == "json":
        show_json(made.model_dump(mode="json"))
        return
    from seatrial.report.plan_view import plan_view

    show(plan_view(made, loaded))


def _explain(loaded: LoadedSpec, instance_type: str, output_format: Format, *, accept_slo_miss: bool) -> None:
    from seatrial.plan.why import explain

    verdicts = explain(loaded, instance_type, accept_slo_miss=accept_slo_miss)
    if output_format == "json":
        rows = [verdict.model_dump(mode="json") for verdict in verdicts]
        show_json({"endpoint": loaded.endpoint.name, "environment": loaded.environment.name, "verdicts": rows})
        return
    from seatrial.report.terminal.why import why_view

    show(why_view(instance_type, verdicts))


def _lock(made: Plan, loaded: LoadedSpec) -> None:
    from seatrial.plan.changes import changes
    from seatrial.plan.lock import locked_document, write_lock
    from seatrial.plan.pinned_image import keep_digest

    before = locked_document(loaded)
    made = keep_digest(before, made)
    file = write_lock(made, loaded.path)
    typer.echo(f"locked in {file.as_posix()}", err=True)
    for line in changes(before, made) if before is not None else ():
        typer.echo(f"  {line}", err=True)


def _adopt(loaded: LoadedSpec, output_format: Format) -> None:
    from seatrial.plan.adopt import adopt
    from seatrial.plan.changes import text_of
    from seatrial.plan.lock import read_locked_plan, write_lock

    adoption = adopt(loaded)
    if adoption is None:
        read_locked_plan(loaded)
        typer.echo("nothing was set by hand in the lock: it is what was written", err=True)
        return
    _show(adoption.plan, loaded, output_format)
    file = write_lock(adoption.plan, loaded.path)
    typer.echo(f"locked in {file.as_posix()}", err=True)
    for name, each in adoption.overruled.items():
        typer.echo(f"  {name}: planned {text_of(each.planned)}, adopted {text_of(each.adopted)}", err=True)
    for line in adoption.recomputed:
        typer.echo(f"  {line} (follows)", err=True)
