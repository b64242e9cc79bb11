"""`seatrial check`: what SageMaker would refuse only at deployment, in CloudFormation templates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

FINDINGS = 1


def check(
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
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Check templates for what the API refuses at deployment; exit 0 when all is well, 1 on findings, 2 if unreadable.

    Templates of any tool are checked; what only the deployment knows breaks no rule.
    """
    from seatrial_base.terminal import show_json, show_text
    from seatrial_lint.template_rules.check import check_templates
    from seatrial_lint.template_rules.output import findings_rows, findings_text
    from seatrial_lint.template_rules.read import read_templates

    groups = read_templates(paths, region)
    findings = [finding for group in groups for finding in check_templates(group.templates, group.region)]
    if output == "json":
        show_json(findings_rows(findings))
    else:
        show_text(findings_text(findings))
    raise typer.Exit(FINDINGS if findings else 0)
