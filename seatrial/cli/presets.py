"""`seatrial presets`: recipes to start from, those of the catalog and the team's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial_base.table import aligned_lines, name_column, number_columns, table_of, text_columns
from seatrial_base.terminal import show_text

if TYPE_CHECKING:
    from seatrial_base.catalog.presets import Preset

presets = typer.Typer(
    name="presets", help="Presets: recipes to start from, per model and instance type.", no_args_is_help=True
)
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]
OF_CWD = Path("environments")
_MORE: Final = ("tokens", "in flight", "SLO", "provenance", "band")


@presets.command("list")
def list_presets(
    model: Annotated[
        str, typer.Argument(metavar="[MODEL]", help="Only presets whose model's name has this text in it.")
    ] = "",
    *,
    instance_type: Annotated[
        str, typer.Option("--instance-type", metavar="TYPE", help="Only presets of this type, or family as `g6e`.")
    ] = "",
    wide: Annotated[bool, typer.Option("--wide", help="Show workload, SLO and provenance, too.")] = False,
    output_format: Format = "text",
    environments: EnvironmentsFolder = None,
) -> None:
    """List presets: the team's own first, then those of the catalog, cheapest per token first within a model."""
    from seatrial.specs.presets import known_presets

    wanted = instance_type.lower().removeprefix("ml.")
    matches = [
        preset
        for preset in known_presets(environments or OF_CWD)
        if model.lower() in preset.model.lower()
        and wanted in {"", (size := preset.instance_type.removeprefix("ml.")), size.partition(".")[0]}
    ]
    ordered = sorted(matches, key=lambda each: (each.model, each.usd_per_million_output_tokens or 0.0, each.name))
    if output_format == "json":
        typer.echo(json.dumps([each.model_dump(mode="json", exclude_defaults=True) for each in ordered], indent=2))
        return
    columns = (name_column("name"), *number_columns("tok/s", "$/1M"), *(text_columns(*_MORE) if wide else ()))
    table = table_of(columns, (_cells(preset, wide=wide) for preset in ordered))
    for line in aligned_lines(table):
        typer.echo(line)
    if not wide:
        typer.echo("$/1M: per million output tokens. --wide shows workload, SLO and provenance.", err=True)


def _cells(preset: Preset, *, wide: bool) -> tuple[str, ...]:
    price, tok_s = preset.usd_per_million_output_tokens, preset.output_tok_s
    first = preset.name, "" if tok_s is None else f"{tok_s:,.0f}", "" if price is None else f"{price:,.2f}"
    if not wide:
        return first
    tokens = f"{preset.input_tokens:,} + {preset.output_tokens:,}"
    band = "" if preset.band is None else f"±{preset.band:.0%}"
    return *first, tokens, f"{preset.concurrency:,}", preset.verdict, preset.provenance, band


@presets.command("show")
def show_preset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the preset.", show_default=False)],
    *,
    output_format: Annotated[Literal["yaml", "json"], typer.Option("--format", help="Output format.")] = "yaml",
    environments: EnvironmentsFolder = None,
) -> None:
    """Print a preset as the spec of an endpoint, to be saved in `endpoints` and changed."""
    from seatrial.specs.presets import known_presets, preset_named, spec_of_preset

    preset = preset_named(name, known_presets(environments or OF_CWD))
    if output_format == "json":
        typer.echo(json.dumps(preset.model_dump(mode="json", exclude_defaults=True), indent=2))
    else:
        show_text(spec_of_preset(preset))


@presets.command("add")
def add(
    result: Annotated[
        str, typer.Argument(metavar="RESULT", help="A trial's result: a JSON file or an s3:// URI.", show_default=False)
    ],
    *,
    spec: Annotated[
        str | None,
        typer.Option(
            "--spec", metavar="SPEC", help="The endpoint's YAML file. Default: that of its name in endpoints."
        ),
    ] = None,
    environments: EnvironmentsFolder = None,
) -> None:
    """Add what a trial measured to the team's presets, `presets.yaml` next to the folder of environments.

    The recipe, the model and the instance type are those of the spec and its lock, which must be the ones of the trial.
    A preset of the same name is replaced; adding a result twice changes nothing. No plan reads the file.
    """
    from seatrial.cli.support.files import read_result
    from seatrial.cli.support.specs import endpoint_file
    from seatrial.report.measured_preset import measured_preset
    from seatrial.specs.load import load_spec
    from seatrial.specs.presets import presets_path, write_team_preset

    read = read_result(result)
    file = endpoint_file(spec or read.request.endpoint)
    folder = environments_folder(environments, file)
    loaded = load_spec(file, read.request.environment, environments=folder)
    preset = measured_preset(read, loaded, where=result)
    path = presets_path(folder)
    done = write_team_preset(path, preset)
    slo = f", SLO {preset.verdict}" if preset.verdict else ""
    speed = (
        "" if preset.output_tok_s is None else f"{preset.output_tok_s:,.0f} tok/s at {preset.concurrency:,} in flight"
    )
    typer.echo(f"{path.as_posix()}: {preset.name} {done}: {speed}{slo}")
