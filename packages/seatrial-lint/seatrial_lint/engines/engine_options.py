"""The options of an engine that a spec may fix, in words of no engine; `catalog.engine_options` spells them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial_base.bounds import MOST_IN_FLIGHT, MOST_TOKENS
from seatrial_base.frozen_model import FrozenModel, left_out_or_mapping, model_field

Backend = Literal["auto", "vllm", "vllm-rolling", "lmi-dist", "trtllm", "neuronx", "deepspeed", "python"]
KvCacheDtype = Literal["auto", "fp8_e4m3", "fp8_e5m2"]
OutputFormat = Literal["json", "jsonlines", "sse", "json_chat", "jsonlines_chat", "sse_chat"]
DraftMethod = Literal["draft_model", "ngram", "eagle", "eagle3", "medusa"]
Factor = Annotated[float, Field(gt=0, le=10**12)]
Count = Annotated[int, Field(gt=0, le=MOST_IN_FLIGHT)]
TokenCount = Annotated[int, Field(gt=0, le=MOST_TOKENS)]
Degree = Annotated[int, Field(gt=0, le=1024)]
OptionValue = str | int | float | bool
ParserName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
TemplatePath = Annotated[str, StringConstraints(pattern=r"^/?[A-Za-z0-9_.][A-Za-z0-9_./-]*$")]
AdapterText = Annotated[str, StringConstraints(pattern=r"^[^=@,\s]+$")]


class Adapter(FrozenModel):
    """One LoRA adapter that is loaded at start."""

    name: AdapterText = Field(description="Adapter name in requests.")
    path: AdapterText = Field(description="Hub id or path of the adapter.")


class Lora(FrozenModel):
    """LoRA adapters beside the base model."""

    max_adapters: Count | None = Field(None, description="Most adapters in one batch.")
    max_rank: Count | None = Field(None, description="Highest adapter rank.")
    max_cpu_adapters: Count | None = Field(None, description="Most adapters in host memory.")
    fully_sharded: bool | None = Field(None, description="The adapters are sharded as well.")
    adapters: Annotated[tuple[Adapter, ...], Field(min_length=1)] | None = Field(
        None, description="Adapters loaded at start."
    )


class RopeScaling(FrozenModel):
    """Positions stretched beyond the length that the model was trained on."""

    kind: Literal["linear", "dynamic", "yarn", "llama3", "longrope"] | None = Field(
        None, description="The method, as the model's `config.json` names it."
    )
    factor: Factor | None = Field(None, description="Extended length divided by trained length.")
    original_max_position_embeddings: TokenCount | None = Field(None, description="Trained length, in tokens.")
    theta: Factor | None = Field(None, description="Base of the rotation.")


class DynamicBatching(FrozenModel):
    """Requests that wait for each other and run to the end together."""

    batch_size: Count = Field(description="Most requests in one batch.")
    max_delay_ms: Annotated[int, Field(gt=0, le=3_600_000)] | None = Field(
        None, description="Longest wait for a full batch."
    )


class EngineOptions(FrozenModel):
    """What a spec fixes and an engine reads in the same words; `None` leaves it to the planner or the engine."""

    tensor_parallel_degree: Degree | None = Field(None, description="GPUs that one copy is sharded over.")
    pipeline_parallel_degree: Degree | None = model_field(None, "Number of pipeline stages.", since="0.1")
    max_model_len: TokenCount | None = Field(None, description="The same as `workload.max_model_len`.")
    max_num_seqs: Count | None = Field(None, description="Most sequences in one batch.")
    max_num_batched_tokens: TokenCount | None = Field(None, description="Most tokens in one engine iteration.")
    kv_cache_dtype: KvCacheDtype | None = model_field(None, "Type of the KV cache.", since="0.1", neutral="auto")
    prefix_caching: bool | None = model_field(None, "Prompts with a common prefix share its KV cache.", since="0.1")
    chunked_prefill: bool | None = model_field(
        None, "Chunked prefill: long prompts are split between decode steps.", since="0.1"
    )
    enforce_eager: bool | None = model_field(None, "Eager mode, without CUDA graphs.", since="0.1")
    lora: Lora | None = model_field(None, "LoRA adapters.", json_schema_extra=left_out_or_mapping, since="0.1")
    rope_scaling: RopeScaling | None = model_field(
        None, "RoPE scaling beyond the trained length.", json_schema_extra=left_out_or_mapping, since="0.1"
    )
    dynamic_batching: DynamicBatching | None = model_field(
        None, "Dynamic batching of whole requests.", json_schema_extra=left_out_or_mapping, since="0.1"
    )
    output_format: OutputFormat | None = model_field(
        None, "Format of the response, if the engine has several.", since="0.1"
    )
    tool_call_parser: ParserName | None = model_field(
        None,
        "Parser of tool calls: a name of the engine's, or `auto`, that of the model family.",
        since="0.2",
        neutral="auto",
    )
    reasoning_parser: ParserName | None = model_field(
        None,
        "Parser of the reasoning: a name of the engine's, or `auto`, that of the model family.",
        since="0.2",
        neutral="auto",
    )
    chat_template: TemplatePath | None = model_field(
        None, "Path of a chat template in the container; default: that of the tokenizer.", since="0.2"
    )
    max_queued_requests: Count | None = Field(None, description="Most requests in the queue; further ones are refused.")
    max_queued_tokens: TokenCount | None = model_field(
        None, "Most prompt tokens of requests without a first token; further requests are refused.", since="0.2"
    )
