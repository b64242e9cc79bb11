"""`seatrial rules`: what each ID in a message means."""

from __future__ import annotations

import typer


def rules() -> None:
    """List every rule with its ID."""
    from seatrial.spec.rules import RULES

    for rule, title in RULES.items():
        typer.echo(f"{rule}  {title}")
