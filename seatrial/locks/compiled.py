"""What a plan's model is compiled for, read from a plan as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial_base.catalog.compilation import CompilationKey, invalidated
from seatrial_base.catalog.instances import find_instance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.catalog.compilation import Compiler

_MARKS: tuple[tuple[str, Compiler], ...] = (("neuron", "neuron"), ("tensorrtllm", "trtllm"))


def compilation_key(plan: Mapping[str, object], revision: str | None = None) -> CompilationKey | None:
    """Return what a plan's model is compiled for; `None` when nothing is compiled, or the plan does not say enough.

    Args:
        plan: The plan as it is written; another release may have had other fields.
        revision: Commit of the hub repository, which a plan does not hold.
    """
    image = _value(plan, "image")
    framework = f"{image.get('repository')}:{image.get('tag')}" if isinstance(image, dict) else ""
    compiler = next((name for mark, name in _MARKS if mark in framework), None)
    if compiler is None:
        return None
    instance = find_instance(str(_value(plan, "instance_type")))
    fields = {
        "compiler": compiler,
        "model": plan.get("model_name"),
        "revision": revision,
        "batch_size": _value(plan, "max_num_seqs"),
        "sequence_length": _value(plan, "max_model_len"),
        "batched_tokens": _value(plan, "max_num_batched_tokens"),
        "dtype": _value(plan, "dtype"),
        "quantization": plan.get("quantization"),
        "degree": _value(plan, "tensor_parallel_degree"),
        "accelerator": _value(plan, "instance_type") if instance is None else instance.accelerator,
        "framework": framework,
    }
    try:
        return CompilationKey.model_validate(fields)
    except ValidationError:
        return None


def compiled_anew(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[str, ...]:
    """Return why the artifacts of one plan are useless to another, a sentence each; both as they are written."""
    return invalidated(compilation_key(old), compilation_key(new))


def _value(plan: Mapping[str, object], name: str) -> object:
    field = plan.get(name)
    return field["value"] if isinstance(field, dict) and "value" in field else field
