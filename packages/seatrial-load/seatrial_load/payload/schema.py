"""Facts of each schema: its keys, and what its answers leave out.

Sources: deepjavalibrary/djl-serving `serving/docs/lmi/user_guides/lmi_input_output_schema.md` (LMI rolling batch) and
`engines/python/setup/djl_python/lmi_vllm/request_response_utils.py` (LMI async); huggingface/text-generation-inference
`router/src/lib.rs` and `router/src/validation.rs`; vLLM `vllm/entrypoints/openai/protocol.py`. Read 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


class Schema(StrEnum):
    """The spelling of a request, which decides that of its answer."""

    LMI_ROLLING = "lmi_rolling"
    LMI_ASYNC = "lmi_async"
    TGI = "tgi"
    OPENAI_COMPLETIONS = "openai_completions"
    OPENAI_CHAT = "openai_chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFacts:
    """The facts of a schema.

    Attributes:
        body_key: The key of the prompt, by which a container knows the schema.
        ignore_eos_key: The key that makes an engine generate past the end of the text; None where there is none.
        default_output_tokens: The limit of a request that names none; None where it depends on engine and version.
        whole_reason: `finish_reason` of an answer that isn't streamed. `told`: always the reason.
            `stop_sequence_only`: the stop sequence or token that was met, else null, be it for length or for the end
            of the text.
        stream_count: The closing line's count of generated tokens: `exact`, or `one_too_many`.
        needs_details: Whether reason, counts and log-probabilities come only with `parameters.details`.
    """

    body_key: Literal["inputs", "prompt", "messages"]
    max_tokens_key: str
    stop_key: str
    ignore_eos_key: str | None
    default_output_tokens: int | None
    whole_reason: Literal["told", "stop_sequence_only"]
    stream_count: Literal["exact", "one_too_many"]
    needs_details: bool
    log_probabilities: str


FACTS: Mapping[Schema, SchemaFacts] = MappingProxyType(
    {
        Schema.LMI_ROLLING: SchemaFacts(
            body_key="inputs",
            max_tokens_key="max_new_tokens",
            stop_key="stop_sequences",
            ignore_eos_key="ignore_eos_token",
            default_output_tokens=30,
            whole_reason="told",
            stream_count="exact",
            needs_details=True,
            log_probabilities="details",
        ),
        Schema.LMI_ASYNC: SchemaFacts(
            body_key="inputs",
            max_tokens_key="max_new_tokens",
            stop_key="stop",
            ignore_eos_key="ignore_eos_token",
            default_output_tokens=30,
            whole_reason="stop_sequence_only",
            stream_count="one_too_many",
            needs_details=True,
            log_probabilities="details",
        ),
        Schema.TGI: SchemaFacts(
            body_key="inputs",
            max_tokens_key="max_new_tokens",
            stop_key="stop",
            ignore_eos_key=None,
            default_output_tokens=None,
            whole_reason="told",
            stream_count="exact",
            needs_details=True,
            log_probabilities="details",
        ),
        Schema.OPENAI_COMPLETIONS: SchemaFacts(
            body_key="prompt",
            max_tokens_key="max_tokens",
            stop_key="stop",
            ignore_eos_key="ignore_eos",
            default_output_tokens=None,
            whole_reason="told",
            stream_count="exact",
            needs_details=False,
            log_probabilities="logprobs=1",
        ),
        Schema.OPENAI_CHAT: SchemaFacts(
            body_key="messages",
            max_tokens_key="max_tokens",
            stop_key="stop",
            ignore_eos_key="ignore_eos",
            default_output_tokens=None,
            whole_reason="told",
            stream_count="exact",
            needs_details=False,
            log_probabilities="logprobs=true",
        ),
    }
)
