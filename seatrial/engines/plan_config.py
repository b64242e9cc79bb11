"""The neutral configuration of a plan: what was decided, and what the spec fixes beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.specs.architecture import read_architecture
from seatrial.specs.recipe import is_quantized_at_start, quantizes
from seatrial_base.catalog.dialects import dialects, existing, exists
from seatrial_base.catalog.engine_options import options_decided_by
from seatrial_base.catalog.engine_versions import read_version
from seatrial_lint.engines.config import ServingConfig
from seatrial_lint.engines.templates import option_text

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.engines.model_source import ModelSource
    from seatrial.specs.endpoint import ServingOverrides
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.dialects import DialectName
    from seatrial_base.catalog.engine_versions import EngineName

PREDICT_TIMEOUT_S = (
    480  # a streamed invocation may last 8 minutes (SageMaker runtime, InvokeEndpointWithResponseStream)
)
NEWEST_READ = {"lmi": "27", "tgi": "3.3.6", "vllm": "0.26.0", "sglang": "0.5.20"}
_NEWEST_READ_ON_NEURON = {"lmi": "11", "tgi": "0.3.0", "vllm": "0.4.5"}


_ON_NEURON: dict[EngineName, DialectName] = {"lmi": "lmi-neuronx", "tgi": "tgi-neuronx", "vllm": "vllm-neuronx"}


def dialect_of(engine: EngineName, version: str, backend: str = "auto", *, on_neuron: bool = False) -> DialectName:
    """Return the dialect of a plan: what the spec fixes, else the newest vLLM form that the container has.

    Args:
        engine: The engine.
        version: Its version.
        backend: As the spec fixes it.
        on_neuron: The image is for AWS Neuron.
    """
    if on_neuron and engine in _ON_NEURON:
        return _ON_NEURON[engine]
    if engine != "lmi":
        return engine
    if backend != "auto":
        return _BACKENDS[backend]
    return "lmi-async" if "lmi-async" in existing(engine, version) else "lmi-vllm"


_BACKENDS: dict[str, DialectName] = {
    "vllm": "lmi-async",
    "vllm-rolling": "lmi-vllm",
    "lmi-dist": "lmi-dist",
    "trtllm": "lmi-trtllm",
    "neuronx": "lmi-neuronx",
    "deepspeed": "lmi-deepspeed",
    "python": "lmi-python",
}

_TOLD_TO_TGI = ("awq", "gptq")  # TGI 1.x loads such a checkpoint only with --quantize


def is_on_neuron(plan: Plan) -> bool:
    """Tell whether the image of a plan is for AWS Neuron."""
    image = plan.image.value
    return "neuron" in f"{image.repository}:{image.tag}"


def spelled_version(engine: EngineName, version: str, *, on_neuron: bool = False) -> str:
    """Return the version to spell by: the plan's, or the newest that was read when an image of the user has none."""
    if on_neuron:
        read = read_version(engine, version)
        dialect = dialects()[_ON_NEURON[engine]]
        return version if read is not None and exists(dialect, read) else _NEWEST_READ_ON_NEURON[engine]
    return version if read_version(engine, version) is not None else NEWEST_READ[engine]


def plan_config(loaded: LoadedSpec, plan: Plan, source: ModelSource) -> ServingConfig:
    """Return what the engine shall do for a plan."""
    model, overrides = loaded.endpoint.model, loaded.endpoint.serving.overrides
    tgi, lmi = plan.engine.value == "tgi", plan.engine.value == "lmi"
    quantization = _told_quantization(loaded, plan)
    return ServingConfig.model_validate(
        {
            "model_id": source.model_id,
            "revision": source.revision,
            "trust_remote_code": True if model.trust_remote_code else None,
            "tensor_parallel_degree": plan.tensor_parallel_degree.value,
            "dtype": None if tgi and quantization else plan.dtype.value,  # TGI refuses the two together
            "quantization": quantization,
            "max_input_len": plan.max_model_len.value - loaded.endpoint.workload.output_tokens if tgi else None,
            "max_model_len": plan.max_model_len.value,
            "max_num_seqs": plan.max_num_seqs.value,
            "max_num_batched_tokens": plan.max_num_batched_tokens.value,
            "max_queued_requests": plan.max_queued_requests.value,
            "model_loading_timeout_s": plan.startup_timeout_s.value if lmi else None,
            "predict_timeout_s": PREDICT_TIMEOUT_S if lmi else None,
            **_features(overrides),
            "extra": {name: option_text(value) for name, value in overrides.extra.items()},
        }
    )


def _told_quantization(loaded: LoadedSpec, plan: Plan) -> str | None:
    """Return the quantization that the engine must be told: what the spec sets, and to TGI a checkpoint's AWQ or GPTQ.

    The other engines read a quantized checkpoint's own, and naming it turns vLLM's faster kernels off (SEA339). What a
    recipe quantizes is told where the engine makes it: FP8 at loading, and every kind by TensorRT-LLM.
    """
    if plan.engine.value == "tgi" and plan.quantization in _TOLD_TO_TGI:
        return plan.quantization
    entry = quantizes(loaded.endpoint.optimization)
    if entry is None:
        return loaded.endpoint.serving.overrides.quantization
    return entry.name if is_quantized_at_start(loaded.endpoint, read_architecture(loaded)) else None


def _features(overrides: ServingOverrides) -> dict[str, object]:
    """Return what the spec fixes and the planner does not decide."""
    drafted = overrides.speculative_decoding
    return {
        **{name: getattr(overrides, name) for name in options_decided_by("spec")},
        "speculative_decoding": None
        if drafted is None or drafted.method is None
        else {"method": drafted.method, "model": drafted.model, "draft_tokens": drafted.draft_tokens},
    }
