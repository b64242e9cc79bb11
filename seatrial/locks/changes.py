"""Differences of a new plan from the locked one: decisions, what is compiled again, its image, and a second endpoint.

An inference component stays on its endpoint, and an endpoint in service moves instances and components one after the
other: copies of the old size may not fit on what the new ones need. So another instance type, degree, AMI or volume is
deployed as a second endpoint with a name of its own (`generation`), which is tried before the traffic moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.documents.plan import Decision, Image
from seatrial_base.catalog.images import image_digest, image_repository_uri
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.optimizations import CompilationKey, invalidated
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.plan import Plan
    from seatrial_base.catalog.optimizations import Compiler


# What says who made the plan, why, and what is predicted: no decision.
_NO_DECISION = frozenset(
    {
        "schema_version",
        "spec_digest",
        "memory",
        "curve",
        "uncertainty",
        "band",
        "knee",
        "regime",
        "cost",
        "pareto",
        "rejected",
        "warnings",
        "adopted",
        "promoted",
        "unpriced",
        "probe",
        "proposals",
        "rates",
        "chance",
        "safer",
    }
)

_NONE = "none"
_GIVEN = " The digest is the one that its registry gave for the tag"
NOT_WRITTEN: Mapping[str, object] = MappingProxyType({"generation": 1, "hosting_kind": "inference_component"})
"""The values of a plan that it does not write, for lines about changes."""
_MARKS: tuple[tuple[str, Compiler], ...] = (("neuron", "neuron"), ("tensorrtllm", "trtllm"))
NOT_IN_PLACE: Mapping[str, str] = MappingProxyType(
    {
        "hosting_kind": "kind of endpoint",
        "instance_type": "instance type",
        "tensor_parallel_degree": "tensor parallel degree",
        "inference_ami_version": "inference AMI",
        "volume_size_gb": "volume size",
        "volume_kms_key_arn": "volume key",
    }
)
"""The fields of a plan that an endpoint in service can't change, as users call them."""


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A field of a plan that differs.

    Attributes:
        old: The value before; `none` where there was none.
        new: The value after; `none` where there is none.
        because: Why it is the new value; empty where the plan says no reason.
    """

    field: str
    old: str
    new: str
    because: str


def decision_changes(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[DecisionChange, ...]:
    """Return the decisions that differ between two plans as they are written, and the cost."""
    before, after = dict(_decisions(old)) if old else {}, dict(_decisions(new)) if new else {}
    changed: list[DecisionChange] = []
    for name in dict.fromkeys((*after, *before)):
        was, now, field = before.get(name, _NONE), after.get(name, _NONE), new.get(name)
        because = field.get("because") if isinstance(field, dict) else None
        if was != now:
            changed.append(DecisionChange(name, was, now, because if isinstance(because, str) else ""))
    return tuple(changed)


def changes(old: Mapping[str, object], new: Plan) -> tuple[str, ...]:
    """Return one line for each decision that differs, as `max_copies: 2 -> 4`, for the cost, and for what is compiled.

    `old`: the plan that was locked, as it was written; another release may have had other fields.
    """
    # Documents are compared, not plans: the locked one may be of a release whose fields were others.
    written = new.model_dump(mode="json")
    lines = [f"{one.field}: {one.old} -> {one.new}" for one in decision_changes(old, written)]
    if lines:
        lines += compiled_anew(old, written)
        return tuple(lines)
    return ("unchanged",) if old == new.model_dump(mode="json") else ("no decision changed, only texts or predictions",)


def _decisions(plan: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, field in {**NOT_WRITTEN, **plan}.items():
        if name not in _NO_DECISION:
            yield name, change_text(field)
    cost = plan.get("cost")
    if isinstance(cost, dict):
        yield "usd_per_hour", change_text(cost.get("usd_per_hour"))


def dropped_provenance(before: object) -> tuple[str, ...]:
    """Return a line that says that the plan is no longer the promoted one; none where it had no provenance."""
    if before is None:
        return ()
    return ("promoted: dropped, since the plan is no longer the one that was promoted; run `seatrial promote` again",)


def change_text(field: object) -> str:
    """Return the value of a plan's field as users read it; of a decision without its reason."""
    value = field["value"] if isinstance(field, dict) and "value" in field else field
    if isinstance(value, dict) and "uri" in value:
        value = value["uri"]
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return _NONE if value is None else str(value)


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


def count_generation(locked: Mapping[str, object] | None, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with its generation, and one line where it is another one than the locked plan's."""
    if locked is None:
        return plan, ()
    generation, document = generation_of(locked), plan.model_dump(mode="json")
    changed: list[str] = []
    for name, words in NOT_IN_PLACE.items():
        before, after = (change_text(each.get(name, NOT_WRITTEN.get(name))) for each in (locked, document))
        if before != after:
            changed.append(f"{words} changes from {before} to {after}")
    if not changed:
        return plan.model_copy(update={"generation": generation}), ()
    line = f"{', '.join(changed)}: a second endpoint is made, tried, and then takes the traffic"
    return plan.model_copy(update={"generation": generation + 1}), (line,)


def generation_of(locked: Mapping[str, object] | None) -> int:
    """Return the generation of a locked plan; 1 where it says none, or there is no plan."""
    generation = None if locked is None else locked.get("generation")
    return generation if isinstance(generation, int) and generation >= 1 else 1


def pin_image(plan: Plan, digest: str) -> Plan:
    """Return the plan with its image named by a digest. The tag stays next to it; SageMaker takes one of the two.

    Provenance ends with it: what was tried was named otherwise.
    """
    image = plan.image.value
    uri = f"{image_repository_uri(image.uri)}@{digest}"
    because = f"{plan.image.because.partition(_GIVEN)[0]}{_GIVEN} {image.tag}."
    named: Decision[Image] = Decision(value=image.model_copy(update={"uri": uri}), because=because)
    return plan.model_copy(update={"image": named, "promoted": None})


def pin_same_image(plan: Plan, image: Image, digest: str) -> Plan:
    """Return the plan with its image named by the digest that was requested for an image.

    Raises:
        SeatrialError: SEA350, the plan names another image now.
    """
    if plan.image.value != image:
        message = f"the plan names another image since the registry was asked for {image.repository}:{image.tag}"
        raise SeatrialError.of("SEA350", message, where=plan.image.value.uri, hint="run the command again")
    return pin_image(plan, digest)


def keep_digest(locked: Mapping[str, object] | None, plan: Plan) -> Plan:
    """Return the plan with the digest that is locked, when both name the same tag of the same registry.

    `locked`: the plan that was locked before, as it was written; `None` when there was none.
    """
    image = locked.get("image") if locked is not None else None
    value = image.get("value") if isinstance(image, dict) else None
    # A digest that the spec itself writes is kept as it is.
    if not isinstance(value, dict) or image_digest(plan.image.value.uri) is not None:
        return plan
    before, now = Image.model_validate(value), plan.image.value
    digest = image_digest(before.uri)
    same = (image_repository_uri(before.uri), before.tag) == (image_repository_uri(now.uri), now.tag)
    return pin_image(plan, digest) if digest is not None and same else plan
