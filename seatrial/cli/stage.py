"""`seatrial stage`: copy a model's files to S3, so that an endpoint needs no hub."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.terminal import console, end_when_interrupted, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.stage.source import ModelFiles


def stage_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Hub id or folder.", show_default=False)],
    to: Annotated[
        str,
        typer.Option("--to", metavar="S3_PREFIX", help="Destination, as in s3://bucket/model/.", show_default=False),
    ],
    *,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="COMMIT", help="Commit of the hub repository; pin it.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="GLOB", help="Only these files. Default: all.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Not these, as in 'original/*'.")
    ] = None,
    kms_key: Annotated[
        str | None, typer.Option("--kms-key", metavar="KEY", help="KMS key. Default: the bucket's encryption.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite another model or revision there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be copied.")] = False,
) -> None:
    """Copy a model to S3 at one revision: resumable, checked, with a manifest that is written last.

    Run it again after an interruption: it goes on from there. The manifest is missing while a file is.
    """
    import boto3
    from botocore.config import Config

    from seatrial.account.reader import aws_failures
    from seatrial.stage.destination import MANIFEST, WORKERS, Destination, split_uri
    from seatrial.stage.source import held_twice, select
    from seatrial.stage.staging import copy_model, survey
    from seatrial_base.units import gib

    end_when_interrupted()
    stop = threading.Event()
    bucket, prefix = split_uri(to)
    config = Config(max_pool_connections=WORKERS, retries={"mode": "standard", "max_attempts": 10})
    with aws_failures(to):
        destination = Destination(boto3.client("s3", config=config), bucket, prefix, kms_key)
    with scratch_folder("seatrial-stage-") as scratch:
        source = select(_source(model, revision, scratch), include=include or (), exclude=exclude or ())

        if patterns := held_twice(source):
            options = " ".join(f"--exclude '{pattern}'" for pattern in patterns)
            typer.echo(f"the weights are here as safetensors and in another format; exclude one: {options}", err=True)
        with _progress("looking", len(source.files), unit="files"):
            copied_files = survey(source, destination, stop)
        if dry_run:
            for look in copied_files.looks:
                typer.echo(
                    f"{'copy' if look.there is None else 'there'}  {look.file.size_bytes:>16,}  {look.file.name}"
                )
            size_bytes = sum(look.file.size_bytes for look in copied_files.missing)
            typer.echo(
                f"{len(copied_files.missing)} of {len(copied_files.looks)} files would be copied, {size_bytes:,} bytes"
            )
            return
        with _progress("staging", source.size_bytes, unit="bytes") as on_bytes:
            manifest = copy_model(source, destination, copied_files, replace=replace, stop=stop, on_bytes=on_bytes)

    copied = len(copied_files.missing)
    there = len(source.files) - copied
    typer.echo(
        f"{len(source.files)} files, {gib(source.size_bytes)}: {copied} copied, {there} there already, all checked"
    )
    typer.echo(f"manifest: {destination.uri}{MANIFEST}")
    listed = {file.name for file in manifest.files}
    if others := [name for name in copied_files.others if name not in listed]:
        shown = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")  # noqa: PLR2004 (five show the kind)
        typer.echo(f"other files in this prefix, mounted with the model: {shown}", err=True)
    typer.echo(f"in the spec:\n  model:\n    s3_uri: {destination.uri}")
    if source.revision is not None:
        typer.echo(f"    architecture: {model}")
    elif (Path(model) / "config.json").is_file():
        typer.echo(f"    config_file: {(Path(model) / 'config.json').as_posix()}  # relative to the spec")


def _source(model: str, revision: str | None, scratch: Path) -> ModelFiles:
    from seatrial.stage.source import is_commit, read_folder, read_hub

    if Path(model).is_dir():
        if revision is not None:
            raise SpecError.of("SEA108", f"a revision belongs to a hub id, and {model} is a folder", field="--revision")
        return read_folder(Path(model))
    if model.startswith((".", "/", "~")):
        raise SpecError.of("SEA360", "no such folder", where=model)
    source = read_hub(model, revision, scratch)
    if revision is None or not is_commit(revision):
        message = f"{revision or 'the main branch'} can move; copied is commit {source.revision}"
        hint = f"pin it: --revision {source.revision}"
        typer.echo(Finding("SEA365", Place(field="--revision"), message, hint, severity="warning"), err=True)
    return source


@contextmanager
def _progress(what: str, total: int, *, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal, and nothing elsewhere; yield the function that moves it."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    shown_on = console(stderr=True)
    shown = columns if unit == "bytes" else ()
    with Progress(
        TextColumn("{task.description}"), BarColumn(), *shown, console=shown_on, disable=not shown_on.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total if unit == "bytes" else None)
        yield lambda count: bar.advance(task, count)
