"""Families of containers: the image, its environment and `serving.properties` to settings, refused as the real ones do.

Sources. LMI (DJL Serving): deepjavalibrary/djl-serving (`LmiUtils`, `LmiConfigRecommender`, `properties.py`,
`vllm_rb_properties.py`, `dockerd-entrypoint-with-cuda-compat.sh`) and vLLM's scheduler configuration. TGI:
huggingface/text-generation-inference `launcher/src/main.rs`, `router/src/lib.rs` and `sagemaker-entrypoint.sh`,
version 3. vLLM's own container, in which `SM_VLLM_NAME` is the argument `--name`: vLLM,
`vllm/entrypoints/openai/cli_args.py` and the scheduler's configuration; AWS Deep Learning Containers,
`sagemaker_entrypoint.sh` of vLLM.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog import precision
from seatrial_base.catalog.models import find_model, split_precision
from seatrial_laptop.engine.settings import (
    DEFAULT_MODEL_LEN,
    KV_POOL_TOKENS,
    EngineSettings,
    TextOptions,
    WireFormat,
    start_error,
)
from seatrial_lint.engines.properties import parse_properties

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KNOWN: Final = "djl-inference, *tgi-inference* and vllm"


def read_settings(image: str, environment: Mapping[str, str], model_dir: Path) -> EngineSettings:
    """Read the configuration of a container: its environment and the `serving.properties` with its model.

    A configuration without quantization has that of the checkpoint, as every engine reads it: of its `config.json`
    where it was mounted, else of the model's name.

    Raises:
        LocalError: SEA605, the image isn't known or the real container would not start.
    """
    settings = _configured(image, environment, model_dir)
    if settings.quantization:
        return settings
    return replace(settings, quantization=_of_checkpoint(settings.model_id, model_dir))


def _configured(image: str, environment: Mapping[str, str], model_dir: Path) -> EngineSettings:
    repository = image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    if repository == "djl-inference":
        properties = model_dir / "serving.properties"
        text = properties.read_text() if properties.is_file() else ""
        return lmi_settings(image, environment, parse_properties(text))
    if "tgi-inference" in repository:
        return tgi_settings(environment)
    if repository in ("vllm", "huggingface-vllm"):
        return vllm_settings(environment)
    raise start_error(f"the local engine can't stand for image {image}: it knows {KNOWN}")


def _of_checkpoint(model_id: str, model_dir: Path) -> str:
    config = model_dir / "config.json"
    if not config.is_file():
        name = model_id.rstrip("/").rpartition("/")[2]
        _, named, is_named = split_precision(name)
        known = None if is_named else find_model(model_id)
        return named or (known.checkpoint_quantization if known else None) or ""
    try:
        document = json.loads(config.read_bytes())
    except ValueError as error:
        raise start_error(f"config.json of the model is not JSON: {error}") from None
    try:
        described = document.get("quantization_config") if isinstance(document, dict) else None
        return precision.quantization_of(described) or ""
    except ValueError as error:
        # One that we can't plan keeps its own name.
        return str(error)


ASYNC_IS_DEFAULT_SINCE: Final = 35
"""DJL 0.35 (LMI 17) resolves `rolling_batch=auto` to the async handler."""
DTYPES: Final = ("auto", "fp32", "fp16", "bf16", "int8")
ROLLING_BATCH: Final = ("auto", "disable", "vllm", "trtllm", "lmi-dist")
CONFLICTS: Final = {
    "option.max_num_seqs": "option.max_rolling_batch_size",
    "option.tensor_parallel_size": "option.tensor_parallel_degree",
    "option.pipeline_parallel_size": "option.pipeline_parallel_degree",
}
"""vLLM's names that raise, because LMI always sets its own."""
RENAMED_ENVIRONMENT: Final = {
    "HF_MODEL_ID": "option.model_id",
    "TENSOR_PARALLEL_DEGREE": "option.tensor_parallel_degree",
    "SM_NUM_GPUS": "option.tensor_parallel_degree",
    "MAX_CONCURRENT_REQUESTS": "job_queue_size",
    "MAX_BATCH_PREFILL_TOKENS": "option.max_rolling_batch_prefill_tokens",
    "MAX_BATCH_SIZE": "option.max_rolling_batch_size",
    "CUDA_MEMORY_FRACTION": "option.gpu_memory_utilization",
    "OPTION_ENTRYPOINT": "option.entryPoint",
    "OPTION_ENGINE": "engine",
}


