"""Application Auto Scaling: what is scaled, on which metric, to zero, and in which order it is created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog.hosting_kinds import namespaces, namespaces_of
from seatrial_lint.cloudformation.intrinsic import references
from seatrial_lint.template_rules.hosting import (
    ALARMS,
    COMPONENT,
    CONCURRENCY,
    COPIES,
    ENDPOINT,
    INSTANCES,
    POLICY,
    finding_at,
    for_components,
    listed_names,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource, TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting, SageMakerTarget

METRICS = {
    "SageMakerVariantInvocationsPerInstance": INSTANCES,
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": INSTANCES,
    "SageMakerVariantProvisionedConcurrencyUtilization": CONCURRENCY,
    "SageMakerInferenceComponentInvocationsPerCopy": COPIES,
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": COPIES,
}
"""The dimension that each predefined metric of SageMaker belongs to."""
WAKE_METRIC = "NoCapacityInvocationFailures"
WAKE_BACKLOGS = ("HasBacklogWithoutCapacity", "ApproximateBacklogSize")
"""What an asynchronous endpoint without instances publishes while requests wait."""
BACKLOG = ("ApproximateBacklogSize", "ApproximateBacklogSizePerInstance", "HasBacklogWithoutCapacity")
_TRACKING = "TargetTrackingScalingPolicyConfiguration"
_USUAL = {
    COPIES: "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution",
    INSTANCES: "SageMakerVariantConcurrentRequestsPerModelHighResolution",
    CONCURRENCY: "SageMakerVariantProvisionedConcurrencyUtilization",
}


@rule("SEA740")
def resource_dimensions(hosting: Hosting) -> Iterator[Finding]:
    """A resource ID of another form than the dimension's, or an unknown dimension."""
    for target in hosting.targets:
        resource, dimension = target.resource, target.dimension
        value = resource.at("ResourceId")
        if dimension is not None and dimension not in _USUAL:
            message = f"{dimension} is no scalable dimension of SageMaker"
            hint = f"use {', '.join(_USUAL)}"
            yield finding_at(resource, resource.at("ScalableDimension"), "SEA740", message, hint)
        elif dimension is None or not target.is_known:
            continue
        elif not (target.is_component if dimension == COPIES else target.is_variant):
            form = "inference-component/NAME" if dimension == COPIES else "endpoint/NAME/variant/NAME"
            shown = hosting.resources.readable(target.resource_id or "")
            message = f"ResourceId {shown} does not match {dimension}"
            yield finding_at(resource, value, "SEA740", message, f"write {form}")
        namespace = resource.at("ServiceNamespace")
        if namespace.is_known and namespace.text != "sagemaker":
            message = f"ServiceNamespace {namespace.text} does not match {dimension}"
            yield finding_at(resource, namespace, "SEA740", message, "set ServiceNamespace to sagemaker")


@rule("SEA707")
def bounds(hosting: Hosting) -> Iterator[Finding]:
    """Bounds of a scalable target that contradict each other."""
    for target in hosting.targets:
        least, most = target.resource.at("MinCapacity"), target.resource.at("MaxCapacity")
        if least.number is not None and most.number is not None and least.number > most.number:
            message = f"MinCapacity {least.text} exceeds MaxCapacity {most.text}"
            yield finding_at(target.resource, least, "SEA707", message, "raise MaxCapacity")


@rule("SEA741")
def metrics(hosting: Hosting) -> Iterator[Finding]:
    """A predefined metric of another dimension."""
    for policy in hosting.resources.of(POLICY):
        target = hosting.target_of(policy)
        dimension = target.dimension if target else policy.at("ScalableDimension").text
        value = policy.at(_TRACKING, "PredefinedMetricSpecification", "PredefinedMetricType")
        if value.text is None or dimension not in _USUAL:
            continue
        if METRICS.get(value.text) != dimension:
            message = f"metric {value.text} does not belong to {dimension}"
            yield finding_at(policy, value, "SEA741", message, f"use {_USUAL[dimension]}")


@rule("SEA742")
def doubly_scaled_variants(hosting: Hosting) -> Iterator[Finding]:
    """Instances that managed instance scaling and Application Auto Scaling would both set."""
    for target in hosting.targets:
        if target.dimension != INSTANCES or target.endpoint is None:
            continue
        variant = hosting.target_variant(target)
        if variant and for_components(variant):
            message = "the target scales instances of a variant for inference components"
            hint = f"scale the copies of each component: {COPIES}; ManagedInstanceScaling follows with instances"
            yield finding_at(target.resource, target.resource.at("ResourceId"), "SEA742", message, hint)


