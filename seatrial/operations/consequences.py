"""Consequences of an update, per resource: what users notice, and what would fail or is dangerous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.documents.live import ROLLBACK_ALARMS_OFF
from seatrial.operations.effect import (
    ALARM,
    BY_RISK,
    COMPONENT,
    ENDPOINT,
    MOVES_COPIES,
    NOTICED,
    Effect,
    alias_effects,
    at,
    batch_size_effect,
    component_effects,
    config_of,
    custom_effects,
    download,
    model_effects,
    moves_component,
    of_type,
    others,
    policy_effects,
    role_effects,
    scaling_effects,
    variant_parts,
)
from seatrial_base.catalog import resource_types as replacement
from seatrial_base.catalog.resource_types import find_replacement_rule, values_at
from seatrial_base.findings import Finding, Place
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pydantic import JsonValue

    from seatrial.documents.live import RaisedAlarm
    from seatrial.operations.effect import EffectKind, PlannedSize
    from seatrial.operations.template_diff import ResourceChange, TemplateDiff


CDK_METADATA = "AWS::CDK::Metadata"
"""Names the CDK's version; it is no resource of the account."""
_OTHERS: dict[str, Callable[[ResourceChange, TemplateDiff], Iterator[Effect]]] = {
    "AWS::SageMaker::Model": model_effects,
    "AWS::SageMaker::EndpointConfig": model_effects,
    "AWS::IAM::Role": role_effects,
    "AWS::ApplicationAutoScaling::ScalableTarget": scaling_effects,
    "AWS::ApplicationAutoScaling::ScalingPolicy": policy_effects,
    "AWS::SSM::Parameter": alias_effects,
}
_OF_UPDATE = ("DeploymentConfig", "RetainAllVariantProperties", "ExcludeRetainedVariantProperties")
"""What CloudFormation hands to UpdateEndpoint with the configuration: another value alone deploys the same one again
(API reference, UpdateEndpoint: it "deploys the EndpointConfig … to a new fleet of instances"; "to update an endpoint,
you must create a new EndpointConfig")."""
SIBLING = "plan again with `seatrial plan SPEC -e ENV --write`: the new size becomes an endpoint of another name"
KIND = "plan again with `seatrial plan SPEC -e ENV --write`: another kind becomes an endpoint of another name"
VARIANT_PROPERTIES = ("InferenceAmiVersion", "VolumeSizeInGB")
ACCELERATORS = ("Specification", "ComputeResourceRequirements", "NumberOfAcceleratorDevicesRequired")


@dataclass(frozen=True, slots=True)
class ChangeWithEffects:
    """A change of a resource with what it means; an unchanged one has no effects."""

    change: ResourceChange
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Consequences:
    """What an update does.

    Attributes:
        rows: Every resource with its effects, in the order of `diff`.
        refused: What can't be done this way, and how to fix it.
        warned: What rolls the update back, or doesn't.
    """

    diff: TemplateDiff
    rows: tuple[ChangeWithEffects, ...]
    refused: tuple[Finding, ...]
    size: PlannedSize
    warned: tuple[Finding, ...] = ()

    @property
    def touches_copies(self) -> bool:
        """Whether a copy that serves is started, stopped or moved, or may be."""
        return any(effect.kind in MOVES_COPIES for effect in self._effects)

    @property
    def instances(self) -> int:
        """The most instances that are needed at once, on top of those that serve the planned number of copies."""
        return max((effect.instances for effect in self._effects), default=0)

    @property
    def most_instances(self) -> int:
        """The same where as many copies serve as autoscaling may start."""
        return max((effect.most_instances for effect in self._effects), default=0)

    @property
    def risk(self) -> EffectKind:
        """The effect that users may notice most; `none` when nothing changes."""
        return min((effect.kind for effect in self._effects), key=BY_RISK.index, default="none")

    @property
    def noticed(self) -> tuple[EffectKind, ...]:
        """Every effect that users may notice, the greatest first; the greatest at all where they notice none."""
        kinds = {effect.kind for effect in self._effects} & NOTICED
        return tuple(sorted(kinds, key=BY_RISK.index)) or (self.risk,)

    @property
    def _effects(self) -> tuple[Effect, ...]:
        return tuple(effect for row in self.rows for effect in row.effects)


