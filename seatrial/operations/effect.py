"""Effects of a resource's change on those who use the endpoint, and the resources of a template that serve them.

The effects of endpoints themselves are in `consequences`, with what is refused of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from seatrial_base.units import counted, gib
from seatrial_lint.cloudformation.intrinsic import references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from seatrial.documents.plan import Plan
    from seatrial.operations.template_diff import ResourceChange, TemplateDiff
    from seatrial_lint.cloudformation.template import Template, TemplateResource

EffectKind = Literal[
    "none",
    "starts",
    "rolling_update",
    "all_at_once",
    "download",
    "doubled",
    "second_endpoint",
    "candidate",
    "trial",
    "copies",
    "rights",
    "alias",
    "removed",
    "unknown",
]
TITLES: Mapping[EffectKind, str] = MappingProxyType(
    {
        "none": "no effect",
        "starts": "copies started",
        "rolling_update": "copies restarted one batch after the other",
        "all_at_once": "all copies replaced at once",
        "download": "weights downloaded again",
        "doubled": "instances doubled meanwhile",
        "second_endpoint": "second endpoint next to the first",
        "candidate": "one candidate copy meanwhile",
        "trial": "trial",
        "copies": "number of copies changed",
        "rights": "rights changed before the copies",
        "alias": "clients moved to another endpoint",
        "removed": "endpoint removed",
        "unknown": "effect unknown",
    }
)
"""The words of each kind."""
BY_RISK: tuple[EffectKind, ...] = (
    "removed",
    "all_at_once",
    "doubled",
    "second_endpoint",
    "rolling_update",
    "rights",
    "alias",
    "copies",
    "unknown",
    "starts",
    "candidate",
    "trial",
    "download",
    "none",
)
"""Every kind, what users may notice most first."""
MOVES_COPIES: frozenset[EffectKind] = frozenset(
    {"starts", "rolling_update", "all_at_once", "doubled", "second_endpoint", "copies", "removed", "unknown"}
)
"""The kinds that start, stop or move copies of what serves, or may do so."""
NOTICED: frozenset[EffectKind] = MOVES_COPIES | {"alias", "rights"}
"""The kinds that users of the endpoint may notice."""
MODEL = "AWS::SageMaker::Model"
CONFIG = "AWS::SageMaker::EndpointConfig"
ENDPOINT = "AWS::SageMaker::Endpoint"
ALARM = "AWS::CloudWatch::Alarm"
COMPONENT = "AWS::SageMaker::InferenceComponent"
CANDIDATE = "Custom::Candidate"
"""The custom resources of which the names begin so try a candidate component on an update."""
SPECIFICATION = ("Specification", "Specifications")
_WHOLE_ROLES = {
    "created": "No copy that serves uses it yet.",
    "deleted": "It is deleted in CloudFormation's clean-up, when no model uses it.",
}
_TRIED = ("PlanDigest", "EndpointConfigName", "ModelName", "Specification")
"""The properties whose change makes a trial due (`seatrial_cdk.trials.endpoint_trial`)."""
_AFTER_UPDATE = {
    "candidate": "It proves what is live and sends a few requests.",
    "in_place": "Load is added to the users' requests, up to the gate, and stops when an alarm is raised.",
    "verify_only": "It proves what is live and sends a few requests.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect.

    Attributes:
        because: Why, as a sentence.
        instances: Instances that it needs while it lasts, on top of those that serve the planned number of copies.
        most_instances: The same where as many copies serve as autoscaling may start.
    """

    kind: EffectKind
    because: str
    instances: int = 0
    most_instances: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSize:
    """The planned size of an endpoint.

    Attributes:
        instance_count: Instances of the planned copies.
        max_instances: Instances of the most copies.
        weights_bytes: Weights of a copy on all its accelerators.
        usd_per_hour: Price of one instance, in US dollars; `None` when it is unknown.
    """

    instance_type: str
    instance_count: int
    max_instances: int
    copies_per_instance: int
    copy_count: int
    max_copies: int
    weights_bytes: int
    usd_per_hour: float | None

    @classmethod
    def of(cls, plan: Plan) -> PlannedSize:
        """Return the size of a plan."""
        count, price = plan.instance_count.value, plan.cost.usd_per_hour
        return cls(
            instance_type=plan.instance_type.value,
            instance_count=count,
            max_instances=plan.max_instances,
            copies_per_instance=plan.copies_per_instance.value,
            copy_count=plan.copy_count.value,
            max_copies=plan.max_copies,
            weights_bytes=plan.memory.weights_bytes * plan.tensor_parallel_degree.value,
            usd_per_hour=None if price is None or not count else price / count,
        )

    def effect(self, kind: EffectKind, because: str) -> Effect:
        """Return an effect that needs all instances once more."""
        return Effect(kind=kind, because=because, instances=self.instance_count, most_instances=self.max_instances)

    def surge(self, copies: int, more: int) -> int:
        """Return the instances that more copies need on top of those of others, which run on as few as they fit on."""
        per_instance = max(1, self.copies_per_instance)
        return -(-(copies + more) // per_instance) - -(-copies // per_instance)

    def hourly(self, instances: int) -> float | None:
        """Return the price of some instances, in US dollars per hour; `None` when it is unknown."""
        return None if self.usd_per_hour is None else self.usd_per_hour * instances


def of_type(template: Template, resource_type: str) -> dict[str, TemplateResource]:
    """Return the resources of one type by logical ID."""
    return {name: one for name, one in template.resources.items() if one.resource_type == resource_type}


def config_of(template: Template, endpoint: TemplateResource) -> TemplateResource | None:
    """Return the configuration of an endpoint; `None` when the template does not hold it."""
    for reference in references(endpoint.properties.get("EndpointConfigName")):
        resource = template.resources.get(reference.logical_id)
        if resource is not None and resource.resource_type == CONFIG:
            return resource
    return None


def variant_parts(config: TemplateResource) -> dict[str, Mapping[str, JsonValue]]:
    """Return the production variants of a configuration by name."""
    variants = config.properties.get("ProductionVariants")
    rows = [variant for variant in variants if isinstance(variant, dict)] if isinstance(variants, list) else []
    return {f"{row.get('VariantName', '')}": row for row in rows}


def at(value: JsonValue, *names: str) -> JsonValue:
    """Return the value at a path of mappings; `None` without one."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def users_of(template: Template, logical_id: str, resource_type: str) -> Iterator[str]:
    """Yield the resources of one type that refer to another, sorted."""
    for name, resource in sorted(of_type(template, resource_type).items()):
        if any(reference.logical_id == logical_id for reference in references(dict(resource.properties))):
            yield name


def moves_component(diff: TemplateDiff) -> bool:
    """Return whether an update moves a component that serves to another model or size."""
    return any(is_moved(change) for change in diff.changes)


def is_moved(change: ResourceChange) -> bool:
    """Return whether a component that stays is moved to another model or size."""
    return change.resource_type == COMPONENT and change.action == "updated" and change.changes(*SPECIFICATION)


def others(diff: TemplateDiff, resource_type: str, action: str) -> tuple[str, ...]:
    """Return the logical IDs of a type to which something is done."""
    return tuple(
        change.logical_id for change in diff.changes if (change.resource_type, change.action) == (resource_type, action)
    )


def model_effects(change: ResourceChange, diff: TemplateDiff) -> Iterator[Effect]:
    """Yield what a model or an endpoint configuration does: nothing by itself."""
    kind = COMPONENT if change.resource_type == MODEL else ENDPOINT
    template = diff.old if change.action == "deleted" else diff.new
    users = ", ".join(users_of(template, change.logical_id, kind))
    if change.action == "deleted":
        because = f"{users or 'Nothing'} uses it no more when it is deleted."
    elif change.action == "updated":
        because = "What serves does not read it again."
    else:
        because = f"It takes effect through {users}." if users else "Nothing uses it."
    yield Effect(kind="none", because=because)


def role_effects(change: ResourceChange, diff: TemplateDiff) -> Iterator[Effect]:
    """Yield what a role loses while copies of the old model may still start with it."""
    if change.action in _WHOLE_ROLES:
        yield Effect(kind="none", because=_WHOLE_ROLES[change.action])
        return
    old, new = diff.old.resources.get(change.logical_id), diff.new.resources.get(change.logical_id)
    models = [*users_of(diff.old, change.logical_id, MODEL)]
    lost = _statements(old) - _statements(new) if old and new else frozenset()
    # Only a lost right can hurt, and only copies that start with the old model before it is replaced.
    if not models or not (lost or change.changes("AssumeRolePolicyDocument")):
        yield Effect(kind="none", because="No model that serves loses a right.")
        return
    because = (
        f"{', '.join(models)} loses {counted(len(lost), 'policy statement')} before its copies are replaced: a copy "
        "that starts meanwhile may fail."
    )
    yield Effect(kind="rights", because=because)


def _statements(role: TemplateResource | None) -> frozenset[str]:
    statements: set[str] = set()

    def collect(value: JsonValue) -> None:
        if isinstance(value, dict):
            rows = value.get("Statement")
            statements.update(json.dumps(row, sort_keys=True) for row in (rows if isinstance(rows, list) else ()))
            for one in value.values():
                collect(one)
        elif isinstance(value, list):
            for one in value:
                collect(one)

    if role is not None:
        collect(role.properties.get("Policies"))
    return frozenset(statements)


def scaling_effects(change: ResourceChange, diff: TemplateDiff) -> Iterator[Effect]:
    """Yield whether other bounds of autoscaling start or stop copies at once."""
    del diff
    reasons: list[str] = []
    for bound in change.properties:
        if not isinstance(bound.old, int) or not isinstance(bound.new, int):
            continue
        copies = f"{counted(bound.new, 'copy', 'copies')} {'runs' if bound.new == 1 else 'run'}"
        if bound.path == "MinCapacity" and bound.new > bound.old:
            reasons.append(f"At least {copies} from then on, instead of {bound.old}.")
        if bound.path == "MaxCapacity" and bound.new < bound.old:
            reasons.append(f"At most {copies} from then on, instead of {bound.old}.")
    if reasons:
        for because in reasons:
            yield Effect(kind="copies", because=because)
    elif change.action == "replaced":
        yield Effect(kind="none", because="The number of copies stays; autoscaling begins again.")
    else:
        yield Effect(kind="none", because="No copy is started or stopped by it at once.")


def policy_effects(change: ResourceChange, diff: TemplateDiff) -> Iterator[Effect]:
    """Yield what another scaling policy does: nothing at once."""
    del diff
    because = "No copy is started or stopped by it at once; autoscaling follows the new policy."
    yield Effect(kind="none", because="Autoscaling stops." if change.action == "deleted" else because)


def alias_effects(change: ResourceChange, diff: TemplateDiff) -> Iterator[Effect]:
    """Yield whether clients that resolve a parameter go elsewhere."""
    if change.action == "updated" and change.changes("Value"):
        yield Effect(kind="alias", because="It is written last: clients that read it go to the new value.")
    elif change.action in {"deleted", "replaced"} and not others(diff, change.resource_type, "created"):
        yield Effect(kind="alias", because="Clients that read it under the old name find nothing.")
    else:
        yield Effect(kind="none", because="No copy depends on it.")


def custom_effects(change: ResourceChange, diff: TemplateDiff, *, moves: bool) -> Iterator[Effect]:
    """Yield what the trial service does; what other custom resources do is not known here."""
    if change.resource_type.startswith(CANDIDATE):
        yield _candidate(change, diff, moves=moves)
    elif change.resource_type == "Custom::SmokeBenchmark":
        yield _trial(change, diff)
    else:
        yield Effect(kind="unknown", because=f"{change.resource_type} is a custom resource of another app.")


def _candidate(change: ResourceChange, diff: TemplateDiff, *, moves: bool) -> Effect:
    if change.action == "deleted":
        return Effect(kind="none", because="No further candidate is tried.")
    if change.action != "updated":
        return Effect(kind="none", because="Nothing serves under this name yet, so the component itself is tried.")
    if not change.changes(*_TRIED):
        return Effect(kind="none", because="Nothing that serves changes, so no candidate is tried.")
    # The trial service decides by this property whether it makes a candidate at all.
    if (update := _update(change, diff)) != "candidate":
        return Effect(kind="none", because=f"trial.update is {update}, so no candidate is tried.")
    what = "One copy of the new model" if moves else "One more copy"
    outcome = _only_reported(change, diff, "update") or "; a failed trial changes nothing that serves."
    because = f"{what} is tried next to those that serve, on free accelerators or one more instance{outcome}"
    return Effect(kind="candidate", because=because, instances=1, most_instances=1)


def _only_reported(change: ResourceChange, diff: TemplateDiff, what: str) -> str:
    """Return that an update or deployment goes on after a failed trial; empty where the trial holds it back."""
    is_report = diff.new.resources[change.logical_id].properties.get("Mode") == "report"
    return f"; trial.mode is report: whatever its verdict, the {what} goes on." if is_report else ""


def _update(change: ResourceChange, diff: TemplateDiff) -> str:
    """Return how an update is tried; an app of before has no such property, and tries under load."""
    return f"{diff.new.resources[change.logical_id].properties.get('Update', '')}"


def _trial(change: ResourceChange, diff: TemplateDiff) -> Effect:
    if change.action == "deleted":
        return Effect(kind="none", because="No further trial is made.")
    if change.action == "updated" and not change.changes(*_TRIED):
        return Effect(kind="none", because="Nothing that serves changes: it returns its last result.")
    if change.action == "created":
        waits = _only_reported(change, diff, "deployment") or "; the deployment waits for the verdict."
        because = f"The component is tried under load{waits}"
    elif any(moved.action in {"created", "replaced"} for moved in diff.changes if moved.resource_type == ENDPOINT):
        waits = _only_reported(change, diff, "update") or "."
        because = f"The new endpoint is tried under load before clients move to it{waits}"
    else:
        because = _AFTER_UPDATE.get(_update(change, diff), "The copies that serve users are tried under load.")
    return Effect(kind="trial", because=because)


def component_effects(change: ResourceChange, diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    """Yield what becomes of the copies of one component."""
    if change.action == "created":
        if others(diff, COMPONENT, "deleted"):
            yield _second(size)
        else:
            because = f"{counted(size.copy_count, 'copy', 'copies')} of a new component, which serves no user yet."
            yield Effect(kind="starts", because=because)
        yield download(size)
    elif change.action == "deleted":
        if others(diff, COMPONENT, "created"):
            yield Effect(kind="none", because="Its copies stop in CloudFormation's clean-up, after the new ones serve.")
        else:
            yield Effect(kind="removed", because="Its copies stop; requests to it fail from then on.")
    elif change.action == "replaced":
        yield _second(size)
        yield download(size)
    elif change.changes(*SPECIFICATION):
        yield from _moved(change, diff, size)
    elif change.changes("RuntimeConfig"):
        config = next(changed for changed in change.properties if changed.name == "RuntimeConfig")
        if config.follows or not isinstance(config.new, int):
            yield Effect(kind="none", because="The update carries the number of copies that run.")
        else:
            number = counted(config.new, "copy", "copies")
            because = f"The component is set to {number}, whatever autoscaling has started."
            yield Effect(kind="copies", because=because)
    else:
        yield Effect(kind="none", because="The copies stay as they are; the next update follows it.")


def download(size: PlannedSize) -> Effect:
    """Return that the weights are read again, by each copy."""
    because = f"Each new copy reads about {gib(size.weights_bytes)} of weights: {_copies(size)}."
    return Effect(kind="download", because=because)


def _copies(size: PlannedSize) -> str:
    planned = counted(size.copy_count, "copy", "copies")
    return planned if size.max_copies <= size.copy_count else f"{planned} (up to {size.max_copies})"


def _second(size: PlannedSize) -> Effect:
    because = (
        f"{counted(size.copy_count, 'copy', 'copies')} of another component; the old ones serve until it is tried."
    )
    return Effect(kind="second_endpoint", because=because)


def _moved(change: ResourceChange, diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    changed = next(changed for changed in change.properties if changed.name in SPECIFICATION)
    reason = f"{changed.path} changes."
    if changed.follows:
        reason = f"{changed.follows} is replaced, and the component moves to the new one."
    deployment = diff.new.resources[change.logical_id].properties.get("DeploymentConfig")
    batch = at(deployment, "RollingUpdatePolicy", "MaximumBatchSize")
    number = f"{at(batch, 'Value')}{' %' * (at(batch, 'Type') == 'CAPACITY_PERCENT')}"
    because = f"{reason} Replaced at a time: {number} of {_copies(size)}, new ones next to the old ones."
    if batch is None:
        because = f"{reason} Without a rolling update the service replaces all at once: {_copies(size)}."
    yield Effect(
        kind="all_at_once" if batch is None else "rolling_update",
        because=because,
        instances=size.surge(size.copy_count, batch_size_effect(batch, size.copy_count)),
        most_instances=size.surge(size.max_copies, batch_size_effect(batch, size.max_copies)),
    )
    yield download(size)


def batch_size_effect(batch: JsonValue, whole: int) -> int:
    """Return how many of `whole` copies or instances are replaced at a time; all where no batch is set.

    The share of a `MaximumBatchSize` is rounded up.
    """
    value = at(batch, "Value")
    if not isinstance(value, int):
        return whole
    return min(whole, -(-whole * value // 100) if at(batch, "Type") == "CAPACITY_PERCENT" else value)
