"""Lists of names that several rules need: scopes of keys, keys of the model server, arguments of vLLM's server."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.catalog.dialects import DialectName


# The parts of LMI's Python code that each dialect runs through.
SCOPES: Mapping[DialectName, tuple[str, ...]] = MappingProxyType(
    {
        "lmi-async": ("common", "vllm"),
        "lmi-vllm": ("common", "vllm"),
        "lmi-dist": ("common", "lmi-dist"),
        "lmi-trtllm": ("common", "trtllm"),
        "lmi-neuronx": ("common", "neuronx", "vllm"),
        "lmi-deepspeed": ("common", "deepspeed"),
        "lmi-python": ("common",),
    }
)
BATCHERS: Mapping[str, str] = MappingProxyType(
    {
        "vllm": "vLLM",
        "lmi-dist": "lmi-dist",
        "trtllm": "TensorRT-LLM",
        "neuronx": "Transformers-NeuronX",
        "deepspeed": "DeepSpeed",
        "lmi-async": "vLLM",
        "lmi-vllm": "vLLM",
        "lmi-trtllm": "TensorRT-LLM",
        "lmi-neuronx": "Transformers-NeuronX",
        "lmi-deepspeed": "DeepSpeed",
        "lmi-python": "Hugging Face Accelerate",
    }
)
# Keys of serving.properties without `option.` (DJL Serving: WlmConfigManager, ModelInfo, docs modes/configurations).
SERVER_KEYS = frozenset(
    [
        "engine",
        "job_queue_size",
        "batch_size",
        "max_dynamic_batch_size",
        "max_batch_delay",
        "max_idle_time",
        "minWorkers",
        "maxWorkers",
        "gpu.minWorkers",
        "gpu.maxWorkers",
        "cpu.minWorkers",
        "cpu.maxWorkers",
        "load_on_devices",
        "retry_threshold",
        "required_memory_mb",
        "reserved_memory_mb",
        "gpu.required_memory_mb",
        "gpu.reserved_memory_mb",
        "batchifier",
        "translator",
        "translatorFactory",
        "application",
        "groupId",
        "artifactId",
        "name",
        "version",
        "license",
        "download",
        "skip_oom_check",
        "log_request_metric",
        "metrics_aggregation",
        "model_metric",
        "metric_dimension",
        "max_request_size",
        "chunked_read_timeout",
        "error_rate_model",
        "error_rate_server",
        "error_rate_any",
    ]
)
# Options that the Deep Java Library itself reads, not DJL Serving (deepjavalibrary/djl@af1d0b80
# api/src/main/java/ai/djl/repository/zoo/BaseModelLoader.java and the engines' model classes).
JAVA_OPTIONS = frozenset(["blockFactory", "trainParam", "hasParameter", "Epoch"])
# Arguments of `vllm serve` beside those of the engine (vLLM documentation, `vllm serve`; entrypoints/openai/cli_args).
FRONTEND = frozenset(
    [
        "host",
        "port",
        "uds",
        "uvicorn_log_level",
        "disable_uvicorn_access_log",
        "allow_credentials",
        "allowed_origins",
        "allowed_methods",
        "allowed_headers",
        "api_key",
        "lora_modules",
        "prompt_adapters",
        "chat_template",
        "chat_template_content_format",
        "response_role",
        "trust_request_chat_template",
        "ssl_keyfile",
        "ssl_certfile",
        "ssl_ca_certs",
        "enable_ssl_refresh",
        "ssl_cert_reqs",
        "root_path",
        "middleware",
        "return_tokens_as_token_ids",
        "disable_frontend_multiprocessing",
        "enable_request_id_headers",
        "enable_auto_tool_choice",
        "tool_call_parser",
        "tool_parser_plugin",
        "tool_server",
        "log_config_file",
        "max_log_len",
        "disable_fastapi_docs",
        "enable_prompt_tokens_details",
        "enable_server_load_tracking",
        "enable_force_include_usage",
        "enable_tokenizer_info_endpoint",
        "enable_log_outputs",
        "enable_log_requests",
        "disable_log_requests",
        "disable_log_stats",
        "exclude_tools_when_tool_choice_none",
        "default_chat_template_kwargs",
        "h11_max_incomplete_event_size",
        "h11_max_header_count",
        "log_error_stack",
        "headless",
        "api_server_count",
        "config",
        "reasoning_parser",
        "reasoning_parser_plugin",
        "served_model_name",
        "model",
    ]
)