def consequences(diff: TemplateDiff, size: PlannedSize, raised: Iterable[RaisedAlarm] = ()) -> Consequences:
    """Describe an update resource by resource; `raised` are the endpoint's alarms that are raised now."""
    moves = moves_component(diff)

    def effects_of(change: ResourceChange) -> tuple[Effect, ...]:
        return () if change.action == "unchanged" else tuple(_effects(change, diff, size, moves=moves))

    rows = tuple(ChangeWithEffects(change, effects_of(change)) for change in diff.changes)
    return Consequences(diff, rows, tuple(consequence_refusals(diff)), size, tuple(_rollback(diff, rows, raised)))


def _rollback(
    diff: TemplateDiff, rows: Iterable[ChangeWithEffects], raised: Iterable[RaisedAlarm]
) -> Iterator[Finding]:
    """Yield that no alarm rolls the update back, or which one would do so at once."""
    off = [
        name
        for name, alarm in of_type(diff.new, ALARM).items()
        if ROLLBACK_ALARMS_OFF in f"{alarm.properties.get('AlarmDescription', '')}"
    ]
    if off:
        message = "rollback by alarms is off for this deployment; a candidate's trial, where there is one, is the gate"
        hint = f"deploy once more without `-c {ROLLBACK_ALARMS_OFF}` afterwards; that touches no copy"
        yield Finding("SEA770", Place(resource=off[0]), message, hint, severity="error")
        return
    updated = (row for row in rows if row.change.resource_type in {ENDPOINT, COMPONENT})
    moved = (row for row in updated if any(effect.kind in MOVES_COPIES for effect in row.effects))
    if any(row.change.action == "updated" for row in moved):
        for alarm in raised:
            message = f"alarm {alarm.name} is raised, and SageMaker rolls this update back meanwhile: {alarm.reason}"
            hint = f"wait for its end; a repair is deployed with `-c {ROLLBACK_ALARMS_OFF}`"
            if alarm.rolls_back:
                yield Finding("SEA771", Place(resource=alarm.name), message, hint, severity="error")


def _effects(change: ResourceChange, diff: TemplateDiff, size: PlannedSize, *, moves: bool) -> Iterator[Effect]:
    if change.resource_type == COMPONENT:
        yield from component_effects(change, diff, size)
    elif change.resource_type == ENDPOINT:
        yield from endpoint_effects(change, diff, size)
    elif change.resource_type.startswith(("Custom::", replacement.CUSTOM)):
        yield from custom_effects(change, diff, moves=moves)
    elif view := _OTHERS.get(change.resource_type):
        yield from view(change, diff)
    elif find_replacement_rule(change.resource_type) is None and change.resource_type != CDK_METADATA:
        yield Effect(kind="unknown", because=f"Seatrial has no replacement rules for {change.resource_type}.")
    else:
        yield Effect(kind="none", because="No copy depends on it.")