@rule("SEA743")
def cooldowns(hosting: Hosting) -> Iterator[Finding]:
    """A policy of a component without cooldowns, which have no default there."""
    for policy in hosting.resources.of(POLICY):
        target = hosting.target_of(policy)
        config = policy.at(_TRACKING)
        if target is None or target.dimension != COPIES or not config.is_known:
            continue
        missing = [name for name in ("ScaleInCooldown", "ScaleOutCooldown") if config.at(name).is_absent]
        if missing:
            message = f"{' and '.join(missing)} missing: inference components have no documented default"
            yield finding_at(policy, config, "SEA743", message, f"set {' and '.join(missing)} in seconds")


@rule("SEA744")
def step_policy_alarms(hosting: Hosting) -> Iterator[Finding]:
    """A step policy that nothing starts."""
    if hosting.has_unknown_alarm_actions:
        return
    for policy in hosting.resources.of(POLICY):
        if policy.at("PolicyType").text == "StepScaling" and not hosting.alarms_of(policy):
            if hosting.target_of(policy) is None:
                continue
            message = "no alarm of these templates starts the step scaling policy"
            yield finding_at(policy, policy.at("PolicyType"), "SEA744", message, "name the policy in AlarmActions")


@rule("SEA745")
def waking(hosting: Hosting) -> Iterator[Finding]:
    """A component that scales in to zero and that nothing scales out again."""
    for target in hosting.targets:
        least = target.resource.at("MinCapacity")
        if least.number != 0 or not target.is_component or _wakes(hosting, target):
            continue
        message = f"MinCapacity is 0, and no alarm on {WAKE_METRIC} starts a step scaling policy: nothing adds a copy"
        hint = f"add a StepScaling policy, and an alarm on {WAKE_METRIC} of the component that starts it"
        yield finding_at(target.resource, least, "SEA745", message, hint)


def _wakes(hosting: Hosting, target: SageMakerTarget, metrics: tuple[str, ...] = (WAKE_METRIC,)) -> bool:
    of_none = (each for each in hosting.resources.of(POLICY) if hosting.target_of(each) is None)
    if any(each.at("PolicyType").text in {None, "StepScaling"} and not _names_its_target(each) for each in of_none):
        return True
    steps = [each for each in hosting.policies_of(target) if each.at("PolicyType").text in {None, "StepScaling"}]
    if any(not step.at("PolicyType").is_known for step in steps) or (steps and hosting.has_unknown_alarm_actions):
        # Only the deployment knows.
        return True
    return any(_may_watch(alarm, metrics) for policy in steps for alarm in hosting.alarms_of(policy))


def _names_its_target(policy: TemplateResource) -> bool:
    """Return whether a policy tells whose it is, of these templates or not."""
    return policy.at("ScalingTargetId").is_known or policy.at("ResourceId").is_known


def _may_watch(alarm: TemplateResource, metrics: tuple[str, ...]) -> bool:
    """Return whether an alarm may be one on some metrics, as requests that found no copy; a composite alarm may."""
    named = [metric.at("MetricName") for metric in _metrics_of(alarm)]
    return not named or any(each.text in metrics or not each.is_known for each in named)


def _metrics_of(alarm: TemplateResource) -> list[TemplateValue]:
    """Return what names the metrics of an alarm, one or several."""
    queries = (query.at("MetricStat", "Metric") for query in alarm.at("Metrics").items)
    return [each for each in (alarm.at(), *queries) if not each.at("MetricName").is_absent]


@rule("SEA746")
def billed_at_zero(hosting: Hosting) -> Iterator[Finding]:
    """Copies go to zero and the instances stay, or requests do not find the first copy."""
    for target in hosting.targets:
        variant = hosting.target_variant(target) if target.component else None
        least = target.resource.at("MinCapacity")
        if least.number != 0 or variant is None or not variant.is_known:
            continue
        scaling = variant.at("ManagedInstanceScaling")
        kept = scaling.at("MinInstanceCount")
        if scaling.is_absent or (kept.number or 0) >= 1 or (scaling.is_known and kept.is_absent):
            instances = f"MinInstanceCount is {kept.text}" if kept.text else "the variant does not scale to 0 instances"
            message = f"MinCapacity is 0 copies, and {instances}: the instances are billed without a copy"
            hint = "set ManagedInstanceScaling.MinInstanceCount to 0 in the endpoint configuration"
            yield finding_at(target.resource, least, "SEA746", message, hint)
        strategy = variant.at("RoutingConfig", "RoutingStrategy")
        if strategy.text == "RANDOM":
            message = "MinCapacity is 0 copies, and RoutingStrategy is RANDOM"
            yield finding_at(
                target.resource, least, "SEA746", message, "set RoutingStrategy to LEAST_OUTSTANDING_REQUESTS"
            )


