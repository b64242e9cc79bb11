"""Facts of CloudFormation resource types: the regions that have one, and what only a new one can have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from seatrial_base.catalog.resource_schemas import RESOURCE_SCHEMAS, ResourceSchema
from seatrial_base.catalog.rows import CatalogTable

CUSTOM = "AWS::CloudFormation::CustomResource"


@dataclass(frozen=True, slots=True)
class ReplacementRule:
    """How one resource type is updated.

    Attributes:
        resource_type: CloudFormation's name of the type.
        replaced_by: Paths of which any change replaces the resource, with those of which only some changes do.
        named_by: Paths that give it a name of its own: two resources can't have the same values of them at once.
        unchangeable: Properties of which a change can't be carried out: it neither replaces nor updates.
        source: Where the facts were read.
        date: When they were valid.
    """

    resource_type: str
    replaced_by: tuple[str, ...]
    named_by: tuple[str, ...]
    unchangeable: tuple[str, ...]
    source: str
    date: str


def find_replacement_rule(resource_type: str) -> ReplacementRule | None:
    """Return the rule of a type, `None` when the catalog lacks it; every `Custom::…` is a custom resource."""
    return _by_type().get(CUSTOM if resource_type.startswith("Custom::") else resource_type)


@cache
def all_replacement_rules() -> tuple[ReplacementRule, ...]:
    """Return the rule of every type whose schema is known, sorted by name."""
    return tuple(_rule(schema, _NAMINGS.get(schema.resource_type)) for schema in RESOURCE_SCHEMAS.rows)


@dataclass(frozen=True, slots=True)
class _Naming:
    """What a schema does not tell of a type: its names, and which of its create-only properties are refused."""

    resource_type: str
    named_by: tuple[str, ...]
    unchangeable: tuple[str, ...]
    source: str
    date: str


_NAMINGS: Final = CatalogTable(_Naming, "replacement.json", key="resource_type")


def _rule(schema: ResourceSchema, naming: _Naming | None) -> ReplacementRule:
    unchangeable = naming.unchangeable if naming else ()
    fixed = {*schema.create_only, *schema.conditional_create_only} - {*unchangeable}
    return ReplacementRule(
        resource_type=schema.resource_type,
        replaced_by=tuple(sorted(fixed)),
        named_by=naming.named_by if naming else (),
        unchangeable=unchangeable,
        source=schema.source,
        date=schema.date,
    )


@cache
def _by_type() -> dict[str, ReplacementRule]:
    return {rule.resource_type: rule for rule in all_replacement_rules()}


INFERENCE_COMPONENT = "AWS::SageMaker::InferenceComponent"


@dataclass(frozen=True, slots=True)
class Availability:
    """The regions of one CloudFormation resource type.

    Attributes:
        resource_type: Its name.
        regions: The regions that have it, sorted.
        source: Where they were read.
        date: When.
    """

    resource_type: str
    regions: tuple[str, ...]
    source: str
    date: str


AVAILABILITY: Final = CatalogTable(Availability, "regions.json", key="resource_type")


def availability(resource_type: str = INFERENCE_COMPONENT) -> Availability:
    """Return the regions of a resource type of the catalog."""
    return AVAILABILITY[resource_type]
