"""Which resources of a template serve, and how they hang together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.cloudformation.intrinsic import references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from seatrial.operations.template_diff import ResourceChange, TemplateDiff
    from seatrial_lint.cloudformation.template import Template, TemplateResource

MODEL = "AWS::SageMaker::Model"
CONFIG = "AWS::SageMaker::EndpointConfig"
ENDPOINT = "AWS::SageMaker::Endpoint"
ALARM = "AWS::CloudWatch::Alarm"
COMPONENT = "AWS::SageMaker::InferenceComponent"
CANDIDATE = "Custom::Candidate"
"""The custom resources of which the names begin so try a candidate component on an update."""
SPECIFICATION = ("Specification", "Specifications")


def of_type(template: Template, resource_type: str) -> dict[str, TemplateResource]:
    """Return the resources of one type by logical ID."""
    return {name: one for name, one in template.resources.items() if one.resource_type == resource_type}


def config_of(template: Template, endpoint: TemplateResource) -> TemplateResource | None:
    """Return the configuration of an endpoint; `None` when the template does not hold it."""
    for reference in references(endpoint.properties.get("EndpointConfigName")):
        found = template.resources.get(reference.logical_id)
        if found is not None and found.resource_type == CONFIG:
            return found
    return None


def variant_parts(config: TemplateResource) -> dict[str, Mapping[str, JsonValue]]:
    """Return the production variants of a configuration by name."""
    found = config.properties.get("ProductionVariants")
    rows = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return {f"{one.get('VariantName', '')}": one for one in rows}


def at(value: JsonValue, *names: str) -> JsonValue:
    """Return what stands at a path of mappings; `None` when nothing does."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def users_of(template: Template, logical_id: str, resource_type: str) -> Iterator[str]:
    """Yield the resources of one type that refer to another, sorted."""
    for name, resource in sorted(of_type(template, resource_type).items()):
        if any(reference.logical_id == logical_id for reference in references(dict(resource.properties))):
            yield name


def moves_component(diff: TemplateDiff) -> bool:
    """Tell whether an update moves a component that serves to another model or size."""
    return any(is_moved(change) for change in diff.changes)


def is_moved(change: ResourceChange) -> bool:
    """Tell whether a component that stays is moved to another model or size."""
    return change.resource_type == COMPONENT and change.action == "updated" and change.changes(*SPECIFICATION)


def others(diff: TemplateDiff, resource_type: str, action: str) -> tuple[str, ...]:
    """Return the logical IDs of a type to which something is done."""
    return tuple(
        change.logical_id for change in diff.changes if (change.resource_type, change.action) == (resource_type, action)
    )
