"""`seatrial-lint`: the commands that need no spec, no plan and no account."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Literal

import typer

from seatrial_base.terminal import show_json
from seatrial_lint.cli.convert import convert_command
from seatrial_lint.cli.lint import lint_command
from seatrial_lint.cli.run import FindingsFormat, exit_judged, show_judgement

app = typer.Typer(
    name="seatrial-lint",
    help="Lint and convert the configuration of SageMaker's LLM containers; check templates before they are deployed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def check_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="A CloudFormation template (JSON or YAML), or the folder that `cdk synth` writes.",
            show_default=False,
        ),
    ],
    *,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="Region of templates whose folder names none.")
    ] = None,
    output_format: FindingsFormat = "text",
) -> None:
    """Check templates for what the API refuses at deployment; exit 0 when all is well, 1 on findings, 2 if unreadable.

    Templates of any tool are checked; what only the deployment knows breaks no rule.
    """
    from seatrial_base.printer import Judgement
    from seatrial_lint.cloudformation.template import read_templates
    from seatrial_lint.template_rules.check import check_templates

    groups = read_templates(paths, region)
    findings = [finding for group in groups for finding in check_templates(group.templates, group.region)]
    show_judgement(Judgement(command="check", findings=findings), output_format)
    exit_judged(findings)


def rules_command(
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="[RULE…]", help="Only these, as SEA206.", show_default=False)
    ] = None,
    *,
    sources: Annotated[bool, typer.Option("--sources", help="Show where each holds and where that was read.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """List every rule with its ID and severity, or explain those that are named: where each holds, and its source."""
    from seatrial_base.findings import RULES

    known = {rule.id: rule for rule in RULES.rows}
    named = [name.upper() for name in rules or ()]
    if unknown := [name for name in named if name not in known]:
        near = difflib.get_close_matches(unknown[0], known, n=3)
        raise typer.BadParameter(f"no rule {', '.join(unknown)}; near: {', '.join(near)}", param_hint="RULE")
    shown = [known[name] for name in named] or RULES.rows
    if output_format == "json":
        names = ("id", "title", "severity", "holds_for", "source")
        show_json([{name: getattr(rule, name) for name in names} for rule in shown])
        return
    for rule in shown:
        typer.echo(f"{rule.id}  {rule.title} ({rule.severity})")
        if (sources or named) and rule.holds_for:
            typer.echo(f"    holds for: {rule.holds_for}")
        if (sources or named) and rule.source:
            typer.echo(f"    source: {rule.source}")


for _command in (lint_command, check_command, convert_command, rules_command):
    app.command(_command.__name__.removesuffix("_command"))(_command)
