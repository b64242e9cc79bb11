"""`seatrial convert`: one engine's configuration as another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial_base.errors import SpecError
from seatrial_lint.cli.run import instance_in_catalog

if TYPE_CHECKING:
    from seatrial_lint.convert import Converted
    from seatrial_lint.lint.source import ConfigSource

SOMETHING_LOST = 1


def convert_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The configuration to convert.", show_default=False)],
    to: Annotated[
        str, typer.Option("--to", metavar="ENGINE", help="lmi, tgi, vllm, sglang, or a dialect such as lmi-vllm.")
    ],
    *,
    engine: Annotated[
        Literal["lmi", "tgi", "vllm", "sglang"] | None,
        typer.Option("--from", help="Source container; guessed by default."),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--from-version", metavar="VERSION", help="Version of the source; default: the newest."),
    ] = None,
    to_version: Annotated[
        str | None, typer.Option("--to-version", metavar="VERSION", help="Version of the target; default: the newest.")
    ] = None,
    form: Annotated[
        Literal["properties", "env"] | None,
        typer.Option(help="Form for LMI; default: that of FILE. Other containers read the environment only."),
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", metavar="TYPE", help="Tells how many GPUs LMI's default is.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this new file.")
    ] = None,
) -> None:
    """Convert a serving configuration; exit 0 when all is kept, 1 when something is lost, 2 when it can't be read.

    What can't be kept is listed with its line and why; secrets are never copied.
    """
    from seatrial_lint.convert import convert_config, default_dialect, origin_text

    source = _source(file)
    instance = instance_in_catalog(instance_type or source.fact("instance_type") or None)
    chosen = form or ("properties" if to.startswith("lmi") and source.kind == "serving.properties" else "env")
    try:
        dialect = default_dialect(to, to_version)
        converted = convert_config(
            source, dialect, to_version, engine=engine, version=version, form=chosen, instance=instance
        )
    except ValueError as error:
        raise SpecError.of("SEA107", str(error), where=file.as_posix(), hint="give --from and its version") from error
    _write(converted, source, output)
    kept, lost = len(converted.kept), len(converted.lost)
    typer.echo(f"{origin_text(converted)} -> {converted.called}: {kept} kept, {lost} lost", err=True)
    for one in converted.lost:
        typer.echo(f"lost: {one}", err=True)
    reasons = {one.because for one in converted.lost}
    for note in (note for note in converted.rendered.notes if note.message not in reasons):
        typer.echo(f"note: {note}", err=True)
    raise typer.Exit(SOMETHING_LOST if converted.lost else 0)


def _source(file: Path) -> ConfigSource:
    from seatrial_lint.lint.read import read_file, with_handler
    from seatrial_lint.lint.source import ConfigSource, Unreadable

    sources = [with_handler(one) for one in read_file(file)]
    configurations = [
        source for source in sources if isinstance(source, ConfigSource) and source.kind != "endpoint config"
    ]
    if len(configurations) == 1:
        return configurations[0]
    unreadable = next((source for source in sources if isinstance(source, Unreadable)), None)
    because = unreadable.because if unreadable else f"contains {len(configurations)} containers; give one at a time"
    raise SpecError.of("SEA101", because, where=file.as_posix())


def _write(converted: Converted, source: ConfigSource, output: Path | None) -> None:
    from seatrial_base.files import write_new
    from seatrial_base.terminal import show_text
    from seatrial_lint.engines.properties import write_env

    rendered = converted.rendered
    as_json = source.is_json or (output is not None and output.suffix == ".json")
    env = json.dumps(rendered.env, indent=2, ensure_ascii=False) + "\n" if as_json else write_env(rendered.env)
    text = "".join(rendered.files.values()) or env
    if output is None:
        show_text(text)
        return
    try:
        write_new(output, text)
    except OSError as error:
        raise SpecError.of("SEA101", f"can't be written: {error.strerror}", where=output.as_posix()) from error
