"""`seatrial models`: the architectures that can be planned by a hub id alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial_base.catalog.model_names import licence_of

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture

models = typer.Typer(name="models", help="Models of the catalog, which can be planned by hub id.", no_args_is_help=True)
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]


@models.command("list")
def list_models(output_format: Format = "text") -> None:
    """List every known model with its parameters, precision, experts, attention, context and licence."""
    from seatrial_base.catalog.models import all_models

    if output_format == "json":
        typer.echo(json.dumps([_as_json(model) for model in all_models()], indent=2))
        return
    rows = [_columns(model) for model in all_models()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        typer.echo("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def _as_json(model: Architecture) -> dict[str, int | str | bool | None]:
    return {
        "id": model.id,
        "params_total": model.params_total,
        "params_active": model.params_active,
        "max_context": model.max_context,
        "plannable": True,
        "precision": _precision(model),
        "experts": model.experts,
        "experts_per_token": model.experts_per_token,
        "attention": _attention(model),
        "is_multimodal": model.is_multimodal,
        "licence": licence_of(model.id),
    }


def _columns(model: Architecture) -> tuple[str, ...]:
    """Return the columns of one line; numbers have the width of the largest."""
    mixture = model.experts is not None
    return (
        model.id,
        f"{model.params_total / 1e9:7.1f} B parameters",
        f"{model.params_active / 1e9:5.1f} B active" if mixture else "",
        f"{model.experts_per_token:2} of {model.experts:3} experts" if mixture else "",
        _precision(model),
        _attention(model),
        f"{model.max_context:>10,} tokens",
        licence_of(model.id) or "licence unknown",
        "text part only" if model.is_multimodal else "",
    )


def _precision(model: Architecture) -> str:
    return model.checkpoint_quantization or model.dtype


def _attention(model: Architecture) -> str:
    """Return how the layers attend: multi-head, grouped-query, multi-query or latent, and how many do otherwise."""
    grouped = {1: "MQA", model.attention_heads: "MHA"}.get(model.kv_heads, "GQA")
    kinds = ["MLA" if model.is_mla else grouped]
    if model.sliding_window is not None:
        kinds.append(f"sliding {model.sliding_layers or model.layers}/{model.layers}")
    if model.linear_layers:
        kinds.append(f"linear {model.linear_layers}/{model.layers}")
    return ", ".join(kinds)
