"""`seatrial models`: the architectures that can be planned by a hub id alone."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

models = typer.Typer(help="Models of the catalog, which can be planned by hub id.", no_args_is_help=True)
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]


@models.command("list")
def list_models(output_format: Format = "text") -> None:
    """List every known model with its parameters, context and what forbids to plan it."""
    from seatrial.catalog.models import every

    if output_format == "json":
        listed = [
            {
                "id": model.id,
                "params_total": model.params_total,
                "params_active": model.params_active,
                "max_context": model.max_context,
                "plannable": True,
            }
            for model in every()
        ]
        typer.echo(json.dumps(listed, indent=2))
        return
    width = max(len(model.id) for model in every())
    for model in every():
        forbidden = "  not planned: multi-head latent attention" if model.is_mla else ""
        typer.echo(
            f"{model.id:<{width}}  {model.params_total / 1e9:7.1f} B parameters  "
            f"{model.max_context:>9,} tokens{forbidden}".rstrip()
        )
