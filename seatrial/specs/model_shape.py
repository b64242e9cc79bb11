"""The architecture of a model that the catalog lacks, inline in the spec: a few numbers of its `config.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seatrial_base.frozen_model import FrozenModel

# Bounds against slips of the hand: far beyond any published model.
Layers = Annotated[int, Field(ge=1, le=1000)]
Width = Annotated[int, Field(ge=1, le=262_144)]
Heads = Annotated[int, Field(ge=1, le=4096)]
MOST_HEAD_DIM = 1024
HeadDim = Annotated[int, Field(ge=2, le=MOST_HEAD_DIM, multiple_of=2)]
Vocabulary = Annotated[int, Field(ge=1, le=10_000_000)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
Parameters = Annotated[int, Field(ge=1_000_000, le=100_000_000_000_000)]
Experts = Annotated[int, Field(ge=2, le=10_000)]
ExpertsPerToken = Annotated[int, Field(ge=1, le=10_000)]


class ModelShape(FrozenModel):
    """The architecture numbers of a model that the catalog lacks, as its `config.json` has them."""

    layers: Layers = Field(description="Transformer layers.")
    hidden_size: Width = Field(description="Width of the residual stream.")
    attention_heads: Heads = Field(description="Query heads.")
    kv_heads: Heads | None = Field(None, description="Key and value heads; left out, as many as attention heads.")
    head_dim: HeadDim | None = Field(
        None, description="Width of one head, an even number; left out, hidden_size / attention_heads."
    )
    vocab: Vocabulary = Field(description="Vocabulary size.")
    max_context: Tokens = Field(description="Longest sequence (prompt and output), in tokens.")
    params_total: Parameters = Field(description="Number of parameters, embeddings included.")
    params_active: Parameters | None = Field(
        None, description="Parameters active per token. Default: all; fewer only with experts."
    )
    experts: Experts | None = Field(None, description="Experts per layer; left out for a dense model.")
    experts_per_token: ExpertsPerToken | None = Field(None, description="Experts active per token.")
    dtype: Literal["fp16", "bf16"] = Field("bf16", description="Type of the published weights.")
    sliding_window: Tokens | None = Field(
        None, description="Attention window of a sliding layer, in tokens. Default: full attention."
    )
    sliding_layers: Layers | None = Field(None, description="Number of layers with the window. Default: all.")
    tied_embeddings: bool = Field(default=False, description="Input and output embeddings are tied.")
    parallel_attention: bool = Field(
        default=False, description="Attention and MLP run in parallel, with one all-reduce per layer (Falcon)."
    )
