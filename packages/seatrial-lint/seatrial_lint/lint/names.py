"""The option that a written key means to its container: its own name, whichever form it is written in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.engine_options import NEURON_PREFIX, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial_base.catalog.engine_versions import EngineName
    from seatrial_lint.lint.source import SourceEntry

Space = Literal["option", "server", "env"]

_CAPITALS = re.compile(r"[A-Z0-9_]+")
# The container's entrypoint and Java side read these beside OPTION_* (DJL Serving, dockerd-entrypoint-with-cuda-compat,
# LmiUtils, LmiConfigRecommender).
_LMI_ENV = {
    "HF_MODEL_ID": "model_id",
    "HF_REVISION": "revision",
    "HF_TASK": "task",
    "HF_TRUST_REMOTE_CODE": "trust_remote_code",
    "HF_MODEL_TRUST_REMOTE_CODE": "trust_remote_code",
    "HF_MODEL_QUANTIZE": "quantize",
    "TENSOR_PARALLEL_DEGREE": "tensor_parallel_degree",
    "SM_NUM_GPUS": "tensor_parallel_degree",
    "PIPELINE_PARALLEL_DEGREE": "pipeline_parallel_degree",
    "MAX_BATCH_PREFILL_TOKENS": "max_rolling_batch_prefill_tokens",
    "MAX_BATCH_SIZE": "max_rolling_batch_size",
    "CUDA_MEMORY_FRACTION": "gpu_memory_utilization",
    "PREDICT_TIMEOUT": "predict_timeout",
    "MODEL_LOADING_TIMEOUT": "model_loading_timeout",
}
_LMI_SERVER_ENV = {
    "MAX_CONCURRENT_REQUESTS": "job_queue_size",
    "SERVING_MIN_WORKERS": "minWorkers",
    "SERVING_MAX_WORKERS": "maxWorkers",
    "OPTION_ENGINE": "engine",
}
# TGI's sagemaker-entrypoint.sh.
_TGI_ENV = {
    "HF_MODEL_ID": "MODEL_ID",
    "HF_MODEL_REVISION": "REVISION",
    "SM_NUM_GPUS": "NUM_SHARD",
    "HF_MODEL_QUANTIZE": "QUANTIZE",
    "HF_MODEL_TRUST_REMOTE_CODE": "TRUST_REMOTE_CODE",
}


@dataclass(frozen=True, slots=True)
class NamedOption:
    """One option: its name as the container's code calls it, and where that was written.

    Attributes:
        space: `option` of the engine, `server` of the model server, or a plain variable.
        name: Without prefix.
        entry: What was written.
    """

    space: Space
    name: str
    entry: SourceEntry

    @property
    def value(self) -> str:
        """The written value."""
        return self.entry.value


def read_options(engine: EngineName, entries: Iterable[SourceEntry]) -> tuple[NamedOption, ...]:
    """Return the options that a container makes of written keys, in their order."""
    return tuple(NamedOption(*_meaning(engine, entry), entry) for entry in entries)


def _meaning(engine: EngineName, entry: SourceEntry) -> tuple[Space, str]:
    key = entry.key
    if entry.form == "properties":
        return ("option", key.removeprefix("option.")) if key.startswith("option.") else ("server", key)
    if engine == "lmi":
        return _lmi_variable(key)
    if engine == "tgi":
        return ("env", _TGI_ENV.get(key, key))
    prefix = NEURON_PREFIX if key.startswith(NEURON_PREFIX) else PREFIXES[engine]
    return ("option", key.removeprefix(prefix).lower()) if key.startswith(prefix) else ("env", key)


def _lmi_variable(key: str) -> tuple[Space, str]:
    if name := _LMI_ENV.get(key):
        return "option", name
    if name := _LMI_SERVER_ENV.get(key):
        return "server", name
    if key.startswith("OPTION_"):
        name = key.removeprefix("OPTION_")
        lowered = name.lower() if _CAPITALS.fullmatch(name) else name
        return "option", "entryPoint" if lowered == "entrypoint" else lowered
    # Which ConfigManager.java reads nowhere.
    if key.startswith("SERVING_") and key != "SERVING_ENGINE":
        return "server", key.removeprefix("SERVING_").lower()
    return "env", key
