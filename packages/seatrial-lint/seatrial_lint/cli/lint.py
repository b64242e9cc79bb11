"""`seatrial lint`: what a container makes of the configuration that users already have."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial_base.errors import SpecError
from seatrial_base.secrets import redacted
from seatrial_lint.cli.run import FindingsFormat, exit_judged, instance_in_catalog, show_judgement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engine_versions import EngineName
    from seatrial_base.findings import Format
    from seatrial_lint.lint.lint import Given, LintReport
    from seatrial_lint.lint.source import ConfigSource, Unreadable

UNREADABLE = 2


def lint_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="A serving.properties, .env, JSON, template, manifest, notebook, Python file or folder; - for stdin.",
            show_default=False,
        ),
    ],
    *,
    engine: Annotated[
        Literal["lmi", "tgi", "vllm", "sglang"] | None, typer.Option(help="Container engine; guessed by default.")
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="Its version (lmi27, 0.36.0, 3.3.6).")
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", metavar="TYPE", help="Instance type, as in ml.g5.12xlarge.")
    ] = None,
    ami_version: Annotated[
        str | None, typer.Option("--ami-version", metavar="AMI", help="InferenceAmiVersion of the variant.")
    ] = None,
    startup_timeout_s: Annotated[
        int | None,
        typer.Option("--startup-timeout-s", min=60, max=3600, help="Startup health check timeout, in seconds."),
    ] = None,
    output_format: FindingsFormat = "text",
    fix: Annotated[bool, typer.Option("--fix", help="Apply fixes that keep the meaning, and show the diff.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Write findings and failures only.")] = False,
    skip_others: Annotated[
        bool, typer.Option("--skip-others", help="Pass over named files of other content, as in a folder.")
    ] = False,
    stdin_name: Annotated[
        str, typer.Option("--stdin-name", metavar="NAME", help="File name of the standard input; it tells the form.")
    ] = "stdin",
) -> None:
    """Lint serving configurations; exit 0 when all is well, 1 on errors or warnings, 2 when a path can't be read.

    Which container reads a file is taken from its image or guessed from its keys, and told. Notes alone exit 0.
    """
    from seatrial_lint.lint.lint import Given, lint_sources

    if version is not None and engine is None:
        raise SpecError.of("SEA108", "--version needs --engine", field="--version", hint="add --engine")
    if version is not None and engine is not None:
        _check_version(engine, version)
    instance_in_catalog(instance_type)
    # A short run that makes hardly a cycle: collecting was a tenth of its time.
    gc.disable()
    given = Given(engine, version, instance_type, ami_version, startup_timeout_s)
    if fix and Path("-") in paths:
        raise SpecError.of("SEA108", "--fix can't change the standard input", field="--fix", hint="name a file")
    sources = list(_read(paths, stdin_name))
    if skip_others:
        sources = [source for source in sources if getattr(source, "is_failure", True)]
    report = lint_sources(sources, given)
    if fix and (changed := _fix(sources, report, given)) is not None:
        report = lint_sources([*_read(paths, stdin_name), *changed], given)
    _show(report, output_format, quiet=quiet)
    if report.unreadable:
        raise typer.Exit(UNREADABLE)
    exit_judged(report.findings)


def _check_version(engine: EngineName, version: str) -> None:
    from seatrial_base.catalog.engine_versions import given_version

    try:
        given_version(engine, version)
    except ValueError as error:
        hint = "write an LMI number (lmi27), a DJL version (0.36.0) or an engine version (3.3.6)"
        raise SpecError.of("SEA107", str(error), field="--version", hint=hint) from error


def _read(paths: list[Path], stdin_name: str) -> Iterator[ConfigSource | Unreadable]:
    from seatrial_lint.lint.read import STDIN, read_path, read_stdin
    from seatrial_lint.lint.source import Unreadable

    for path in dict.fromkeys(paths):
        if str(path) != STDIN:
            yield from read_path(path)
        elif sys.stdin is None:
            # It was closed.
            yield Unreadable(stdin_name, "the standard input is closed", is_failure=True)
        else:
            yield from read_stdin(sys.stdin.buffer, stdin_name)


def _fix(sources: list[ConfigSource | Unreadable], report: LintReport, given: Given) -> list[Unreadable] | None:
    """Fix files and show the difference; return those that can't be written, `None` when there is nothing to fix."""
    from seatrial_lint.lint.lint import mended_diff, mended_text, write_fixed
    from seatrial_lint.lint.source import ConfigSource, Unreadable

    failed: list[Unreadable] = []
    is_changed = False
    # One source a file, with the keys of all its containers.
    files: dict[str, ConfigSource] = {}
    for source in sources:
        if isinstance(source, ConfigSource) and source.is_fixable:
            known = files.get(source.file)
            files[source.file] = replace(known, entries=known.entries + source.entries) if known else source
    for source in files.values():
        text = mended_text(source, report.findings, given)
        if text == source.text:
            continue
        is_changed = True
        try:
            write_fixed(source, text)
        except OSError as error:
            failed.append(Unreadable(source.file, f"can't be written: {error.strerror}", is_failure=True))
        else:
            typer.echo(mended_diff(source, text), nl=False, err=True)
    return failed if is_changed else None


def _show(report: LintReport, output_format: Format, *, quiet: bool) -> None:
    from seatrial_base.printer import Judgement

    for reading in () if quiet else report.readings:
        typer.echo(reading, err=True)
    failures = [redacted(f"{unreadable.file}: SEA101: {unreadable.because}") for unreadable in report.unreadable]
    for failure in failures:
        typer.echo(failure, err=True)
    show_judgement(
        Judgement(command="lint", findings=report.listed, readings=report.readings, failures=failures), output_format
    )
    if not quiet:
        typer.echo(report.summary, err=True)
