"""The service's limits on a container's environment, and the options that the plan alone may set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_ENTRIES = 100  # SageMaker API, CreateModel, Environment map
MAX_CHARS = 1024  # of a name, and of a value (same map)
MAX_TOTAL_BYTES = 32 * 1024  # SageMaker developer guide, container environment

# Options that the plan or the renderer writes, with the field that decides them; empty where none does. The engines'
# own names of them are here too: vLLM's make the LMI container refuse to start, TGI's launcher reads both.
DECIDED_BY_PLAN = {
    "lmi": {
        "engine": "serving.engine",
        "model_id": "model",
        "hf_model_id": "model",
        "revision": "model.revision",
        "trust_remote_code": "model.trust_remote_code",
        "async_mode": "serving.engine",
        "rolling_batch": "serving.engine",
        "entrypoint": "serving.engine",
        "tensor_parallel_degree": "serving.overrides.tensor_parallel_degree",
        "tensor_parallel_size": "serving.overrides.tensor_parallel_degree",
        "dtype": "serving.overrides.dtype",
        "quantize": "serving.overrides.quantization",
        "quantization": "serving.overrides.quantization",
        "max_model_len": "serving.overrides.max_model_len",
        "max_rolling_batch_size": "serving.overrides.max_num_seqs",
        "max_num_seqs": "serving.overrides.max_num_seqs",
        "max_rolling_batch_prefill_tokens": "serving.overrides.max_num_batched_tokens",
        "max_num_batched_tokens": "serving.overrides.max_num_batched_tokens",
        "model_loading_timeout": "",
        "predict_timeout": "",
        "job_queue_size": "serving.overrides.max_queued_requests",
        "hf_token": "model.hub_token_secret",
    },
    "tgi": {
        "hf_model_id": "model.hub_id",
        "model_id": "model.hub_id",
        "hf_model_revision": "model.revision",
        "revision": "model.revision",
        "hf_model_trust_remote_code": "model.trust_remote_code",
        "trust_remote_code": "model.trust_remote_code",
        "sm_num_gpus": "serving.overrides.tensor_parallel_degree",
        "num_shard": "serving.overrides.tensor_parallel_degree",
        "dtype": "serving.overrides.dtype",
        "hf_model_quantize": "serving.overrides.quantization",
        "quantize": "serving.overrides.quantization",
        "max_input_tokens": "workload.output_tokens and serving.overrides.max_model_len",
        "max_input_length": "workload.output_tokens and serving.overrides.max_model_len",
        "max_total_tokens": "serving.overrides.max_model_len",
        "max_batch_size": "serving.overrides.max_num_seqs",
        "max_batch_prefill_tokens": "serving.overrides.max_num_batched_tokens",
        "max_concurrent_requests": "serving.overrides.max_queued_requests",
        "hf_token": "model.hub_token_secret",
        "hugging_face_hub_token": "model.hub_token_secret",
    },
    "vllm": {
        "model": "model.hub_id",
        "revision": "model.revision",
        "trust_remote_code": "model.trust_remote_code",
        "tensor_parallel_size": "serving.overrides.tensor_parallel_degree",
        "dtype": "serving.overrides.dtype",
        "quantization": "serving.overrides.quantization",
        "max_model_len": "serving.overrides.max_model_len",
        "max_num_seqs": "serving.overrides.max_num_seqs",
        "max_num_batched_tokens": "serving.overrides.max_num_batched_tokens",
    },
    "sglang": {
        "model": "model.hub_id",
        "model_path": "model.hub_id",
        "revision": "model.revision",
        "trust_remote_code": "model.trust_remote_code",
        "tp": "serving.overrides.tensor_parallel_degree",
        "tp_size": "serving.overrides.tensor_parallel_degree",
        "tensor_parallel_size": "serving.overrides.tensor_parallel_degree",
        "dtype": "serving.overrides.dtype",
        "quantization": "serving.overrides.quantization",
        "context_length": "serving.overrides.max_model_len",
        "max_running_requests": "serving.overrides.max_num_seqs",
        "chunked_prefill_size": "serving.overrides.max_num_batched_tokens",
        "max_queued_requests": "serving.overrides.max_queued_requests",
    },
}


def env_problems(env: Mapping[str, str], where: str) -> Iterator[Problem]:
    """Yield every limit on a container's environment that is broken."""
    if len(env) > MAX_ENTRIES:
        yield Problem(where, "", "SEA302", f"{len(env)} environment variables exceed {MAX_ENTRIES}")
    for name, value in env.items():
        for what, size in (("name", len(name)), ("value", len(value))):
            if size > MAX_CHARS:
                message = f"the {what} has {size} characters; the limit is {MAX_CHARS}"
                yield Problem(where, name[:40], "SEA302", message, "move the option to serving.properties")
    total = sum(len(name.encode()) + len(value.encode()) for name, value in env.items())
    if total > MAX_TOTAL_BYTES:
        yield Problem(where, "", "SEA302", f"the environment's {total} bytes exceed {MAX_TOTAL_BYTES}")