@rule("SEA747")
def zero_variants(hosting: Hosting) -> Iterator[Finding]:
    """A variant of a real-time endpoint that would scale to zero."""
    for target in hosting.targets:
        least, config = target.resource.at("MinCapacity"), hosting.config_of(target.endpoint)
        if least.number != 0 or target.dimension != INSTANCES or config is None:
            continue
        if config.at("AsyncInferenceConfig").is_absent:
            message = "MinCapacity is 0: the variant of a real-time endpoint keeps at least 1 instance"
            hint = "set MinCapacity to 1, or deploy the model as an inference component"
            yield finding_at(target.resource, least, "SEA747", message, hint)


@rule("SEA748")
def target_order(hosting: Hosting) -> Iterator[Finding]:
    """A target that may be registered before what it scales exists."""
    for target in hosting.targets:
        scaled = target.component or target.endpoint
        if scaled is None or scaled.template != target.resource.template:
            continue
        if not hosting.resources.depends(target.resource, scaled):
            message = f"the target does not wait for {scaled.logical_id}"
            hint = f"set DependsOn: {scaled.logical_id}, or refer to it in ResourceId"
            yield finding_at(target.resource, target.resource.at("ResourceId"), "SEA748", message, hint)


@rule("SEA749")
def backlogs(hosting: Hosting) -> Iterator[Finding]:
    """An asynchronous endpoint that is scaled on requests, or on a backlog with a variant's dimension."""
    for target in hosting.targets:
        config = hosting.config_of(target.endpoint)
        if config is None or config.at("AsyncInferenceConfig").is_absent:
            continue
        for policy in hosting.policies_of(target):
            tracking = policy.at(_TRACKING)
            custom = tracking.at("CustomizedMetricSpecification")
            predefined = tracking.at("PredefinedMetricSpecification", "PredefinedMetricType")
            metric = custom.at("MetricName")
            hint = "track ApproximateBacklogSizePerInstance with the dimension EndpointName"
            if predefined.text or (metric.text and metric.text not in BACKLOG):
                tracked = predefined.text or metric.text
                message = f"an asynchronous endpoint is scaled on {tracked}, which an empty queue keeps at 0"
                yield finding_at(policy, predefined if predefined.text else metric, "SEA749", message, hint)
            elif metric.text:
                names = {each.at("Name").text for each in custom.at("Dimensions").items}
                if names and names != {"EndpointName"} and None not in names:
                    dimensions = ", ".join(sorted(filter(None, names)))
                    message = f"{metric.text} has the dimension EndpointName alone, not {dimensions}"
                    yield finding_at(policy, custom.at("Dimensions"), "SEA749", message, hint)


@rule("SEA798")
def named_variants(hosting: Hosting) -> Iterator[Finding]:
    """A scalable target or an alarm of a variant that the endpoint doesn't have, or that has an ARN for a name."""
    for target in hosting.targets:
        place = target.resource.at("ResourceId")
        if scaled := target.component or target.endpoint:
            yield from _named_by_arn(target.resource, place, scaled)
        if target.endpoint:
            yield from _missing_variant(hosting, target.resource, place, target.endpoint, target.variant)
    for alarm in hosting.resources.of(ALARMS[0]):
        for metric in _metrics_of(alarm):
            given = {each.at("Name").text: each.at("Value") for each in metric.at("Dimensions").items}
            for name, kind in (("EndpointName", ENDPOINT), ("InferenceComponentName", COMPONENT)):
                value = given.get(name)
                resource = value and hosting.resources.named(alarm.template, value, kind, name)
                if value and resource:
                    yield from _named_by_arn(alarm, value, resource)
                    if kind == ENDPOINT and (variant := given.get("VariantName")):
                        yield from _missing_variant(hosting, alarm, variant, resource, variant.text)


def _named_by_arn(resource: TemplateResource, value: TemplateValue, named: TemplateResource) -> Iterator[Finding]:
    if any(each.logical_id == named.logical_id and not each.attribute for each in references(value.raw)):
        attribute = "EndpointName" if named.resource_type == ENDPOINT else "InferenceComponentName"
        message = f"Ref of {named.logical_id} is its ARN, and its name is asked for"
        yield finding_at(resource, value, "SEA798", message, f"write !GetAtt {named.logical_id}.{attribute}")


