"""`seatrial models`: the architectures that can be planned by a hub id alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial_base.catalog.models import licence_of
from seatrial_base.table import aligned_lines, name_column, number_columns, table_of, text_columns

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture

models = typer.Typer(name="models", help="Models of the catalog, which can be planned by hub id.", no_args_is_help=True)
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]


@models.command("list")
def list_models(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Only models whose id has this text in it.")] = "",
    *,
    wide: Annotated[bool, typer.Option("--wide", help="Show experts, attention and licence, too.")] = False,
    output_format: Format = "text",
) -> None:
    """List every known model with its parameters, precision and context; `--wide` shows what else is known."""
    from seatrial_base.catalog.models import MODELS

    matches = [model for model in MODELS.rows if name.lower() in model.id.lower()]
    if output_format == "json":
        rows = [
            {
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
            for model in matches
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    columns = (
        name_column("model"),
        *number_columns("size", "active"),
        *text_columns("weights"),
        *number_columns("context"),
        *(text_columns("experts", "attention", "licence", "") if wide else ()),
    )
    for line in aligned_lines(table_of(columns, (_cells(model, wide=wide) for model in matches))):
        typer.echo(line)
    if not wide:
        typer.echo("active: parameters for each token. --wide shows experts, attention and licence.", err=True)


def _cells(model: Architecture, *, wide: bool) -> tuple[str, ...]:
    # Model cards count contexts in units of 1,024 tokens; one that is no multiple would be rounded, so it is exact.
    thousands, rest = divmod(model.max_context, 1024)
    first = (
        model.id,
        _billions(model.params_total),
        _billions(model.params_active) if model.experts is not None else "",
        _precision(model),
        (f"{model.max_context:,}" if rest else f"{thousands}k"),
    )
    if not wide:
        return first
    return (
        *first,
        f"{model.experts_per_token:2} of {model.experts:3}" if model.experts is not None else "",
        _attention(model),
        licence_of(model.id) or "unknown",
        "text part only" if model.is_multimodal else "",
    )


def _billions(parameters: int) -> str:
    billions = parameters / 1e9
    return f"{billions:.0f} B" if billions >= 1_000 else f"{billions:.1f} B"  # noqa: PLR2004 (a trillion)


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
