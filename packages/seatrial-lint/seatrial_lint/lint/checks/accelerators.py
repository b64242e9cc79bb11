"""Limits of the instance's accelerators and of the model's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog.instances import computes_in, has_kernels
from seatrial_lint.lint.rules import finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding
    from seatrial_lint.lint.subject import NeutralField, Subject


# Engines that give each GPU the same number of heads: Transformers-NeuronX pads them, Accelerate places whole layers,
# and DeepSpeed shards unevenly.
SPLIT_HEADS = ("lmi-async", "lmi-vllm", "lmi-dist", "lmi-trtllm", "tgi", "vllm", "sglang")


@rule("SEA326")
def divisible_degree(subject: Subject) -> Iterator[Finding]:
    """A tensor parallel degree that the model or the instance can't be split into."""
    field = subject.fields.get("tensor_parallel_degree")
    degree = field.number if field else None
    if field is None or degree is None:
        return
    # Else it is told as out of range.
    if degree > 0:
        heads = subject.attention_heads if subject.target and subject.target.dialect in SPLIT_HEADS else None
        if heads and heads % degree:
            message = f"{degree} GPUs do not divide the {heads} attention heads of {subject.fields['model_id'].value}"
            fits = ", ".join(str(number) for number in (1, 2, 4, 8, 16) if not heads % number)
            yield finding(subject, "SEA326", field.option.entry, message, f"write {fits.replace(', ', ' or ')}")
        instance = subject.instance
        if instance and degree > _devices(instance):
            devices_message = f"{instance.instance_type} has {_devices(instance)} accelerators, fewer than {degree}"
            fix = f"write at most {_devices(instance)}, or choose a larger instance"
            yield finding(subject, "SEA326", field.option.entry, devices_message, fix)


def _devices(instance: Instance) -> int:
    """Count what a degree counts: GPUs, or the two NeuronCores of a first- or second-generation Neuron chip."""
    return instance.accelerator_count * (2 if instance.link == "neuron" else 1)


@rule("SEA327", "SEA328")
def supported_dtype(subject: Subject) -> Iterator[Finding]:
    """A type or quantization that the accelerator can't run, or only weight-only."""
    instance = subject.instance
    if instance is None or instance.link == "neuron":
        return
    dtype = subject.fields.get("dtype")
    if dtype and dtype.value == "bf16" and not instance.has_bf16:
        message = f"{instance.accelerator} has no bfloat16: the engine does not start"
        is_lmi = subject.target is not None and subject.target.engine == "lmi"
        yield finding(subject, "SEA327", dtype.option.entry, message, f"write {'fp16' if is_lmi else 'float16'}")
    quantization = subject.fields.get("quantization")
    if quantization:
        yield from _quantization(subject, quantization, instance)
    cache = subject.fields.get("kv_cache_dtype")
    if cache and cache.value.startswith("fp8") and not _has_fp8(instance):
        yield finding(subject, "SEA328", cache.option.entry, _no_fp8(instance, "cache"), "leave it out")


def _quantization(subject: Subject, field: NeutralField, instance: Instance) -> Iterator[Finding]:
    if field.value == "fp8" and not _has_fp8(instance):
        yield finding(subject, "SEA328", field.option.entry, _no_fp8(instance, "weights"), "choose awq or gptq weights")
    elif not has_kernels(instance, field.value):
        message = f"there are no {field.value} kernels for {instance.accelerator}"
        yield finding(
            subject, "SEA327", field.option.entry, message, "choose an instance with a newer GPU: ml.g5, ml.g6"
        )


def _is_on(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on")


def _no_fp8(instance: Instance, what: str) -> str:
    if what == "cache":
        return f"{instance.accelerator} has no FP8: some attention kernels reject an FP8 cache"
    return f"{instance.accelerator} has no FP8: weights are stored in FP8 but computed in 16 bits, which is slower"


def _has_fp8(instance: Instance) -> bool:
    return computes_in(instance, "fp8")


@rule("SEA340")
def context(subject: Subject) -> Iterator[Finding]:
    """More tokens than the model was made for."""
    field, model = subject.fields.get("max_model_len"), subject.architecture
    stretched = any(name.startswith("rope_scaling") for name in subject.fields) or subject.option("hf_overrides")
    vllm = subject.target is not None and subject.target.dialect in ("lmi-async", "lmi-vllm", "vllm")
    if field is None or model is None or field.number is None or stretched or not vllm:
        return
    if field.number > model.max_context:
        yield _beyond_context(subject, field, model)


def _beyond_context(subject: Subject, field: NeutralField, model: Architecture) -> Finding:
    message = f"{field.number} tokens exceed the context of {model.id}, {model.max_context}"
    fix = f"write at most {model.max_context}"
    if not _is_on(subject.text_of("VLLM_ALLOW_LONG_MAX_MODEL_LEN")):
        return finding(subject, "SEA340", field.option.entry, f"{message}: vLLM does not start", fix)
    message += ": vLLM starts, and fails or answers nonsense beyond it"
    return finding(subject, "SEA340", field.option.entry, message, fix, severity="warning")
