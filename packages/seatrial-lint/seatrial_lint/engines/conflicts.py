"""Contradictions in a neutral configuration, or in one engine and version of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engine_options import SpellingTable
    from seatrial_lint.engines.config import ServingConfig

# DJL 0.26: lmi_dist_rb_properties.validate_quantize.
LAST_LMI_DIST_THAT_REFUSES_BOTH = (8,)
# TGI 1.2: server/cli.py, "Only 1 can be set" but for bitsandbytes.
FIRST_TGI_WITH_TYPED_BITSANDBYTES = (1, 2)
# TGI 2.3: launcher, "prefill >= input" holds without prefill chunking.
LAST_TGI_WITHOUT_CHUNKS = (2, 3)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Fields that can't stand together.

    Attributes:
        message: Why.
        hint: How to mend it.
    """

    fields: tuple[str, ...]
    message: str
    hint: str


def conflicts(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    """Yield every contradiction that the engine would refuse, or resolve in silence."""
    for check in (*_EVERYWHERE, *_BY_DIALECT.get(table.dialect.name, ())):
        yield from check(config, table)


def _draft(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    drafted = config.speculative_decoding
    if drafted and drafted.model is None and drafted.method in ("draft_model", "eagle", "eagle3"):
        fields = ("speculative_decoding.method", "speculative_decoding.model")
        hint = "name the draft model, or use the method ngram"
        yield Conflict(fields, f"{drafted.method} needs a draft model, but none is set", hint)


def _smoothquant(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    if config.smoothquant and config.quantization != "smoothquant":
        message = "SmoothQuant settings have no effect without it"
        yield Conflict(("smoothquant", "quantization"), message, "set quantization to smoothquant")


def _lengths(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    prompt, whole = config.max_input_len, config.max_model_len
    if prompt is not None and whole is not None and prompt >= whole:
        message = f"a prompt of {prompt} tokens leaves no room for output in {whole}"
        yield Conflict(("max_input_len", "max_model_len"), message, f"lower max_input_len below {whole}")


def _streaming(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    if config.streaming and config.dynamic_batching and config.dynamic_batching.batch_size > 1:
        message = "a dynamic batch can't be streamed"
        yield Conflict(("streaming", "dynamic_batching"), message, "leave streaming out")


def _typed_quantization(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    if config.quantization is None or config.dtype in (None, "auto"):
        return
    at_load = config.quantization.startswith("bitsandbytes") and table.version >= FIRST_TGI_WITH_TYPED_BITSANDBYTES
    if not at_load if table.dialect.engine == "tgi" else table.version <= LAST_LMI_DIST_THAT_REFUSES_BOTH:
        message = f"{table.called} refuses dtype and quantization together"
        yield Conflict(("dtype", "quantization"), message, "leave dtype out")


def _sharded_exl2(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    if config.quantization == "exl2" and (config.tensor_parallel_degree or 1) > 1:
        message = "exl2 weights can't be sharded"
        yield Conflict(("quantization", "tensor_parallel_degree"), message, "set tensor_parallel_degree to 1")


def _batch_tokens(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    whole, prefill, prompt = config.max_batch_total_tokens, config.max_num_batched_tokens, config.max_input_len
    for name, tokens in (("max_model_len", config.max_model_len), ("max_num_batched_tokens", prefill)):
        if whole is not None and tokens is not None and tokens > whole:
            message = f"{tokens} tokens exceed the {whole} of a whole batch"
            yield Conflict((name, "max_batch_total_tokens"), message, f"raise max_batch_total_tokens to {tokens}")
    whole_prompts = table.version[:2] <= LAST_TGI_WITHOUT_CHUNKS
    if whole_prompts and prefill is not None and prompt is not None and prefill < prompt:
        message = f"{prefill} prefill tokens are below the longest prompt, {prompt}"
        yield Conflict(("max_num_batched_tokens", "max_input_len"), message, f"set it to at least {prompt}")


def _queue(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    if config.max_queued_requests is not None and config.max_num_seqs is None:
        message = f"{table.called} limits running and waiting requests together, but max_num_seqs is missing"
        yield Conflict(("max_queued_requests", "max_num_seqs"), message, "set max_num_seqs as well")


def _lora_with_draft(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    if config.lora and config.speculative_decoding:
        message = "lmi-dist refuses LoRA and speculative decoding together"
        yield Conflict(("lora", "speculative_decoding"), message, "leave one of them out")


def _draft_degree(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    drafted = config.speculative_decoding
    degree = drafted.draft_tensor_parallel_degree if drafted else None
    if degree not in (None, 1, config.tensor_parallel_degree):
        fields = ("speculative_decoding.draft_tensor_parallel_degree", "tensor_parallel_degree")
        message = f"lmi-dist shards a draft model over 1 GPU or over the model's own, not over {degree}"
        yield Conflict(fields, message, "set it to 1 or to tensor_parallel_degree")


def _smoothquant_type(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    if config.quantization == "smoothquant" and config.dtype == "bf16":
        yield Conflict(("dtype", "quantization"), "DeepSpeed's SmoothQuant refuses bf16", "set dtype to fp16")


def _one_adapter(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    adapters = (config.lora.adapters if config.lora else None) or ()
    if len(adapters) > 1:
        message = f"SGLang's container passes one adapter at start, not {len(adapters)}"
        yield Conflict(("lora.adapters",), message, "load the others through the server's API, or use vllm or tgi")


_EVERYWHERE = (_draft, _smoothquant, _lengths, _streaming)
_BY_DIALECT = {
    "tgi": (_typed_quantization, _sharded_exl2, _batch_tokens, _queue),
    "tgi-neuronx": (_queue,),
    "lmi-dist": (_typed_quantization, _lora_with_draft, _draft_degree),
    "lmi-deepspeed": (_smoothquant_type,),
    "sglang": (_one_adapter,),
}
