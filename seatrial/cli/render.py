"""`seatrial render` and `seatrial export`: what the container would read, and what tools without Python deploy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.model_options import (
    EnvironmentOrDefault,
    ModelOptions,
    SpecsOrModel,
    load_specs_or_model,
    names_list,
    takes_model,
)
from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import endpoint_file, of_every, spec_files
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.documents.plan import Plan
    from seatrial.engines.rendered import RenderedConfig
    from seatrial.specs.load import LoadedSpec


@takes_model
def render_command(
    specs: SpecsOrModel,
    environment: EnvironmentOrDefault = None,
    environments: EnvironmentsFolder = None,
    templates: Annotated[
        Path | None,
        typer.Option("--templates", metavar="DIR", help="Folder of templates that override ours file by file."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write to this folder.")] = None,
    *,
    model_options: ModelOptions,
) -> None:
    """Render the serving configuration of the locked plan, or of a fresh one when nothing is locked yet.

    Of many specs each gets a folder of its own name in DIR. Nothing is written unless every spec can be rendered.
    """
    many = names_list(specs)
    folders = _folders(spec_files(specs), output) if many else (output,)
    render_one = _rendered_if_promoted if many else _rendered
    rendered = of_every(
        load_specs_or_model(specs, environment, environments, model_options),
        lambda loaded: render_one(loaded, templates),
    )
    from seatrial.engines.rendered import rendered_files, write_config

    for one, folder in zip(rendered, folders, strict=True):
        if one is None:
            continue
        loaded, config = one
        of = f"{loaded.path.as_posix()}: " if many else ""
        for note in config.notes:
            typer.echo(f"note: {of}{note}", err=True)
        if folder is not None:
            for file in write_config(config, folder):
                typer.echo(file.as_posix())
            continue
        for name, text in rendered_files(config).items():
            typer.echo(f"==> {of}{name} <==\n{text}", nl=False)


_Rendered = tuple["LoadedSpec", "RenderedConfig"]


def _folders(files: Sequence[Path], output: Path | None) -> tuple[Path | None, ...]:
    """Return where each spec is rendered to: by its file's name, which no two of them may share."""
    if output is None:
        return (None,) * len(files)
    first: dict[str, Path] = {}
    problems = []
    for file in files:
        other = first.setdefault(file.stem, file)
        if other is not file:
            message = (
                f"{file.as_posix()} and {other.as_posix()} would both be written to {(output / file.stem).as_posix()}"
            )
            problems.append(
                Finding("SEA421", Place("command line", field="--output"), message, "render them one by one")
            )
    if problems:
        raise SpecError(problems)
    return tuple(output / file.stem for file in files)


def _rendered(loaded: LoadedSpec, templates: Path | None) -> _Rendered:
    from seatrial.engines.render import render_plan

    return loaded, render_plan(loaded, _plan(loaded), templates=templates)


def _rendered_if_promoted(loaded: LoadedSpec, templates: Path | None) -> _Rendered | None:
    """Render one of many; one that awaits a promotion is left out with a note."""
    from seatrial.locks.locked_plan import awaits_promotion, promotion_command

    try:
        return _rendered(loaded, templates)
    except SpecError as error:
        if not awaits_promotion(error, loaded):
            raise
    command = promotion_command(loaded)
    typer.echo(f"note: {loaded.path.as_posix()}: skipped until its plan is promoted (`{command}`)", err=True)
    return None


def _plan(loaded: LoadedSpec) -> Plan:
    from seatrial.locks.lock_file import is_locked
    from seatrial.locks.locked_plan import provenance_lines, read_locked_plan

    if loaded.has_spec and is_locked(loaded):
        plan = read_locked_plan(loaded)
        for line in provenance_lines(plan.promoted)[:1]:
            typer.echo(f"note: {loaded.path.as_posix()}: {line}", err=True)
        return plan
    if loaded.has_spec:
        typer.echo(f"{loaded.path.as_posix()}: no lock for {loaded.environment.name}: rendering a new plan", err=True)
    # Imported here and not above: a lock needs none of the planner, which is a third of what this command can import.
    from seatrial.planner.planner import make_plan

    return make_plan(loaded)


def export_command(
    endpoint: Annotated[
        str, typer.Argument(metavar="ENDPOINT", help="YAML file or name of the endpoint.", show_default=False)
    ],
    environment: EnvironmentName,
    output_format: Annotated[
        Literal["cloudformation", "terraform"],
        typer.Option("--format", help="A template for CloudFormation, or a Terraform module around it."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder to write; default: the stack's name.")
    ] = None,
    bucket: Annotated[
        str | None,
        typer.Option(metavar="BUCKET", help="Default of the template's bucket, as `TemplatesBucket` of the products."),
    ] = None,
    *,
    environments: EnvironmentsFolder = None,
) -> None:
    """Write an endpoint for those who deploy without Python, the CDK or a bootstrapped account.

    The template is that of `cdk deploy`; what it reads from S3 lies in `assets` beside it. An earlier export in the
    folder is replaced; files that were edited since, and files that no export wrote, are refused. The commands that
    deploy it come last.
    """
    import re

    from seatrial.operations.export import BUCKET_PATTERN, export_of, write_export

    if bucket is not None and not re.fullmatch(BUCKET_PATTERN, bucket):
        raise typer.BadParameter("is no name of an S3 bucket", param_hint="'--bucket'")
    file = endpoint_file(endpoint)
    folder, export = export_of(
        file, environments_folder(environments, file), environment, output_format, folder=output, bucket=bucket
    )
    for path in write_export(export, folder):
        typer.echo(path.as_posix())
    if export.deployed_first:
        typer.echo(f"note: deploy {', '.join(export.deployed_first)} first", err=True)
    if export.is_embedded:
        typer.echo("note: on the embedded AWS: the commands need AWS_ENDPOINT_URL (`seatrial local env`)", err=True)
    for command in export.commands:
        typer.echo(f"$ {command}")
