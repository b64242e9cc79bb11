"""`seatrial lint`: what a container makes of the configuration that people already have."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.errors import SpecError
from seatrial.secrets import redacted

if TYPE_CHECKING:
    from seatrial.serving.lint.lint import Given, LintReport
    from seatrial.serving.lint.source import ConfigSource, Unreadable

FINDINGS = 1
UNREADABLE = 2


def lint(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="A serving.properties, .env, environment JSON, model definition (DescribeModel), or a folder.",
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
    output: Annotated[Literal["text", "json", "sarif"], typer.Option("--format", help="Output format.")] = "text",
    fix: Annotated[bool, typer.Option("--fix", help="Apply fixes that keep the meaning, and show the diff.")] = False,
) -> None:
    """Lint serving configurations; exit 0 when all is well, 1 on errors or warnings, 2 when a path can't be read.

    Which container reads a file is taken from its image or guessed from its keys, and told. Notes alone exit 0.
    """
    from seatrial.serving.lint.lint import Given
    from seatrial.serving.lint.read import read_path

    if version is not None and engine is None:
        raise SpecError.of("SEA108", "--version needs --engine", field="--version", hint="add --engine")
    _check_instance(instance_type)
    given = Given(engine, version, instance_type, ami_version, startup_timeout_s)
    sources = [source for path in paths for source in read_path(path)]
    report = _report(sources, given)
    if fix:
        _fix(sources, report, given)
        sources = [source for path in paths for source in read_path(path)]
        report = _report(sources, given)
    _tell(report, output)
    failed = any(finding.severity != "note" for finding in report.findings)
    raise typer.Exit(UNREADABLE if report.unreadable else FINDINGS if failed else 0)


def _report(sources: list[ConfigSource | Unreadable], given: Given) -> LintReport:
    from seatrial.serving.lint.lint import lint as apply_rules

    try:
        return apply_rules(sources, given)
    except ValueError as error:
        hint = "write an LMI number (lmi27), a DJL version (0.36.0) or an engine version (3.3.6)"
        raise SpecError.of("SEA107", str(error), field="--version", hint=hint) from error


def _check_instance(name: str | None) -> None:
    from seatrial.catalog import instances

    if name is not None and instances.find(name) is None:
        known = difflib.get_close_matches(name, [one.instance_type for one in instances.every()], n=3)
        hint = f"did you mean {', '.join(known)}?" if known else ""
        raise SpecError.of("SEA110", f"{name} is not in the catalog", field="--instance-type", hint=hint)


def _fix(sources: list[ConfigSource | Unreadable], report: LintReport, given: Given) -> None:
    from seatrial.serving.lint.fix import diff, write_fixed
    from seatrial.serving.lint.mend import mended_text
    from seatrial.serving.lint.source import ConfigSource

    for source in {source.file: source for source in sources if isinstance(source, ConfigSource)}.values():
        text = mended_text(source, report.findings, given)
        if text == source.text:
            continue
        try:
            write_fixed(source, text)
        except OSError as error:
            raise SpecError.of("SEA101", f"can't be written: {error.strerror}", where=source.file) from error
        typer.echo(diff(source, text), nl=False, err=True)


def _tell(report: LintReport, output: str) -> None:
    from seatrial import __version__
    from seatrial.cli.support.terminal import show_json, show_text
    from seatrial.serving.lint.output import as_json, as_sarif, as_text

    for reading in report.readings:
        typer.echo(reading, err=True)
    for unreadable in report.unreadable:
        typer.echo(redacted(f"{unreadable.file}: SEA101: {unreadable.because}"), err=True)
    if output == "json":
        show_json(as_json(report))
    elif output == "sarif":
        show_json(as_sarif(report, __version__))
    else:
        show_text(redacted(as_text(report)))
