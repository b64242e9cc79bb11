"""The arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The endpoint's YAML file.", show_default=False)]
SpecFiles = Annotated[
    list[Path], typer.Argument(metavar="SPEC…", help="YAML files of endpoints, or folders of them.", show_default=False)
]
EnvironmentName = Annotated[
    str, typer.Option("--environment", "-e", metavar="ENV", help="Name of the environment.", show_default=False)
]
EnvironmentsFolder = Annotated[
    Path | None,
    typer.Option("--environments", metavar="DIR", help="Folder of environments; `environments` next to the specs'."),
]
ENDPOINT = typer.Argument(
    metavar="ENDPOINT",
    help="Name of the endpoint on SageMaker; with `-e`, YAML file or name of its spec.",
    show_default=False,
)
LiveEndpoint = Annotated[str, ENDPOINT]
LiveEnvironment = Annotated[
    str | None, typer.Option("--environment", "-e", metavar="ENV", help="Name of the environment.")
]
LiveRegion = Annotated[
    str | None, typer.Option("--region", metavar="REGION", help="Region, without `-e`; default: of the AWS profile.")
]


def environments_folder(given: Path | None, spec: Path) -> Path:
    """Return the folder of environments: as given, else `environments` next to the spec, or next to its folder."""
    from seatrial.specs.load import environments_of

    return environments_of(spec) if given is None else given
