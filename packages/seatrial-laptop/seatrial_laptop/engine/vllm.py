"""vLLM's own container: environment to settings, with the refusals of `vllm serve`.

`SM_VLLM_NAME` is the argument `--name`. Sources: vLLM, `vllm/entrypoints/openai/cli_args.py` and the scheduler's
configuration; AWS Deep Learning Containers, `sagemaker_entrypoint.sh` of vLLM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

PREFIX: Final = "SM_VLLM_"
UNLIMITED: Final = 1_000_000
"""Requests: vLLM's queue has no end."""


def vllm_settings(environment: Mapping[str, str]) -> EngineSettings:
    """Read what a vLLM container reads.

    Raises:
        LocalError: SEA605, the real container would not start with this configuration.
    """
    options = TextOptions(environment)
    model_id = options.text(f"{PREFIX}MODEL") or options.text("HF_MODEL_ID")
    if not model_id:
        raise start_error("no model is set: set SM_VLLM_MODEL", field="SM_VLLM_MODEL")
    max_num_seqs = options.whole(f"{PREFIX}MAX_NUM_SEQS") or 256
    max_model_len = options.whole(f"{PREFIX}MAX_MODEL_LEN") or DEFAULT_MODEL_LEN
    prefill = options.whole(f"{PREFIX}MAX_NUM_BATCHED_TOKENS")
    _refuse(options, max_num_seqs=max_num_seqs, max_model_len=max_model_len, prefill=prefill)
    return EngineSettings(
        wire_format=WireFormat.VLLM,
        model_id=model_id,
        max_num_seqs=max_num_seqs,
        max_in_flight=UNLIMITED,
        max_input_tokens=max_model_len - 1,
        max_total_tokens=max_model_len,
        batch_total_tokens=KV_POOL_TOKENS,
        prefill_tokens=prefill,
        default_output_tokens=None,
        quantization=options.text(f"{PREFIX}QUANTIZATION"),
        served_names=tuple(options.text(f"{PREFIX}SERVED_MODEL_NAME").split()) or (model_id,),
        calls_tools=_flag(options, "ENABLE_AUTO_TOOL_CHOICE"),
    )


def _refuse(options: TextOptions, *, max_num_seqs: int, max_model_len: int, prefill: int | None) -> None:
    if prefill is not None and prefill < max_num_seqs:
        raise start_error(
            f"max_num_batched_tokens ({prefill}) must be greater than or equal to max_num_seqs ({max_num_seqs})",
            field=f"{PREFIX}MAX_NUM_BATCHED_TOKENS",
        )
    if max_model_len > KV_POOL_TOKENS:
        raise start_error(
            f"{max_model_len} tokens exceed the {KV_POOL_TOKENS} of the local engine's KV cache",
            field=f"{PREFIX}MAX_MODEL_LEN",
        )
    if _flag(options, "ENABLE_AUTO_TOOL_CHOICE") and not options.text(f"{PREFIX}TOOL_CALL_PARSER"):
        field = f"{PREFIX}ENABLE_AUTO_TOOL_CHOICE"
        raise start_error("--enable-auto-tool-choice requires --tool-call-parser", field=field)


def _flag(options: TextOptions, name: str) -> bool:
    """Return whether a flag is given: containers up to 0.17.0 take it without a value, later ones with `true`."""
    return options.values.get(f"{PREFIX}{name}", "false").strip().lower() in ("", "true")
