"""`seatrial rules`: what each ID in a message means."""

from __future__ import annotations

from typing import Annotated

import typer


def rules_command(
    *,
    sources: Annotated[bool, typer.Option("--sources", help="Show where each holds and where that was read.")] = False,
) -> None:
    """List every rule with its ID and severity."""
    from seatrial_base.findings import RULES

    for rule in RULES.rows:
        typer.echo(f"{rule.id}  {rule.title} ({rule.severity})")
        if sources and rule.holds_for:
            typer.echo(f"    holds for: {rule.holds_for}")
        if sources and rule.source:
            typer.echo(f"    source: {rule.source}")
