"""Effects of keys that are left out, and slower or unexpected starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.lint.rules import finding, key_of, rule
from seatrial_lint.lint.subject import MOUNT, hub_id
from seatrial_lint.lint.target import is_accelerate_trap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.subject import Subject

# deepjavalibrary/djl-serving 0.28.0-dlc and 0.29.0-dlc serving/docker/lmi.Dockerfile: vLLM 0.4.2 has Marlin kernels for
# GPTQ, 0.5.3 for AWQ (vllm-project/vllm pulls 3922 and 6612).
_FIRST_WITH_MARLIN = {"gptq": (10,), "awq": (11,)}
_NEEDS_DEGREE = {
    "vllm": ("SM_VLLM_TENSOR_PARALLEL_SIZE", "the vLLM container"),
    "sglang": ("SM_SGLANG_TP", "the SGLang container"),
    "tgi": ("SM_NUM_GPUS", "TGI"),
}
_FROZEN = {
    "tgi": "TGI is in maintenance mode since December 2025: small fixes, no new models",
    "lmi-trtllm": "LMI 15 has the last image with TensorRT-LLM",
    "lmi-neuronx": "LMI 11 has the last image for Neuron",
}


@rule("SEA321")
def default_batch_size(subject: Subject) -> Iterator[Finding]:
    """Async LMI batches 32 sequences where nothing is written, and its documentation says 256."""
    target = subject.target
    if target is None or target.dialect != "lmi-async" or "max_num_seqs" in subject.fields:
        return
    if subject.option("max_rolling_batch_size") or subject.option("max_num_seqs"):
        return
    message = "the default of max_rolling_batch_size is 32 in the asynchronous handler, not 256 as documented"
    yield finding(subject, "SEA321", None, message, f"write {key_of(subject, 'max_rolling_batch_size')}")


@rule("SEA336")
def single_gpu_default(subject: Subject) -> Iterator[Finding]:
    """Containers that use one GPU unless they are told."""
    target, instance = subject.target, subject.instance
    if target is None or target.engine not in _NEEDS_DEGREE or instance is None or instance.accelerator_count == 1:
        return
    if "tensor_parallel_degree" in subject.fields or subject.text("SHARDED").lower() == "true":
        return
    key, container = _NEEDS_DEGREE[target.engine]
    if subject.option("data_parallel_size") or subject.option("pipeline_parallel_size"):
        return
    message = f"{container} uses 1 of the {instance.accelerator_count} GPUs of {instance.instance_type}"
    yield finding(subject, "SEA336", None, message, f"write {key}={instance.accelerator_count}")


@rule("SEA339")
def marlin(subject: Subject) -> Iterator[Finding]:
    """Naming a checkpoint's quantization turns vLLM's faster kernels off."""
    target = subject.target
    if target is None or target.dialect not in ("lmi-async", "lmi-vllm", "vllm"):
        return
    for name in ("quantize", "quantization"):
        option = subject.option(name, "option")
        first = _FIRST_WITH_MARLIN.get(option.value) if option else None
        if option and first and (target.engine != "lmi" or target.version >= first):
            message = f"vLLM reads {option.value} from the checkpoint; setting it disables the faster Marlin kernels"
            yield finding(subject, "SEA339", option.entry, message, "leave it out")


@rule("SEA333")
def compiled_at_start(subject: Subject) -> Iterator[Finding]:
    """TensorRT-LLM builds its engine at every start from a hub model."""
    target, model = subject.target, subject.fields.get("model_id")
    if target is None or target.dialect != "lmi-trtllm" or model is None or not hub_id(model.value):
        return
    if subject.text("backend") == "pytorch":
        return
    message = "TensorRT-LLM compiles this model at every start, which takes many minutes"
    fix = "compile it ahead of time, or raise both startup timeouts"
    yield finding(subject, "SEA333", model.option.entry, message, fix)


@rule("SEA334")
def accelerate(subject: Subject) -> Iterator[Finding]:
    """`rolling_batch=disable` alone leads away from vLLM."""
    target, option = subject.target, subject.option("rolling_batch")
    written = {one.name: one.value for one in subject.options}
    if target is None or target.engine != "lmi" or option is None or not is_accelerate_trap(written, target.version):
        return
    message = f"without option.async_mode, {target.called} loads the model with Hugging Face Accelerate, not vLLM"
    fix = (
        f"write {key_of(subject, 'async_mode')}=true and {key_of(subject, 'entryPoint')}="
        "djl_python.lmi_vllm.vllm_async_service beside it, or leave it out"
    )
    yield finding(subject, "SEA334", option.entry, message, fix)


@rule("SEA341")
def missing_tgi_model(subject: Subject) -> Iterator[Finding]:
    """TGI without a model."""
    target = subject.target
    if target is None or target.engine != "tgi" or subject.option("MODEL_ID"):
        return
    message = "TGI does not start without HF_MODEL_ID"
    yield finding(subject, "SEA341", None, message, f"write HF_MODEL_ID; for weights from S3, {MOUNT}")


@rule("SEA342", handler="any")
def frozen(subject: Subject) -> Iterator[Finding]:
    """Containers that get no new versions."""
    target = subject.target
    if target and (because := _FROZEN.get(target.dialect)):
        yield finding(subject, "SEA342", None, because, "move to LMI with vLLM: seatrial convert --to lmi")


@rule("SEA365", handler="any")
def revision(subject: Subject) -> Iterator[Finding]:
    """A hub model without revision."""
    field = subject.fields.get("model_id")
    if field and hub_id(field.value) and "revision" not in subject.fields:
        message = f"the main branch of {field.value} can move: a restart may load another model"
        yield finding(subject, "SEA365", field.option.entry, message, "set the commit as revision")