def lmi_settings(image: str, environment: Mapping[str, str], properties: Mapping[str, str]) -> EngineSettings:
    """Read what an LMI container reads; `serving.properties` wins over the environment.

    Raises:
        LocalError: SEA605, the real container would not start with this configuration.
    """
    options = TextOptions({**options_of_environment(environment), **properties})
    engine = options.text("engine", "Python")
    if engine != "Python":
        raise start_error(f"engine {engine!r} is not an engine of this image: write engine=Python", field="engine")
    if not options.text("option.model_id"):
        raise start_error("no model is set: set option.model_id or the environment's HF_MODEL_ID")
    for name, ours in CONFLICTS.items():
        if name in options.values:
            raise start_error(f"conflicts with {ours}, which LMI always sets: write {ours} alone", field=name)
    dtype = options.text("option.dtype", "auto")
    if dtype not in DTYPES:
        raise start_error(f"{dtype!r} is not one of {', '.join(DTYPES)}", field="option.dtype")
    if options.text("option.tensor_parallel_degree") != "max":
        options.whole("option.tensor_parallel_degree")
    options.share("option.gpu_memory_utilization")
    wire_format = _wire_format(options, djl_minor=djl_minor(image))
    rolling = wire_format is WireFormat.LMI_ROLLING_BATCH
    max_num_seqs = options.whole("option.max_rolling_batch_size") or (256 if rolling else 32)
    max_model_len = options.whole("option.max_model_len") or DEFAULT_MODEL_LEN
    prefill_tokens = options.whole("option.max_rolling_batch_prefill_tokens")
    return _of_vllm(
        EngineSettings(
            wire_format=wire_format,
            model_id=options.text("option.model_id"),
            max_num_seqs=max_num_seqs,
            # The asynchronous handler hands each request to vLLM at once: DJL's queue of jobs refuses none.
            max_in_flight=max_num_seqs + (options.whole("job_queue_size") or 1000) if rolling else UNLIMITED,
            max_input_tokens=max_model_len - 1,
            max_total_tokens=max_model_len,
            batch_total_tokens=KV_POOL_TOKENS,
            prefill_tokens=prefill_tokens,
            default_output_tokens=30,
            quantization=options.text("option.quantize") or options.text("option.quantization"),
        ),
        prefill="option.max_rolling_batch_prefill_tokens",
        length="option.max_model_len",
    )


def _of_vllm(settings: EngineSettings, *, prefill: str, length: str) -> EngineSettings:
    if settings.prefill_tokens is not None and settings.prefill_tokens < settings.max_num_seqs:
        raise start_error(
            f"max_num_batched_tokens ({settings.prefill_tokens}) must be greater than or equal to max_num_seqs "
            f"({settings.max_num_seqs})",
            field=prefill,
        )
    if settings.max_total_tokens > KV_POOL_TOKENS:
        raise start_error(
            f"{settings.max_total_tokens} tokens exceed the {KV_POOL_TOKENS} of the local engine's KV cache",
            field=length,
        )
    return settings


def options_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the options that the container's environment holds, under the names of `serving.properties`."""
    options = {RENAMED_ENVIRONMENT[name]: value for name, value in environment.items() if name in RENAMED_ENVIRONMENT}
    for name, value in environment.items():
        if name in RENAMED_ENVIRONMENT:
            continue
        if name.startswith("OPTION_"):
            options[f"option.{_key(name, 'OPTION_')}"] = value
        elif name.startswith("SERVING_"):
            options[_key(name, "SERVING_")] = value
    return options


def djl_minor(image: str) -> int:
    """Return the minor version of DJL that an image's tag names (`0.36.0-lmi27...` is 36); the newest when it doesn't.

    A tag of another scheme (a digest, `latest`) is taken for a current one.
    """
    tag = re.search(r":0\.(\d+)\.", image)
    return int(tag[1]) if tag else 36


