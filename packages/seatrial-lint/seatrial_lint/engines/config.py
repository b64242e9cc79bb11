"""The engine's configuration in words of no engine, and as flat fields: rendered and parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PositiveInt, StringConstraints, ValidationError

from seatrial_base.catalog.engine_options import ENGINE_OPTIONS
from seatrial_base.frozen_model import FrozenModel
from seatrial_lint.engines.engine_options import Adapter, DraftMethod, EngineOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


Fraction = Annotated[float, Field(gt=0, le=1)]
Text = Annotated[str, StringConstraints(min_length=1)]
OptionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]

Dtype = Literal["auto", "fp32", "fp16", "bf16", "int8"]
Quantization = Literal[
    "fp8",
    "awq",
    "gptq",
    "int8",
    "w8a16",
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
    """

    method: DraftMethod = "draft_model"
    model: Text | None = None
    draft_tokens: PositiveInt | None = None
    draft_tensor_parallel_degree: PositiveInt | None = None


class SmoothQuant(FrozenModel):
    """How SmoothQuant moves the difficulty from activations to weights.

    `alpha`: share that the weights take over.
    """

    alpha: Annotated[float, Field(ge=0, le=1)] | None = None
    per_token: bool | None = None
    per_channel: bool | None = None


class ServingConfig(EngineOptions):
    """One engine's whole configuration; a field that is `None` is left to the engine's default.

    The options that a spec fixes in the same words are those of `EngineOptions`.

    Attributes:
        model_id: Hub id, S3 URI, or the path where the weights are mounted.
        quantization: Of the weights: how the checkpoint is quantized, or what is done at load.
        max_batch_total_tokens: Tokens of all sequences of a batch, prompts and outputs.
        gpu_memory_utilization: Share of the GPU's memory that the engine takes.
        paged_attention: The KV cache is kept in blocks.
        speculative_decoding: Drafted tokens; `None` for none.
        group_query_attention: How KV heads are sharded where there are fewer than cores.
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


Leaf = str | int | float | bool | tuple[Adapter, ...]
Neutral = str | tuple[Adapter, ...]
# The value of a field that is a model of its own, before its members.
PRESENT = ""


def flatten(config: ServingConfig) -> dict[str, Leaf]:
    """Return the fields that are set, in the table's order; a sub-model stands before its members with `PRESENT`."""
    return dict(_flat(config, "", (option.name for option in ENGINE_OPTIONS.rows)))


def _flat(model: FrozenModel, prefix: str, names: Iterable[str]) -> Iterator[tuple[str, Leaf]]:
    for name in names:
        value = getattr(model, name, None)
        if isinstance(value, FrozenModel):
            yield prefix + name, PRESENT
            yield from _flat(value, f"{prefix}{name}.", type(value).model_fields)
        elif value is not None:
            yield prefix + name, value


def neutral_text(value: Leaf) -> str:
    """Write a value without an engine's spelling: booleans in lower case, adapters as `name=path,…`."""
    if isinstance(value, tuple):
        return ",".join(f"{adapter.name}={adapter.path}" for adapter in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def unflatten(
    values: Mapping[str, Neutral], extra: Mapping[str, str] | None = None
) -> tuple[ServingConfig, dict[str, str]]:
    """Build a configuration from flat fields.

    Returns:
        The configuration, and for each field that holds no such value, why; those are left out.
    """
    wrong: dict[str, str] = {}
    while True:
        kept = {name: value for name, value in values.items() if name not in wrong}
        try:
            return ServingConfig.model_validate(_nested(kept) | {"extra": dict(extra or {})}), wrong
        except ValidationError as error:
            for problem in error.errors():
                path = ".".join(part for part in problem["loc"] if isinstance(part, str))
                concerned = [name for name in kept if name == path or path.startswith(f"{name}.")]
                concerned = concerned or [name for name in kept if name.startswith(path.rpartition(".")[0])]
                wrong |= dict.fromkeys(concerned, problem["msg"])


def _nested(values: Mapping[str, Neutral]) -> dict[str, object]:
    nested: dict[str, object] = {}
    for name, value in values.items():
        parent, _, member = name.partition(".")
        if not member:
            nested[name] = {} if value == PRESENT and name not in nested else nested.get(name, value)
        else:
            below = nested.setdefault(parent, {})
            if isinstance(below, dict):
                below[member] = value
    return nested
