"""Endpoints and how they, and components, are updated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.template_rules.hosting import COMPONENT, ENDPOINT, finding_at, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource
    from seatrial_lint.cloudformation.template_value import TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting

MOST_ALARMS = 10
BATCH_PERCENT = (5, 50)
LINEAR_PERCENT = (10, 50)
_HALF = 50
_REQUIRED = ("MaximumBatchSize", "WaitIntervalInSeconds")


@rule("SEA720", "SEA722")
def policies(hosting: Hosting) -> Iterator[Finding]:
    """Two update policies, or a rolling one without what the API requires."""
    for resource in _updated(hosting):
        config = resource.at("DeploymentConfig")
        rolling, blue_green = config.at("RollingUpdatePolicy"), config.at("BlueGreenUpdatePolicy")
        if rolling.is_known and blue_green.is_known:
            message = "DeploymentConfig has both RollingUpdatePolicy and BlueGreenUpdatePolicy"
            yield finding_at(resource, config, "SEA720", message, "keep one of them")
        for missing in (rolling.at(name) for name in _REQUIRED if rolling.is_known):
            if missing.is_absent:
                name = missing.path.rpartition(".")[2]
                message = f"RollingUpdatePolicy has no {name}, which the API requires"
                yield finding_at(resource, missing, "SEA722", message, f"set {name}")


@rule("SEA721")
def batches(hosting: Hosting) -> Iterator[Finding]:
    """A batch of a rolling update outside 5 % to 50 %."""
    for resource in _updated(hosting):
        size = resource.at("DeploymentConfig", "RollingUpdatePolicy", "MaximumBatchSize")
        value, of = size.at("Value"), _size_of(hosting, resource)
        if value.number is None:
            continue
        if size.at("Type").text == "CAPACITY_PERCENT":
            bad = not BATCH_PERCENT[0] <= value.number <= BATCH_PERCENT[1]
            told = f"{value.text} %"
        elif of is not None and of > 1:  # one copy is a batch of one
            bad = not of * BATCH_PERCENT[0] / 100 <= value.number <= of * BATCH_PERCENT[1] / 100
            told = f"{value.text} of {of:.0f}"
        else:
            continue
        if bad:
            message = f"a batch of {told} is outside {BATCH_PERCENT[0]} % to {BATCH_PERCENT[1]} %"
            yield finding_at(resource, value, "SEA721", message, "set a batch of at most half of the capacity")


@rule("SEA723")
def rollback_alarms(hosting: Hosting) -> Iterator[Finding]:
    """More alarms than the API takes, or a rollback without any."""
    for resource in _updated(hosting):
        rollback = resource.at("DeploymentConfig", "AutoRollbackConfiguration")
        given = rollback.at("Alarms")
        if len(given.items) > MOST_ALARMS:
            message = f"{len(given.items)} alarms exceed {MOST_ALARMS}"
            yield finding_at(resource, given, "SEA723", message, "name the ten that matter most")
        elif rollback.is_known and (given.is_absent or given.raw == []):
            message = "AutoRollbackConfiguration has no alarm, so nothing rolls an update back"
            yield finding_at(resource, given, "SEA723", message, "name an alarm, or remove AutoRollbackConfiguration")


@rule("SEA725")
def traffic(hosting: Hosting) -> Iterator[Finding]:
    """Steps of a blue/green update that the API refuses."""
    for endpoint in hosting.resources.of(ENDPOINT):
        routing = endpoint.at("DeploymentConfig", "BlueGreenUpdatePolicy", "TrafficRoutingConfiguration")
        for kind, name, least in (("CANARY", "CanarySize", 0), ("LINEAR", "LinearStepSize", LINEAR_PERCENT[0])):
            size = routing.at(name)
            if routing.at("Type").text == kind and size.is_absent:
                yield finding_at(endpoint, size, "SEA725", f"Type {kind} requires {name}", f"set {name}")
            value = size.at("Value")
            is_percent = size.at("Type").text == "CAPACITY_PERCENT"
            if is_percent and value.number is not None and not least <= value.number <= _HALF:
                message = f"{name} {value.text} % is outside {least} % to {_HALF} %"
                yield finding_at(endpoint, value, "SEA725", message, f"set {least} to {_HALF}")


@rule("SEA727")
def several_variants(hosting: Hosting) -> Iterator[Finding]:
    """A rolling update of several variants, which falls back to all at once."""
    for endpoint in hosting.resources.of(ENDPOINT):
        rolling, config = endpoint.at("DeploymentConfig", "RollingUpdatePolicy"), hosting.config_of(endpoint)
        variants = config.at("ProductionVariants").items if config else ()
        if rolling.is_known and len(variants) > 1:
            message = f"{len(variants)} variants are not updated in batches: all traffic moves at once, without alarms"
            yield finding_at(endpoint, rolling, "SEA727", message, "set BlueGreenUpdatePolicy with Type CANARY")


@rule("SEA724")
def retained(hosting: Hosting) -> Iterator[Finding]:
    """An update that sets a scaled variant back to its initial counts."""
    scaled = {target.endpoint.key for target in hosting.targets if target.endpoint}
    for endpoint in hosting.resources.of(ENDPOINT):
        retain = endpoint.at("RetainAllVariantProperties")
        if endpoint.key in scaled and (retain.is_absent or retain.flag is False):
            message = "the variant is scaled, and an update sets it back to InitialInstanceCount"
            yield finding_at(endpoint, retain, "SEA724", message, "set RetainAllVariantProperties: true")


def _updated(hosting: Hosting) -> tuple[TemplateResource, ...]:
    return (*hosting.resources.of(ENDPOINT), *hosting.resources.of(COMPONENT))


def _size_of(hosting: Hosting, resource: TemplateResource) -> float | None:
    """Return the copies of a component or the instances of an endpoint with one variant, where they are fixed."""
    if resource.resource_type == COMPONENT:
        return None if resource.key in hosting.scaled else resource.at("RuntimeConfig", "CopyCount").number
    config = hosting.config_of(resource)
    variants: tuple[TemplateValue, ...] = config.at("ProductionVariants").items if config else ()
    scaled = resource.key in hosting.scaled
    managed = any(not each.at("ManagedInstanceScaling").is_absent for each in variants)
    return variants[0].at("InitialInstanceCount").number if len(variants) == 1 and not (scaled or managed) else None