def _key(name: str, prefix: str) -> str:
    rest = name.removeprefix(prefix)
    return rest.lower() if re.fullmatch(r"[A-Z0-9_]+", rest) else rest


def _wire_format(options: TextOptions, *, djl_minor: int) -> WireFormat:
    rolling_batch = options.text("option.rolling_batch", "auto")
    if rolling_batch not in ROLLING_BATCH:
        raise start_error(f"{rolling_batch!r} is not one of {', '.join(ROLLING_BATCH)}", field="option.rolling_batch")
    if options.flag("option.async_mode"):
        if rolling_batch not in ("disable", "auto"):
            raise start_error(f"excludes option.async_mode=true: {rolling_batch!r}", field="option.rolling_batch")
        if djl_minor < ASYNC_IS_DEFAULT_SINCE and not options.text("option.entryPoint").endswith("_async_service"):
            raise start_error(
                "option.async_mode=true needs option.entryPoint=djl_python.lmi_vllm.vllm_async_service in this image",
                field="option.entryPoint",
            )
        return WireFormat.LMI_ASYNC
    if rolling_batch == "disable":
        raise start_error(
            "disable without option.async_mode=true loads a text model through Hugging Face Accelerate: "
            "write option.async_mode=true as well",
            field="option.rolling_batch",
        )
    if rolling_batch == "auto" and djl_minor >= ASYNC_IS_DEFAULT_SINCE:
        return WireFormat.LMI_ASYNC
    return WireFormat.LMI_ROLLING_BATCH


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
    refusals = {
        f"`max_input_tokens` must be < `max_total_tokens`: {max_input} and {max_total}": max_input >= max_total,
        f"`max_total_tokens` must be <= `max_batch_total_tokens`: {max_total} and {batch_total}": max_total
        > batch_total,
        f"`max_batch_prefill_tokens` must be <= `max_batch_total_tokens`: {prefill} and {batch_total}": (
            prefill is not None and prefill > batch_total
        ),
        f"MAX_TOTAL_TOKENS={max_total} exceeds the {KV_POOL_TOKENS} of the local engine's KV cache": (
            max_total > KV_POOL_TOKENS
        ),
    }
    if refused := next((message for message, is_refused in refusals.items() if is_refused), None):
        raise start_error(refused)
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


PREFIX: Final = "SM_VLLM_"
AUTO_TOOLS: Final = f"{PREFIX}ENABLE_AUTO_TOOL_CHOICE"
UNLIMITED: Final = 1_000_000
"""Requests: without a limit of its own vLLM's queue has no end."""


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
    settings = _of_vllm(
        EngineSettings(
            wire_format=WireFormat.VLLM,
            model_id=model_id,
            max_num_seqs=max_num_seqs,
            max_in_flight=options.whole(f"{PREFIX}MAX_NUM_QUEUED_REQS") or UNLIMITED,  # those that run among them
            max_queued_tokens=options.whole(f"{PREFIX}MAX_NUM_QUEUED_TOKENS"),
            max_input_tokens=max_model_len - 1,
            max_total_tokens=max_model_len,
            batch_total_tokens=KV_POOL_TOKENS,
            prefill_tokens=options.whole(f"{PREFIX}MAX_NUM_BATCHED_TOKENS"),
            default_output_tokens=None,
            quantization=options.text(f"{PREFIX}QUANTIZATION"),
            served_names=tuple(options.text(f"{PREFIX}SERVED_MODEL_NAME").split()) or (model_id,),
            # Containers up to 0.17.0 take the flag without a value, later ones with `true`.
            calls_tools=options.values.get(AUTO_TOOLS, "false").strip().lower() in ("", "true"),
        ),
        prefill=f"{PREFIX}MAX_NUM_BATCHED_TOKENS",
        length=f"{PREFIX}MAX_MODEL_LEN",
    )
    if settings.calls_tools and not options.text(f"{PREFIX}TOOL_CALL_PARSER"):
        raise start_error("--enable-auto-tool-choice requires --tool-call-parser", field=AUTO_TOOLS)
    return settings
