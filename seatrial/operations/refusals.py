"""What an update can't do to an endpoint that serves, and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.serving_parts import COMPONENT, ENDPOINT, at, config_of, variant_parts
from seatrial_base.catalog.resource_types import find_replacement_rule
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from seatrial.operations.template import TemplateResource
    from seatrial.operations.template_diff import ResourceChange, TemplateDiff

SIBLING = "plan again with `seatrial plan SPEC -e ENV --write`: the new size becomes an endpoint of another name"
KIND = "plan again with `seatrial plan SPEC -e ENV --write`: another kind becomes an endpoint of another name"
VARIANT_PROPERTIES = ("InferenceAmiVersion", "VolumeSizeInGB")
ACCELERATORS = ("Specification", "ComputeResourceRequirements", "NumberOfAcceleratorDevicesRequired")


def consequence_refusals(diff: TemplateDiff) -> Iterator[Finding]:
    """Yield every change that would fail, or that is dangerous while users are served."""
    for change in diff.changes:
        yield from _collisions(change, diff)
        yield from _unchangeable(change)
        if change.resource_type == ENDPOINT and change.action == "updated":
            yield from _instances(change, diff)
        if change.resource_type == COMPONENT and change.action == "updated":
            yield from _degree(change, diff)


def _collisions(change: ResourceChange, diff: TemplateDiff) -> Iterator[Finding]:
    """Yield a replacement under the name of what it replaces: CloudFormation creates before it deletes."""
    rule = find_replacement_rule(change.resource_type)
    if change.action != "replaced" or change.replaced_by == ("Type",) or rule is None or not rule.named_by:
        return
    properties = diff.new.resources[change.logical_id].properties
    name = properties.get(rule.named_by[0])
    if name is None or change.changes(*rule.named_by):
        return
    message = f"{', '.join(change.replaced_by)} can only be replaced, and the name {_text(name)} is taken"
    hint = f"change {rule.named_by[0]} too, or leave it out"
    yield Finding("SEA454", Place(resource=change.logical_id, field=rule.named_by[0]), message, hint)


def _unchangeable(change: ResourceChange) -> Iterator[Finding]:
    if change.replaced_by == ("Type",):
        message = "the type of a resource can't be changed"
        yield Finding(
            "SEA454",
            Place(resource=change.logical_id, field="Type"),
            message,
            "give the new resource another logical ID",
        )
        return
    rule = find_replacement_rule(change.resource_type)
    if rule is not None and change.changes(*rule.unchangeable):
        names = sorted({each.name for each in change.properties} & set(rule.unchangeable))
        message = f"{', '.join(names)} can't be changed, neither in place nor by replacement"
        hint = "give the resource another logical ID, so that a new one is created first"
        yield Finding("SEA454", Place(resource=change.logical_id, field=names[0]), message, hint)


def _instances(change: ResourceChange, diff: TemplateDiff) -> Iterator[Finding]:
    """Yield what of the instances can't change under a name that is served."""
    configs = [config_of(template, template.resources[change.logical_id]) for template in (diff.old, diff.new)]
    before, after = configs
    if before is None or after is None:
        return
    old, new = variant_parts(before), variant_parts(after)
    yield from _kind(change, before, after)
    for variant in sorted(old.keys() & new.keys()):
        types = [_instance_type(each[variant]) for each in (old, new)]
        yield from _in_place(change, "InstanceType", *types)
        for name in VARIANT_PROPERTIES:
            yield from _in_place(change, name, old[variant].get(name), new[variant].get(name))
    yield from _in_place(change, "KmsKeyId", before.properties.get("KmsKeyId"), after.properties.get("KmsKeyId"))


def _kind(change: ResourceChange, before: TemplateResource, after: TemplateResource) -> Iterator[Finding]:
    """Yield another kind of endpoint: UpdateEndpoint changes neither where the model is nor how requests come in."""
    models = [any("ModelName" in each for each in variant_parts(config).values()) for config in (before, after)]
    queues = ["AsyncInferenceConfig" in config.properties for config in (before, after)]
    if models[0] != models[1]:
        where = "out of" if models[0] else "into"
        message = f"the model can't move {where} the production variant of an endpoint that serves"
        yield Finding("SEA453", Place(resource=change.logical_id, field="ModelName"), message, KIND)
    if queues[0] != queues[1]:
        message = f"AsyncInferenceConfig can't be {'removed from' if queues[0] else 'added to'} an endpoint that serves"
        yield Finding("SEA453", Place(resource=change.logical_id, field="AsyncInferenceConfig"), message, KIND)


def _instance_type(variant: Mapping[str, JsonValue]) -> JsonValue:
    """Return the type that the plan is made for: the variant's own, or that of its first pool."""
    pools = variant.get("InstancePools")
    first = pools[0] if isinstance(pools, list) and pools else None
    return first.get("InstanceType") if isinstance(first, dict) else variant.get("InstanceType")


def _degree(change: ResourceChange, diff: TemplateDiff) -> Iterator[Finding]:
    """Yield another degree of a component that stays where it is."""
    if change.changes("EndpointName"):
        return
    old, new = (dict(template.resources[change.logical_id].properties) for template in (diff.old, diff.new))
    yield from _in_place(change, ACCELERATORS[-1], at(old, *ACCELERATORS), at(new, *ACCELERATORS))


def _in_place(change: ResourceChange, name: str, old: JsonValue, new: JsonValue) -> Iterator[Finding]:
    if old != new:
        message = f"{_text(old)} can't become {_text(new)} while the endpoint keeps its name: old copies may not fit"
        yield Finding("SEA453", Place(resource=change.logical_id, field=name), message, SIBLING)


def _text(value: JsonValue) -> str:
    return "the default" if value is None else f"{value}"
