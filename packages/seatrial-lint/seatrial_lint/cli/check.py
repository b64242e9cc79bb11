"""`seatrial check`: what SageMaker would refuse only at deployment, in CloudFormation templates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial_lint.cli.judging import FindingsFormat, exit_judged, show_judgement


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
    from seatrial_lint.cloudformation.read import read_templates
    from seatrial_lint.template_rules.check import check_templates

    groups = read_templates(paths, region)
    findings = [finding for group in groups for finding in check_templates(group.templates, group.region)]
    show_judgement(Judgement(command="check", findings=findings), output_format)
    exit_judged(findings)
