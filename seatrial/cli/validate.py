"""`seatrial validate`: every problem of every spec, in every environment, at once."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial.cli.support.options import EnvironmentsFolder, SpecFiles, environments_folder
from seatrial.cli.support.specs import spec_files
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place


def validate(
    specs: SpecFiles,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", "-e", metavar="ENV", help="Only these environments. Default: all."),
    ] = None,
    environments: EnvironmentsFolder = None,
) -> None:
    """Check specs in every environment and list every problem; exit 2 when there is one."""
    from seatrial.deployment.guests import absent_specs
    from seatrial.specs.load import environment_names, load_spec

    problems: list[Finding] = []
    files = spec_files(specs)
    for spec in files:
        folder = environments_folder(environments, spec)
        names = environment or environment_names(folder)
        if not names:
            hint = "give the folder: --environments DIR"
            problems.append(Finding("SEA109", Place.at(folder.as_posix()), "no environment (*.yaml)", hint))
        for name in names:
            try:
                problems += absent_specs(load_spec(spec, name, environments=folder))
            except SpecError as error:
                problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    for spec in files:
        typer.echo(f"{spec.as_posix()}: valid")
