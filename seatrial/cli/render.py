"""`seatrial render`: the files and environment that the container would read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder

if TYPE_CHECKING:
    from seatrial.plan.document import Plan
    from seatrial.spec.load import LoadedSpec


def render(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write to this folder.")] = None,
) -> None:
    """Render the serving configuration of the locked plan, or of a fresh one when nothing is locked yet."""
    from seatrial.serving.render import render as render_plan
    from seatrial.serving.write import rendered_files, write_config
    from seatrial.spec.load import load_spec

    loaded = load_spec(spec, environment, environments=environments_folder(environments, spec))
    config = render_plan(loaded, _plan(loaded))
    for note in config.notes:
        typer.echo(f"note: {note}", err=True)
    if output is not None:
        for file in write_config(config, output):
            typer.echo(file.as_posix())
        return
    for name, text in rendered_files(config).items():
        typer.echo(f"==> {name} <==\n{text}", nl=False)


def _plan(loaded: LoadedSpec) -> Plan:
    from seatrial.plan.lock import is_locked, read_locked_plan
    from seatrial.plan.planner import make_plan

    if is_locked(loaded):
        return read_locked_plan(loaded)
    typer.echo(f"nothing is locked for {loaded.environment.name}: rendering a fresh plan", err=True)
    return make_plan(loaded)
