"""TGI (text-generation-inference): environment to settings, with the refusals of its launcher.

Sources: huggingface/text-generation-inference `launcher/src/main.rs`, `router/src/lib.rs` and
`sagemaker-entrypoint.sh`, version 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_laptop.engine.settings import (
    DEFAULT_MODEL_LEN,
    KV_POOL_TOKENS,
    EngineSettings,
    TextOptions,
    WireFormat,
    start_error,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def tgi_settings(environment: Mapping[str, str]) -> EngineSettings:
    """Read what a TGI container reads.

    Raises:
        LocalError: SEA605, the real container would not start with this configuration.
    """
    options = TextOptions(environment)
    if not options.text("HF_MODEL_ID"):
        raise start_error("HF_MODEL_ID must be set", field="HF_MODEL_ID")
    max_total = options.whole("MAX_TOTAL_TOKENS") or DEFAULT_MODEL_LEN
    tokens, length = options.whole("MAX_INPUT_TOKENS"), options.whole("MAX_INPUT_LENGTH")
    if tokens is not None and length is not None:
        raise start_error("both `max_input_tokens` and `max_input_length` are set: set `max_input_tokens` alone")
    max_input = (tokens if tokens is not None else length) or max_total - 1
    batch_total = options.whole("MAX_BATCH_TOTAL_TOKENS") or KV_POOL_TOKENS
    prefill = options.whole("MAX_BATCH_PREFILL_TOKENS")
    max_concurrent = options.whole("MAX_CONCURRENT_REQUESTS") or 128
    if max_input >= max_total:
        raise start_error(f"`max_input_tokens` must be < `max_total_tokens`: {max_input} and {max_total}")
    if max_total > batch_total:
        raise start_error(f"`max_total_tokens` must be <= `max_batch_total_tokens`: {max_total} and {batch_total}")
    if prefill is not None and prefill > batch_total:
        raise start_error(
            f"`max_batch_prefill_tokens` must be <= `max_batch_total_tokens`: {prefill} and {batch_total}"
        )
    if max_total > KV_POOL_TOKENS:
        raise start_error(f"MAX_TOTAL_TOKENS={max_total} exceeds the {KV_POOL_TOKENS} of the local engine's KV cache")
    return EngineSettings(
        wire_format=WireFormat.TGI,
        model_id=options.text("HF_MODEL_ID"),
        max_num_seqs=options.whole("MAX_BATCH_SIZE") or max_concurrent,
        max_in_flight=max_concurrent,
        max_input_tokens=max_input,
        max_total_tokens=max_total,
        batch_total_tokens=batch_total,
        prefill_tokens=prefill,
        default_output_tokens=None,
        quantization=options.text("HF_MODEL_QUANTIZE") or options.text("QUANTIZE"),
    )
