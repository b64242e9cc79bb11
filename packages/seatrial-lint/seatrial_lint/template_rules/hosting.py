"""Endpoints, components and scaling of several templates, each with what belongs to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from seatrial_base.findings import Finding, Place
from seatrial_lint.cloudformation.template import TemplateResources, begins_unknown
from seatrial_lint.template_rules.policy_documents import ATTACHED_TO, MANAGED_POLICY, ROLE, policy_documents, several

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from seatrial_lint.cloudformation.template import Template, TemplateResource, TemplateValue
    from seatrial_lint.template_rules.policy_documents import PolicyDocument, PolicyStatement

MODEL = "AWS::SageMaker::Model"
CONFIG = "AWS::SageMaker::EndpointConfig"
ENDPOINT = "AWS::SageMaker::Endpoint"
COMPONENT = "AWS::SageMaker::InferenceComponent"
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
COPIES = "sagemaker:inference-component:DesiredCopyCount"
INSTANCES = "sagemaker:variant:DesiredInstanceCount"
CONCURRENCY = "sagemaker:variant:DesiredProvisionedConcurrency"
Check: TypeAlias = "Callable[[Hosting], Iterator[Finding]]"
CHECKS: dict[Check, frozenset[str]] = {}
"""Every check that is registered, with its rules; importing `seatrial_lint.template_rules.check` registers all."""
STEPS_OF_A_PATTERN = 5
"""Of the budget of `TemplateResources`, what it takes to compare two patterns of ARNs."""
_COMPONENT_ID = re.compile(r"inference-component/(.+)")
_VARIANT_ID = re.compile(r"endpoint/(.+)/variant/(.+)")


@dataclass(frozen=True, slots=True)
class CopyRequirement:
    """What one component requests, as far as the template tells.

    Attributes:
        copies: Copies at creation; `None` when only the deployment knows.
    """

    resource: TemplateResource
    specification: TemplateValue
    copies: float | None

    def number(self, field: str) -> float | None:
        """Return how much of a resource all copies request; `None` when only the deployment knows."""
        needed = self.specification.at("ComputeResourceRequirements", field)
        of_one = 0.0 if needed.is_absent else needed.number
        return None if of_one is None or self.copies is None else of_one * self.copies


@dataclass(frozen=True, slots=True)
class SageMakerTarget:
    """A scalable target of SageMaker, with what it scales.

    Attributes:
        dimension: Its scalable dimension; `None` when only the deployment knows.
        resource_id: Its resource ID, with references marked; `None` likewise.
        component: The component that it scales, of these templates.
        endpoint: The endpoint whose variant it scales, of these templates.
    """

    resource: TemplateResource
    dimension: str | None
    resource_id: str | None
    component: TemplateResource | None
    endpoint: TemplateResource | None
    variant: str | None

    @property
    def is_known(self) -> bool:
        """The templates tell what it scales."""
        return self.resource_id is not None and not begins_unknown(self.resource_id)

    @property
    def is_component(self) -> bool:
        """It scales copies of a component, wherever that is defined."""
        return self.resource_id is not None and _COMPONENT_ID.fullmatch(self.resource_id) is not None

    @property
    def is_variant(self) -> bool:
        """It scales a variant of an endpoint, wherever that is defined."""
        return self.resource_id is not None and _VARIANT_ID.fullmatch(self.resource_id) is not None


class Hosting:
    """What several templates host."""

    def __init__(self, templates: Mapping[str, Template], region: str | None) -> None:
        self.resources = TemplateResources(templates)
        self.region = region
        self._variants: dict[tuple[str, str], tuple[Mapping[str | None, TemplateValue], TemplateValue | None]] = {}

    @cached_property
    def policies(self) -> tuple[PolicyDocument, ...]:
        """The IAM policies of the templates."""
        return tuple(policy_documents(self.resources))

    @cached_property
    def statements(self) -> tuple[PolicyStatement, ...]:
        """The statements of the policies."""
        return tuple(statement for policy in self.policies for statement in policy.statements)

    @cached_property
    def held(self) -> Mapping[tuple[str, str], tuple[PolicyDocument, ...]]:
        """The identity policies of each role, user and group, by its key: its own, and those that name it.

        Without a logical ID: those whose holders only the deployment knows.
        """
        holders: dict[tuple[str, str], list[PolicyDocument]] = {}
        for policy in self.policies:
            resource = policy.resource
            keys = {resource.key} if policy.kind == "identity" else set[tuple[str, str]]()
            for place in ATTACHED_TO.get(resource.resource_type, ()):
                for name in several(resource.at(place)):
                    # By reference, or as a role of these templates is called.
                    of = self.resources.referred(resource.template, name)
                    of = of or self.resources.named(resource.template, name, ROLE, "RoleName")
                    keys |= {of.key} if of else {(resource.template, "")} if name.text is None else set()
            for key in keys:
                holders.setdefault(key, []).append(policy)
        return {key: tuple(policies) for key, policies in holders.items()}

    def inline_policies(self, holder: TemplateResource) -> tuple[PolicyDocument, ...]:
        """Return the inline policies of a role, user or group."""
        held = self.held.get(holder.key, ())
        return tuple(policy for policy in held if policy.resource.resource_type != MANAGED_POLICY)

    def role_policies(self, role: TemplateResource) -> list[PolicyDocument] | None:
        """Return the identity policies of a role; `None` when one, or a part of it, is not in the templates."""
        named = several(role.at("ManagedPolicyArns"))
        managed = [self.resources.referred(role.template, each) for each in named]
        is_known = role.at("Policies").is_known or role.at("Policies").is_absent
        if None in managed or not is_known or (role.template, "") in self.held:
            return None
        keys = dict.fromkeys((role.key, *(each.key for each in managed if each)))
        policies = [policy for key in keys for policy in self.held.get(key, ()) if policy.kind == "identity"]
        return policies if all(policy.is_known for policy in policies) else None

    def config_of(self, endpoint: TemplateResource | None) -> TemplateResource | None:
        """Return the configuration of an endpoint."""
        if endpoint is None:
            return None
        return self.resources.named(endpoint.template, endpoint.at("EndpointConfigName"), CONFIG, "EndpointConfigName")

    def endpoint_of(self, component: TemplateResource) -> TemplateResource | None:
        """Return the endpoint that a component is placed on."""
        return self.resources.named(component.template, component.at("EndpointName"), ENDPOINT, "EndpointName")

    @cached_property
    def _components(self) -> Mapping[tuple[str, str], list[TemplateResource]]:
        placed: dict[tuple[str, str], list[TemplateResource]] = {}
        for component in self.resources.of(COMPONENT):
            if endpoint := self.endpoint_of(component):
                placed.setdefault(endpoint.key, []).append(component)
        return placed

    def components_on(self, endpoint: TemplateResource) -> list[TemplateResource]:
        """Return the components on an endpoint."""
        return self._components.get(endpoint.key, [])

    def variants(self, config: TemplateResource | None) -> Mapping[str | None, TemplateValue]:
        """Return the first production variant of each name; `None` is a name that only the deployment knows."""
        if config is None:
            return {}
        if config.key not in self._variants:
            named: dict[str | None, TemplateValue] = {}
            given = config.at("ProductionVariants").items
            for each in given:
                named.setdefault(each.at("VariantName").text, each)
            self._variants[config.key] = named, given[0] if len(given) == 1 else None
        return self._variants[config.key][0]

    def variant_of(self, component: TemplateResource) -> TemplateValue | None:
        """Return the variant whose instances a component uses: the one it names, or the only one."""
        config, name = self.config_of(self.endpoint_of(component)), component.at("VariantName")
        named = self.variants(config)
        if config is not None and name.is_absent:
            return self._variants[config.key][1]
        return named.get(name.text) if name.text else None

    def target_variant(self, target: SageMakerTarget) -> TemplateValue | None:
        """Return the variant that a target scales, or whose instances its component uses."""
        if target.component:
            return self.variant_of(target.component)
        return self.variants(self.config_of(target.endpoint)).get(target.variant)

    def model_of(self, template: str, value: TemplateValue) -> TemplateResource | None:
        """Return the model that a value names."""
        return self.resources.named(template, value, MODEL, "ModelName")

    def requirements(self, component: TemplateResource) -> Iterator[CopyRequirement]:
        """Yield what each specification of a component requests; adapters ask for nothing."""
        copies = component.at("RuntimeConfig", "CopyCount")
        for specification in specifications(component):
            if specification.at("BaseInferenceComponentName").is_absent:
                yield CopyRequirement(component, specification, copies.number)

    @cached_property
    def targets(self) -> tuple[SageMakerTarget, ...]:
        """The scalable targets of SageMaker."""
        targets: list[SageMakerTarget] = []
        for resource in self.resources.of(TARGET):
            dimension, by_text = resource.at("ScalableDimension").text, self.resources.by_text
            if resource.at("ServiceNamespace").text != "sagemaker" and not (dimension or "").startswith("sagemaker:"):
                continue
            written = self.resources.written(resource.template, resource.at("ResourceId"))
            component, variant = _COMPONENT_ID.fullmatch(written or ""), _VARIANT_ID.fullmatch(written or "")
            targets.append(
                SageMakerTarget(
                    resource,
                    dimension,
                    written,
                    by_text(resource.template, component and component[1], COMPONENT, "InferenceComponentName"),
                    by_text(resource.template, variant and variant[1], ENDPOINT, "EndpointName"),
                    variant[2] if variant else None,
                )
            )
        return tuple(targets)

    def target_of(self, policy: TemplateResource) -> SageMakerTarget | None:
        """Return the scalable target that a policy belongs to."""
        referred = self.resources.referred(policy.template, policy.at("ScalingTargetId"))
        if referred:
            return self._targets_by_key.get(referred.key)
        written = self.resources.written(policy.template, policy.at("ResourceId"))
        return self._targets_by_id.get((written, policy.at("ScalableDimension").text)) if written else None

    @cached_property
    def _targets_by_key(self) -> Mapping[tuple[str, str], SageMakerTarget]:
        return {target.resource.key: target for target in self.targets}

    @cached_property
    def _targets_by_id(self) -> Mapping[tuple[str | None, str | None], SageMakerTarget]:
        return {(target.resource_id, target.dimension): target for target in reversed(self.targets)}

    @cached_property
    def scaled(self) -> frozenset[tuple[str, str]]:
        """The keys of the components and endpoints that a target scales."""
        return frozenset(each.key for target in self.targets for each in (target.component, target.endpoint) if each)

    @cached_property
    def _policies(self) -> Mapping[tuple[str, str], list[TemplateResource]]:
        of_target: dict[tuple[str, str], list[TemplateResource]] = {}
        for policy in self.resources.of(POLICY):
            if target := self.target_of(policy):
                of_target.setdefault(target.resource.key, []).append(policy)
        return of_target

    def policies_of(self, target: SageMakerTarget) -> list[TemplateResource]:
        """Return the policies of a scalable target."""
        return self._policies.get(target.resource.key, [])

    @cached_property
    def _alarms(self) -> Mapping[tuple[str, str], list[TemplateResource]]:
        of_policy: dict[tuple[str, str], list[TemplateResource]] = {}
        for alarm in (each for kind in ALARMS for each in self.resources.of(kind)):
            actions = (action for name in ("AlarmActions", "OKActions") for action in alarm.at(name).items)
            for action in actions:
                if policy := self.resources.referred(alarm.template, action):
                    of_policy.setdefault(policy.key, []).append(alarm)
        return of_policy

    def alarms_of(self, policy: TemplateResource) -> list[TemplateResource]:
        """Return the alarms that start a policy."""
        return self._alarms.get(policy.key, [])

    @cached_property
    def has_unknown_alarm_actions(self) -> bool:
        """Whether the actions of some alarm are known at deployment alone."""
        alarms = (each for kind in ALARMS for each in self.resources.of(kind))
        for alarm, actions in ((each, each.at("AlarmActions")) for each in alarms):
            if not actions.is_known and not actions.is_absent:
                return True
            unknown = (action for action in actions.items if not action.is_known)
            if any(self.resources.referred(alarm.template, action) is None for action in unknown):
                return True
        return False


def specifications(component: TemplateResource) -> tuple[TemplateValue, ...]:
    """Return the specifications of a component: one, or one for each instance type."""
    several = component.at("Specifications").items
    return several or (component.at("Specification"),)


def containers_of(model: TemplateResource) -> tuple[TemplateValue, ...]:
    """Return the containers of a model."""
    primary = model.at("PrimaryContainer")
    return (*(() if primary.is_absent else (primary,)), *model.at("Containers").items)


def with_model(variant: TemplateValue) -> bool:
    """Return whether a variant names a model, itself or in a pool of instances, whatever a condition says."""
    pools = variant.at("InstancePools").items
    return variant.at("ModelName").is_there or any(pool.at("ModelNameOverride").is_there for pool in pools)


def for_components(variant: TemplateValue) -> bool:
    """Return whether a variant is for components, whatever a condition says: it names no model."""
    pools = variant.at("InstancePools")
    names = [variant.at("ModelName"), *(pool.at("ModelNameOverride") for pool in pools.items or [pools])]
    return all(each.is_absent for each in (*names, variant.at("ServerlessConfig")))


def types_of(variant: TemplateValue) -> tuple[TemplateValue, ...]:
    """Return the instance types of a variant: its own, or those of its pools."""
    own = variant.at("InstanceType")
    pools = variant.at("InstancePools").items
    return (*(() if own.is_absent else (own,)), *(pool.at("InstanceType") for pool in pools))


def most_instances(variant: TemplateValue) -> float | None:
    """Return how many instances a variant may have; `None` when only the deployment knows."""
    scaling = variant.at("ManagedInstanceScaling")
    managed = scaling.at("Status").text == "ENABLED" or (scaling.at("Status").is_absent and not scaling.is_absent)
    return (scaling.at("MaxInstanceCount") if managed else variant.at("InitialInstanceCount")).number


def listed_names(names: Collection[str]) -> str:
    """Return the first names for a message, and how many more there are."""
    most = 5
    shown = ", ".join(islice(names, most))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def rule(*rules: str) -> Callable[[Check], Check]:
    """Register a check with the rules whose findings it may give.

    A rule is a function with this decorator and a row of `catalog/data/rules.json`.
    """

    def register(check: Check) -> Check:
        CHECKS[check] = frozenset(rules)
        return check

    return register


def finding_at(resource: TemplateResource, value: TemplateValue, rule: str, message: str, hint: str) -> Finding:
    """Return a finding at a value of a resource."""
    place = Place(
        resource.template,
        resource=resource.logical_id,
        field=value.path,
        construct_path=resource.construct_path,
    )
    return Finding(rule, place, message, hint)
