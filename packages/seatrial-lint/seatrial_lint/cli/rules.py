"""`seatrial rules`: what each ID in a message means."""

from __future__ import annotations

from typing import Annotated

import typer


def rules(
    *,
    sources: Annotated[bool, typer.Option("--sources", help="Show where each holds and where that was read.")] = False,
) -> None:
    """List every rule with its ID; those of `seatrial lint` and `seatrial check` with their severity."""
    from seatrial_base.rules import RULES
    from seatrial_lint.lint.rules import LINT_RULES
    from seatrial_lint.template_rules.rule_table import HOSTING_RULES

    severities = {rule: one.severity for table in (LINT_RULES, HOSTING_RULES) for rule, one in table.items()}
    for rule, title in RULES.items():
        severity = f" ({severities[rule]})" if rule in severities else ""
        typer.echo(f"{rule}  {title}{severity}")
        if sources and rule in LINT_RULES:
            typer.echo(f"    holds for: {LINT_RULES[rule].holds_for}")
        if sources and (read := LINT_RULES.get(rule) or HOSTING_RULES.get(rule)):
            typer.echo(f"    source: {read.source}")