def endpoint_effects(change: ResourceChange, diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    """Yield what becomes of the instances of one endpoint."""
    is_second = change.action == "replaced" or (change.action == "created" and bool(others(diff, ENDPOINT, "deleted")))
    instances = f"{counted(size.instance_count, 'instance')} of {size.instance_type}"
    if is_second:
        old = "the old ones run until CloudFormation's clean-up deletes them."
        because = f"{instances} start under another name; {old}"
        yield size.effect("second_endpoint", because)
    elif change.action == "created":
        yield size.effect("starts", f"{instances} start.")
    elif change.action == "deleted":
        if others(diff, ENDPOINT, "created"):
            yield Effect(
                kind="none", because="Its instances stop in CloudFormation's clean-up, after the new ones serve."
            )
        else:
            yield Effect(kind="removed", because="Its instances stop; requests to it fail from then on.")
    elif change.changes("EndpointConfigName"):
        yield from _reconfigured(change, diff, size, "Its configuration is replaced")
    elif changed := [name for name in _OF_UPDATE if change.changes(name)]:
        because = f"{changed[0]} changes alone, which SageMaker refuses or does with new instances"
        yield from _reconfigured(change, diff, size, because)
    else:
        yield Effect(kind="none", because="The instances stay as they are.")


def _reconfigured(change: ResourceChange, diff: TemplateDiff, size: PlannedSize, reason: str) -> Iterator[Effect]:
    deployment = diff.new.resources[change.logical_id].properties.get("DeploymentConfig")
    rolling = at(deployment, "RollingUpdatePolicy", "MaximumBatchSize")
    if rolling is None:
        manner = f"{at(deployment, 'BlueGreenUpdatePolicy', 'TrafficRoutingConfiguration', 'Type') or 'ALL_AT_ONCE'}"
        because = f"{reason}: a second fleet starts next to the first (blue/green, {manner})."
        yield size.effect("doubled", because)
    else:
        planned, most = (batch_size_effect(rolling, whole) for whole in (size.instance_count, size.max_instances))
        because = f"{reason}: {planned} of {counted(size.instance_count, 'instance')} at a time."
        yield Effect(kind="rolling_update", because=because, instances=planned, most_instances=most)
    yield download(size)


def consequence_refusals(diff: TemplateDiff) -> Iterator[Finding]:
    """Yield every change that would fail, or that is dangerous while users are served."""
    for change in diff.changes:
        yield from _collisions(change, diff)
        yield from _unchangeable(change)
        if change.resource_type == ENDPOINT and change.action == "updated":
            yield from _instances(change, diff)
        # Another degree of a component that moves to another endpoint starts there with instances of its own.
        if change.resource_type == COMPONENT and change.action == "updated" and not change.changes("EndpointName"):
            old, new = (dict(template.resources[change.logical_id].properties) for template in (diff.old, diff.new))
            yield from _in_place(change, ACCELERATORS[-1], at(old, *ACCELERATORS), at(new, *ACCELERATORS))


def _collisions(change: ResourceChange, diff: TemplateDiff) -> Iterator[Finding]:
    rule = find_replacement_rule(change.resource_type)
    # CloudFormation creates the new resource before it deletes the old one: under one fixed name the creation
    # fails.
    if change.action != "replaced" or change.replaced_by == ("Type",) or rule is None or not rule.named_by:
        return
    properties = diff.new.resources[change.logical_id].properties
    name = next(iter(values_at(properties, rule.named_by[0])), None)
    if name is None or change.changes(*rule.named_by):
        return
    message = f"{', '.join(change.replaced_by)} can only be replaced, and the name {_text(name)} is taken"
    hint = f"change {rule.named_by[0]} too, or leave it out"
    yield Finding("SEA454", Place(resource=change.logical_id, field=rule.named_by[0]), message, hint)


def _unchangeable(change: ResourceChange) -> Iterator[Finding]:
    if change.replaced_by == ("Type",):
        place, hint = Place(resource=change.logical_id, field="Type"), "give the new resource another logical ID"
        yield Finding("SEA454", place, "the type of a resource can't be changed", hint)
        return
    rule = find_replacement_rule(change.resource_type)
    if rule is not None and change.changes(*rule.unchangeable):
        names = sorted({changed.name for changed in change.properties} & set(rule.unchangeable))
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
    # Another kind of endpoint: UpdateEndpoint changes neither where the model is nor how requests come in.
    models = [any("ModelName" in part for part in variant_parts(config).values()) for config in (before, after)]
    queues = ["AsyncInferenceConfig" in config.properties for config in (before, after)]
    if models[0] != models[1]:
        where = "out of" if models[0] else "into"
        message = f"the model can't move {where} the production variant of an endpoint that serves"
        yield Finding("SEA453", Place(resource=change.logical_id, field="ModelName"), message, KIND)
    if queues[0] != queues[1]:
        message = f"AsyncInferenceConfig can't be {'removed from' if queues[0] else 'added to'} an endpoint that serves"
        yield Finding("SEA453", Place(resource=change.logical_id, field="AsyncInferenceConfig"), message, KIND)
    # A variant that comes or goes is another change: only what stays under its name serves meanwhile.
    for variant in sorted(old.keys() & new.keys()):
        types = [_instance_type(each[variant]) for each in (old, new)]
        yield from _in_place(change, "InstanceType", *types)
        for name in VARIANT_PROPERTIES:
            yield from _in_place(change, name, old[variant].get(name), new[variant].get(name))
    yield from _in_place(change, "KmsKeyId", before.properties.get("KmsKeyId"), after.properties.get("KmsKeyId"))


def _instance_type(variant: Mapping[str, JsonValue]) -> JsonValue:
    """Return the type that the plan is made for: the variant's own, or that of its first pool."""
    pools = variant.get("InstancePools")
    first = pools[0] if isinstance(pools, list) and pools else None
    return first.get("InstanceType") if isinstance(first, dict) else variant.get("InstanceType")


def _in_place(change: ResourceChange, name: str, old: JsonValue, new: JsonValue) -> Iterator[Finding]:
    if old != new:
        message = f"{_text(old)} can't become {_text(new)} while the endpoint keeps its name: old copies may not fit"
        yield Finding("SEA453", Place(resource=change.logical_id, field=name), message, SIBLING)


def _text(value: JsonValue) -> str:
    return "the default" if value is None else f"{value}"
