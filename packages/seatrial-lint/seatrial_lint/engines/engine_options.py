"""The options of an engine that a spec may fix, in words of no engine; `catalog.engine_options` spells them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial_base.bounds import MOST_IN_FLIGHT, MOST_TOKENS
from seatrial_base.frozen_model import FrozenModel, left_out_or_mapping

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
    pipeline_parallel_degree: Degree | None = Field(None, description="Number of pipeline stages.")
    max_model_len: TokenCount | None = Field(None, description="The same as `workload.max_model_len`.")
    max_num_seqs: Count | None = Field(None, description="Most sequences in one batch.")
    max_num_batched_tokens: TokenCount | None = Field(None, description="Most tokens in one engine iteration.")
    kv_cache_dtype: KvCacheDtype | None = Field(None, description="Type of the KV cache.")
    prefix_caching: bool | None = Field(None, description="Prompts with a common prefix share its KV cache.")
    chunked_prefill: bool | None = Field(
        None, description="Chunked prefill: long prompts are split between decode steps."
    )
    enforce_eager: bool | None = Field(None, description="Eager mode, without CUDA graphs.")
    lora: Lora | None = Field(None, description="LoRA adapters.", json_schema_extra=left_out_or_mapping)
    rope_scaling: RopeScaling | None = Field(
        None, description="RoPE scaling beyond the trained length.", json_schema_extra=left_out_or_mapping
    )
    dynamic_batching: DynamicBatching | None = Field(
        None, description="Dynamic batching of whole requests.", json_schema_extra=left_out_or_mapping
    )
    output_format: OutputFormat | None = Field(None, description="Format of the response, if the engine has several.")
    tool_call_parser: ParserName | None = Field(
        None, description="Parser of tool calls: a name of the engine's, or `auto`, that of the model family."
    )
    reasoning_parser: ParserName | None = Field(
        None, description="Parser of the reasoning: a name of the engine's, or `auto`, that of the model family."
    )
    chat_template: TemplatePath | None = Field(
        None, description="Path of a chat template in the container; default: that of the tokenizer."
    )
    max_queued_requests: Count | None = Field(None, description="Most requests in the queue; further ones are refused.")
