"""Presets: a recipe for a model on an instance type, with what it is predicted, published or measured to do.

A preset is where a new spec may start. Plans and locks never read one.
"""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from seatrial_base.catalog.rows import CatalogTable
from seatrial_base.frozen_model import FrozenModel

Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Amount = Annotated[float, Field(ge=0, le=1e9)]
MEASURED = "measured here"


class Preset(FrozenModel):
    """One recipe on one instance type."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._+-]*$", max_length=200)] = Field(
        description="Name of the preset: model, instance type and optimizations."
    )
    model: Text = Field(description="Hub id, JumpStart id or S3 prefix of the model, as a spec names it.")
    instance_type: Text = Field(description="Instance type.")
    tensor_parallel_degree: Count = Field(description="Accelerators that one copy is sharded over.")
    recipe: Text = Field(description="The recipe as text: `none`, `fp8+kv_fp8`.")
    input_tokens: Count = Field(description="Prompt length of the workload.")
    output_tokens: Count = Field(description="Generated length of the workload.")
    concurrency: Count = Field(description="Requests in flight on the endpoint.")
    output_tok_s: Amount | None = Field(None, description="Output tokens per second at this load.")
    tpot_ms: Amount | None = Field(None, description="Time per output token after the first, mean or median.")
    usd_per_million_output_tokens: Amount | None = Field(None, description="Price of a million output tokens there.")
    band: Amount | None = Field(None, description="How far a predicted throughput may be off, as a share of it.")
    provenance: Literal["predicted", "published", "measured here"] = Field(description="Where the numbers come from.")
    source: Text = Field(description="The planner's release, the publication, or the trial.")
    endpoint: str = Field("", max_length=200, description="Endpoint that was measured.")
    knee_concurrency_per_copy: Amount | None = Field(None, description="Measured knee.")
    verdict: Literal["", "pass", "fail", "inconclusive"] = Field("", description="Whether the trial's SLO held.")


# Sorted by name.
PRESETS: Final = CatalogTable(Preset, "presets.json")


def presets_document(rows: tuple[Preset, ...]) -> str:
    """Return the catalog's file: a preset a line, sorted by name; what is unknown is left out."""
    kept = sorted(rows, key=lambda row: row.name)
    lines = (json.dumps(row.model_dump(mode="json", exclude_defaults=True)) for row in kept)
    return '{"rows": [\n' + ",\n".join(lines) + "\n]}\n"


def preset_name(model: str, instance_type: str, optimizations: tuple[str, ...]) -> str:
    """Return the name of a preset: `qwen3-32b.g5.12xlarge.eagle3`."""
    short = model.rstrip("/").rpartition("/")[2].lower()
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in short)
    return f"{plain.lstrip('._-') or 'model'}.{instance_type.removeprefix('ml.')}.{'+'.join(optimizations) or 'none'}"
