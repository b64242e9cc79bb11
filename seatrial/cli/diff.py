"""`seatrial diff`: what an update does to an endpoint that serves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder

if TYPE_CHECKING:
    from seatrial.changes.consequences import Consequences
    from seatrial.changes.deployed import Identity, Templates
    from seatrial.changes.synthesis import StackSource
    from seatrial.changes.template import StackTemplate

CHANGES = 1


def diff(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="PATH", help="Compare with this template, or a folder such as cdk.out."),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", metavar="REF", help="Compare with this git revision, synthesized.")
    ] = None,
    *,
    output_format: Annotated[
        Literal["text", "markdown", "json"], typer.Option("--format", help="Output format.")
    ] = "text",
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when anything changes.")] = False,
) -> None:
    """Tell what an update does: per resource, what users notice, and what it needs and costs while it lasts.

    It compares what the app synthesizes now with the deployed stack. A change that would fail, or that is dangerous
    under the endpoint's name, is refused with exit code 1.
    """
    from seatrial.changes.consequences import consequences
    from seatrial.changes.effect import PlannedSize
    from seatrial.changes.synthesis import StackSource, synthesize
    from seatrial.changes.template_diff import diff_templates
    from seatrial.cli.support.terminal import end_when_interrupted, scratch_folder
    from seatrial.deployment.load import load_deployment

    if against is not None and base is not None:
        raise typer.BadParameter("can't be combined with --base", param_hint="'--against'")
    end_when_interrupted()
    folder = environments_folder(environments, spec)
    deployment = load_deployment(spec, folder, environment)
    source = StackSource.of(spec, folder, deployment.environment, deployment.stack_name)
    with scratch_folder("seatrial-diff-") as scratch:
        old = _old(source, against, base, scratch)
        new = synthesize(source, scratch / "new")
    found = consequences(diff_templates(old, new), PlannedSize.of(deployment.plan))
    _tell(found, source.stack_name, _name(against, base), output_format)
    _refuse(found)
    if check and not found.diff.is_empty:
        raise typer.Exit(CHANGES)


def _old(source: StackSource, against: Path | None, base: str | None, scratch: Path) -> StackTemplate:
    from seatrial.changes.synthesis import given_template, synthesize_revision

    if against is not None:
        return given_template(source, against)
    if base is not None:
        return synthesize_revision(source, base, scratch / "base")
    return _deployed(source)


def _deployed(source: StackSource) -> StackTemplate:
    import boto3

    from seatrial.changes.deployed import check_account, deployed_template
    from seatrial.deployment.aws_failures import aws_failures

    region = source.environment.region
    with aws_failures(source.stack_name):
        cloudformation = boto3.client("cloudformation", region_name=region)
        identity = boto3.client("sts", region_name=region)
    check_account(source.environment, cast("Identity", identity))
    return deployed_template(source, cast("Templates", cloudformation))


def _name(against: Path | None, base: str | None) -> str:
    if against is not None:
        return against.as_posix()
    return f"revision {base}" if base is not None else "the deployed stack"


def _tell(found: Consequences, stack: str, old: str, output_format: str) -> None:
    from seatrial.changes.render import as_document, as_markdown, as_text
    from seatrial.cli.support.terminal import show_json_text, show_text
    from seatrial.secrets import redacted

    title = f"{stack}: {old} → this checkout"
    if output_format == "json":
        import json

        document = as_document(found, stack=stack, old=old, new="this checkout")
        show_json_text(redacted(json.dumps(document, indent=2, ensure_ascii=False)))
    else:
        write = as_markdown if output_format == "markdown" else as_text
        show_text(redacted(write(found, title=title)))


def _refuse(found: Consequences) -> None:
    from seatrial.errors import SeatrialError

    if found.refused:
        raise SeatrialError(found.refused)
