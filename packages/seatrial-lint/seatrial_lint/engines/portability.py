"""What a configuration means beyond its fields: refused where no other container can mean it, told where it is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.catalog.engine_versions import within
from seatrial_base.errors import RenderError
from seatrial_base.secrets import redacted
from seatrial_lint.lint.checks.image_age import FIRST_WITH_FLAGS
from seatrial_lint.lint.checks.limits import DEFAULT_PROMPT, LAST_WITH_FIXED_DEFAULTS
from seatrial_lint.lint.handler import handler_of
from seatrial_lint.lint.names import read_options
from seatrial_lint.lint.subject import MOUNT, hub_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.catalog.engine_options import SpellingTable
    from seatrial_base.catalog.instances import Instance
    from seatrial_lint.engines.config import ServingConfig
    from seatrial_lint.engines.neutral import Form
    from seatrial_lint.engines.parse import Parsed
    from seatrial_lint.lint.source import ConfigSource, SourceEntry
    from seatrial_lint.lint.target import TargetContainer

DEGREE = "tensor_parallel_degree"
_EMBEDDINGS = ("text-embedding", "text_embedding", "feature-extraction", "sentence-similarity", "text-similarity")
_COMPILED = ("trtllm", "trt-llm", "trt_llm", "tensorrt", "compiled", "/engines")
_VLLM = ("lmi-async", "lmi-vllm", "lmi-dist", "vllm", "vllm-neuronx")
# Read by libraries that every container has, or by the process: huggingface_hub and transformers (their documentation,
# "Environment variables"), PyTorch, NCCL, CUDA, OpenMP, the AWS SDK.
_EVERYWHERE = (
    *("HF_HOME", "HF_HUB_", "HF_ENDPOINT", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_", "TOKENIZERS_PARALLELISM"),
    *("PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "NCCL_", "CUDA_", "OMP_", "AWS_", "LD_", "PYTHON"),
)
_CHOOSES = frozenset(["engine", "rolling_batch", "entrypoint", "mpi_mode", "async_mode"])
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")


@dataclass(frozen=True, slots=True)
class Lost:
    """What could not be kept.

    Attributes:
        key: The key as it was written; the neutral field where several keys say it.
        line: Its line; 0 when it has none.
        because: Why.
    """

    key: str
    line: int
    because: str

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        return redacted(f"{self.key}{line}: {self.because}")


def check_portable(source: ConfigSource, origin: TargetContainer, table: SpellingTable) -> None:
    """Refuse what no configuration of another container can mean.

    Raises:
        RenderError: SEA387 for a handler of the user's, an engine of the Java side, embeddings and compiled engines.
    """
    options = {one.name: one.value for one in read_options(origin.engine, source.entries)}
    if origin.engine == "lmi":
        _check_handler(source, {one: options[one] for one in ("engine", "entryPoint") if one in options})
    task = options.get("task", options.get("HF_TASK", ""))
    if task in _EMBEDDINGS and table.dialect.engine in ("tgi", "sglang"):
        raise _refused(f"{table.called} does not serve {task}", "use the container of Text Embeddings Inference (TEI)")
    model = options.get("model_id", options.get("HF_MODEL_ID", ""))
    if origin.dialect == "lmi-trtllm" != table.dialect.name and _is_compiled(model):
        message = f"compiled engines of TensorRT-LLM can't be loaded by {table.called}"
        raise _refused(message, "give the checkpoint that they were compiled from as option.model_id")


def _is_compiled(model: str) -> bool:
    """Say whether a model of TensorRT-LLM is compiled already: mounted, or called so, and not on the hub."""
    return not model or (not hub_id(model) and any(word in model.lower() for word in _COMPILED))


def _check_handler(source: ConfigSource, written: Mapping[str, str]) -> None:
    handler = handler_of(written, has_model_py="model_py" in source.facts)
    if handler == "user":
        called = written.get("entryPoint") or "model.py"
        raise _refused(f"the handler {called} reads the options, no other container runs it", "convert it by hand")
    if handler == "java":
        message = f"engine={written.get('engine', '')} runs in the model server, without one of these engines"
        raise _refused(message, "for embeddings, use the container of Text Embeddings Inference (TEI)")


def chooses_dialect(key: str) -> bool:
    """Say whether a key chooses how LMI runs its engine: another container is chosen by its image."""
    return key.lower().removeprefix("option.").removeprefix("option_") in _CHOOSES


def _refused(message: str, hint: str) -> RenderError:
    return RenderError.of("SEA387", message, hint=hint)


def adapted(
    parsed: Parsed, origin: TargetContainer, table: SpellingTable, instance: Instance | None
) -> tuple[ServingConfig, list[Lost]]:
    """Return the fields as the other container means them, and what that loses.

    Args:
        parsed: What was read.
        origin: The container that it was written for.
        table: How the other container spells things.
        instance: What it runs on; `None` when nothing tells.
    """
    config, lost = _with_source(parsed, table)
    degree, of_degree = _degree(parsed, origin, table, instance)
    prompt = config.max_input_len or _longest_prompt(config, table)
    return config.model_copy(update={DEGREE: degree, "max_input_len": prompt}), lost + of_degree


def _longest_prompt(config: ServingConfig, table: SpellingTable) -> int | None:
    """Return the bound that a short sequence needs in a TGI whose default prompt is longer than that."""
    whole = config.max_model_len
    has_default = table.dialect.name == "tgi" and within(table.version, None, LAST_WITH_FIXED_DEFAULTS)
    return whole - 1 if has_default and whole and 1 < whole <= DEFAULT_PROMPT else None


def _with_source(parsed: Parsed, table: SpellingTable) -> tuple[ServingConfig, list[Lost]]:
    """LMI alone downloads from S3 (its `s3url` and `model_id`); the others find weights where SageMaker mounts them."""
    config, model = parsed.config, parsed.config.model_id or ""
    if not model and table.dialect.engine != "lmi":
        return config.model_copy(update={"model_id": MOUNT}), []
    if table.dialect.engine == "lmi" or not model.startswith(("s3://", "djl://")):
        return config, []
    because = f"{table.called} does not download it; mount it as ModelDataSource, it is then at {MOUNT}"
    return config.model_copy(update={"model_id": MOUNT}), [Lost(*_written(parsed, "model_id"), because)]


def _degree(
    parsed: Parsed, origin: TargetContainer, table: SpellingTable, instance: Instance | None
) -> tuple[int | None, list[Lost]]:
    """Return over how many accelerators the other container shards, so that it is the same number.

    Where none is written, LMI takes every GPU (deepjavalibrary/djl-serving, PyEnv.getTensorParallelDegree), the other
    containers take one.
    """
    degree, place = parsed.config.tensor_parallel_degree, _written(parsed, DEGREE)
    if _on_neuron(origin.dialect, parsed.config) != table.dialect.name.endswith("neuronx"):
        cores, other = ("NeuronCores", "GPUs") if _on_neuron(origin.dialect, parsed.config) else ("GPUs", "NeuronCores")
        return None, [Lost(*place, f"it counts {cores}; set the number of {other}")]
    if (
        degree is not None
        or origin.engine == table.dialect.engine
        or "lmi" not in (origin.engine, table.dialect.engine)
    ):
        return degree, []
    if table.dialect.engine == "lmi":
        return 1, []
    if instance is not None:
        return instance.accelerator_count, []
    because = f"LMI uses every GPU, {table.called} uses one GPU unless the number is set; give --instance-type"
    return None, [Lost(*place, because)]


def _on_neuron(dialect: str, config: ServingConfig) -> bool:
    return dialect.endswith("neuronx") or config.extra.get("device") == "neuron"


def _written(parsed: Parsed, field: str) -> tuple[str, int]:
    found = next((one for one in parsed.entries if one.field == field), None)
    return (found.key, found.line) if found else (field, 0)


def flag_text(text: str, origin: TargetContainer, table: SpellingTable) -> str | None:
    """Return a passed option's text as the other container takes it; `None` for what it would leave out.

    vLLM's and SGLang's containers take `true`, in older images an empty text, for a flag, and leave `false` out.
    """
    written = "true" if text == "" and origin.engine in ("vllm", "sglang") else text
    if table.dialect.engine not in ("vllm", "sglang"):
        return written
    if written.lower() == "false":
        return None
    return "" if written.lower() == "true" and table.version < FIRST_WITH_FLAGS[table.dialect.engine] else written


def process_variables(
    entries: Mapping[str, SourceEntry], origin: TargetContainer, table: SpellingTable, form: Form
) -> tuple[dict[str, str], list[Lost]]:
    """Return the variables that are none of the container's options and stay as they are, and those that can't.

    Args:
        entries: The environment by name, without secrets.
        origin: The container that it was written for.
        table: How the other container spells things.
        form: How the other container is told.
    """
    kept: dict[str, str] = {}
    lost: list[Lost] = []
    for name, entry in entries.items():
        because = _not_passed_on(name, origin, table)
        if because is None:
            continue
        if not because and form == "properties":
            because = "a serving.properties holds no environment variable; set it beside the file"
        if because:
            lost.append(Lost(name, entry.line, because))
        else:
            kept[name] = entry.value
    return kept, lost


def _not_passed_on(name: str, origin: TargetContainer, table: SpellingTable) -> str | None:
    """Return why a variable is not passed on: empty when it is, `None` when it is an option of the container."""
    if name in _TOKENS:
        return "tokens are not copied; use Secrets Manager"
    if name.startswith("VLLM_"):
        return "" if table.dialect.name in _VLLM else "it is read by vLLM only"
    if name == "SERVING_ENGINE":
        return "the model server reads no SERVING_ENGINE: it chooses nothing"
    if name.startswith("SERVING_") and origin.engine == "lmi":
        return "" if table.dialect.engine == "lmi" else "it is read by the model server of LMI only"
    if name.startswith("SAGEMAKER_"):
        return ""
    return "" if name.startswith(_EVERYWHERE) else None
