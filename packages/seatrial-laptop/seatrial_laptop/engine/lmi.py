"""LMI (DJL Serving): `serving.properties` and environment to settings, with the refusals of the real container.

Sources: deepjavalibrary/djl-serving (`LmiUtils`, `LmiConfigRecommender`, `properties.py`, `vllm_rb_properties.py`,
`dockerd-entrypoint-with-cuda-compat.sh`) and vLLM's scheduler configuration.
"""

from __future__ import annotations

import re
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
    _refuse_what_never_starts(options)
    wire_format = _wire_format(options, djl_minor=djl_minor(image))
    rolling = wire_format is WireFormat.LMI_ROLLING_BATCH
    max_num_seqs = options.whole("option.max_rolling_batch_size") or (256 if rolling else 32)
    max_model_len = options.whole("option.max_model_len") or DEFAULT_MODEL_LEN
    prefill_tokens = options.whole("option.max_rolling_batch_prefill_tokens")
    if prefill_tokens is not None and prefill_tokens < max_num_seqs:
        raise start_error(
            f"max_num_batched_tokens ({prefill_tokens}) must be greater than or equal to max_num_seqs ({max_num_seqs})",
            field="option.max_rolling_batch_prefill_tokens",
        )
    if max_model_len > KV_POOL_TOKENS:
        raise start_error(
            f"{max_model_len} tokens exceed the {KV_POOL_TOKENS} of the local engine's KV cache",
            field="option.max_model_len",
        )
    return EngineSettings(
        wire_format=wire_format,
        model_id=options.text("option.model_id"),
        max_num_seqs=max_num_seqs,
        max_in_flight=max_num_seqs + (options.whole("job_queue_size") or 1000),
        max_input_tokens=max_model_len - 1,
        max_total_tokens=max_model_len,
        batch_total_tokens=KV_POOL_TOKENS,
        prefill_tokens=prefill_tokens,
        default_output_tokens=30,
        quantization=options.text("option.quantize") or options.text("option.quantization"),
    )


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


def _refuse_what_never_starts(options: TextOptions) -> None:
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
