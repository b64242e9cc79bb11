"""What the engine shall do, in words of no engine: a renderer spells it, a parser reads it back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, StringConstraints

from seatrial_base.frozen_model import FrozenModel
from seatrial_lint.engines.engine_options import DraftMethod, EngineOptions

Fraction = Annotated[float, Field(gt=0, le=1)]
Text = Annotated[str, StringConstraints(min_length=1)]
OptionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]

Dtype = Literal["auto", "fp32", "fp16", "bf16", "int8"]
Quantization = Literal[
    "fp8",
    "awq",
    "gptq",
    "int8",
    "int4",
    "mxfp4",
    "nvfp4",
    "marlin",
    "squeezellm",
    "compressed-tensors",
    "eetq",
    "exl2",
    "bitsandbytes4",
    "bitsandbytes8",
    "smoothquant",
    "static_int8",
    "dynamic_int8",
]
QueryGroups = Literal["shard-over-heads", "shard-over-batch", "replicated-heads", "all-gather-heads"]


class SpeculativeDecoding(FrozenModel):
    """Tokens are drafted cheaply and checked by the model in one step.

    Attributes:
        method: Who drafts: a smaller model, the prompt's own n-grams, heads trained for it.
        model: Hub id or path of the draft model or heads; `None` where the method needs none.
        draft_tokens: Tokens drafted before a check.
        draft_tensor_parallel_degree: GPUs that the draft model is sharded over.
    """

    method: DraftMethod = "draft_model"
    model: Text | None = None
    draft_tokens: PositiveInt | None = None
    draft_tensor_parallel_degree: PositiveInt | None = None


class SmoothQuant(FrozenModel):
    """How SmoothQuant moves the difficulty from activations to weights.

    Attributes:
        alpha: Share that the weights take over.
        per_token: One scale per token.
        per_channel: One scale per channel.
    """

    alpha: Annotated[float, Field(ge=0, le=1)] | None = None
    per_token: bool | None = None
    per_channel: bool | None = None


class ServingConfig(EngineOptions):
    """One engine's whole configuration; a field that is `None` is left to the engine's default.

    The options that a spec fixes in the same words are those of `EngineOptions`.

    Attributes:
        model_id: Hub id, S3 URI, or the path where the weights are mounted.
        revision: Commit of the hub repository.
        trust_remote_code: Run the Python code of the model's repository.
        dtype: Type of weights and activations.
        quantization: Of the weights: how the checkpoint is quantized, or what is done at load.
        max_input_len: Longest prompt, in tokens.
        max_output_len: Longest output, in tokens.
        max_batch_total_tokens: Tokens of all sequences of a batch, prompts and outputs.
        gpu_memory_utilization: Share of the GPU's memory that the engine takes.
        paged_attention: The KV cache is kept in blocks.
        speculative_decoding: Drafted tokens; `None` for none.
        group_query_attention: How KV heads are sharded where there are fewer than cores.
        smoothquant: Details of SmoothQuant; `None` without.
        continuous_batching: Sequences join and leave the batch at every step; `True` where the container may choose
            its batcher, `None` where the dialect names it.
        streaming: Tokens are sent as they come, whatever the request says.
        model_loading_timeout_s: Loading that takes longer is a failure.
        predict_timeout_s: A request that takes longer is a failure.
        extra: Options passed to the engine as they are, by the engine's own name without prefix.
    """

    model_id: Text | None = None
    revision: Text | None = None
    trust_remote_code: bool | None = None
    dtype: Dtype | None = None
    quantization: Quantization | None = None
    max_input_len: PositiveInt | None = None
    max_output_len: PositiveInt | None = None
    max_batch_total_tokens: PositiveInt | None = None
    gpu_memory_utilization: Fraction | None = None
    paged_attention: bool | None = None
    speculative_decoding: SpeculativeDecoding | None = None
    group_query_attention: QueryGroups | None = None
    smoothquant: SmoothQuant | None = None
    continuous_batching: bool | None = None
    streaming: bool | None = None
    model_loading_timeout_s: PositiveInt | None = None
    predict_timeout_s: PositiveInt | None = None
    extra: dict[OptionName, str] = Field(default_factory=dict)
