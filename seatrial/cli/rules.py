"""`seatrial rules`: what each ID in a message means."""

from __future__ import annotations

import typer


def rules() -> None:
    """List every rule with its ID; those of `seatrial lint` with their severity."""
    from seatrial.serving.lint.rules import LINT_RULES
    from seatrial.spec.rules import RULES

    for rule, title in RULES.items():
        severity = f" ({LINT_RULES[rule].severity})" if rule in LINT_RULES else ""
        typer.echo(f"{rule}  {title}{severity}")