def _missing_variant(
    hosting: Hosting, resource: TemplateResource, value: TemplateValue, endpoint: TemplateResource, variant: str | None
) -> Iterator[Finding]:
    config = hosting.config_of(endpoint)
    lists = [config.at(of) for of in ("ProductionVariants", "ShadowProductionVariants")] if config else []
    names = {each.at("VariantName").text for of in lists for each in of.items}
    is_known = variant is not None and hosting.resources.readable(variant) == variant
    known = sorted(filter(None, names))
    if is_known and known and None not in names and variant not in names:
        message = f"{endpoint.logical_id} has no variant {variant}; it has {listed_names(known)}"
        yield finding_at(resource, value, "SEA798", message, f"name the variant {known[0]}")


@rule("SEA799")
def metric_namespaces(hosting: Hosting) -> Iterator[Finding]:
    """A metric of SageMaker under a namespace that does not have it."""
    given = [(alarm, metric) for alarm in hosting.resources.of(ALARMS[0]) for metric in _metrics_of(alarm)]
    given += [
        (policy, policy.at(_TRACKING, "CustomizedMetricSpecification")) for policy in hosting.resources.of(POLICY)
    ]
    for resource, metric in given:
        namespace, name = metric.at("Namespace"), metric.at("MetricName").text or ""
        same = {each for each in namespaces() if each.strip("/").lower() == (namespace.text or "").strip("/").lower()}
        right = namespaces_of(name) or same
        if same and right and namespace.text not in right:
            hint = f"set Namespace to {' or '.join(sorted(right))}"
            message = f"{namespace.text} has no metric {name}: nothing is ever measured"
            yield finding_at(resource, namespace, "SEA799", message, hint)


@rule("SEA800")
def waking_queues(hosting: Hosting) -> Iterator[Finding]:
    """An asynchronous endpoint at zero that a queue shorter than its target value does not wake."""
    for target in hosting.targets:
        least, config = target.resource.at("MinCapacity"), hosting.config_of(target.endpoint)
        is_zero = least.number == 0 and target.dimension == INSTANCES
        if not is_zero or config is None or not config.at("AsyncInferenceConfig").is_known:
            continue
        tracked = [each.at(_TRACKING) for each in hosting.policies_of(target) if each.at(_TRACKING).is_known]
        values = [each.at("TargetValue").number for each in tracked]
        if not values or any(each is None or each < 1 for each in values) or _wakes(hosting, target, WAKE_BACKLOGS):
            continue
        message = f"MinCapacity is 0, and a queue of at most {max(filter(None, values)):g} requests adds no instance"
        hint = "add a StepScaling policy, and an alarm on HasBacklogWithoutCapacity of the endpoint that starts it"
        yield finding_at(target.resource, least, "SEA800", message, hint)


@rule("SEA801")
def wake_alarms(hosting: Hosting) -> Iterator[Finding]:
    """An alarm that starts the first copy or instance, and that a single request does not raise."""
    at_zero = (each for each in hosting.targets if each.resource.at("MinCapacity").number == 0)
    for policy in (each for target in at_zero for each in hosting.policies_of(target)):
        for alarm in hosting.alarms_of(policy):
            if alarm.at("MetricName").text in {WAKE_METRIC, *WAKE_BACKLOGS}:
                yield from _not_raised(alarm)


def _not_raised(alarm: TemplateResource) -> Iterator[Finding]:
    """Yield why a value of 1 in one period does not raise an alarm."""
    metric, threshold = alarm.at("MetricName").text, alarm.at("Threshold")
    comparison, least = alarm.at("ComparisonOperator").text, threshold.number or 0
    if (comparison == "GreaterThanThreshold" and least >= 1) or (
        comparison == "GreaterThanOrEqualToThreshold" and least > 1
    ):
        sign = ">" if comparison == "GreaterThanThreshold" else ">="
        message = f"{metric} {sign} {threshold.text} is not raised by a single request: it wakes nothing"
        hint = "set ComparisonOperator to GreaterThanOrEqualToThreshold and Threshold to 1"
        yield finding_at(alarm, threshold, "SEA801", message, hint)
    given = [alarm.at(name) for name in ("DatapointsToAlarm", "EvaluationPeriods") if alarm.at(name).is_known]
    # A backlog is published as long as it lasts; a refused request, once.
    is_lost = metric == WAKE_METRIC and alarm.at("TreatMissingData").text != "breaching"
    if is_lost and given and (given[0].number or 0) > 1:
        message = f"{metric} has to be raised in {given[0].text} periods, and a single request is in one"
        yield finding_at(alarm, given[0], "SEA801", message, "set EvaluationPeriods and DatapointsToAlarm to 1")
