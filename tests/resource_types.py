"""The resource types of a template that the catalog has no schema of, and its properties as a deployment has them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ministack.services.cloudformation import engine

from seatrial_base.catalog.resource_types import WITHOUT_HANDLERS, find_resource_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CUSTOM = "Custom::"
ACCOUNT = "123456789012"
TARGETS = {
    "sagemaker:inference-component:DesiredCopyCount": "inference-component/lab-search-a-small",
    "sagemaker:variant:DesiredInstanceCount": "endpoint/lab-search-a-small/variant/model",
}
NUMBERS = ("CopyCount", "TargetConcurrencyPerCopy")
ARNS = {"AWS::SNS::Topic": "sns:us-east-1:{}:topic", "AWS::KMS::Key": "kms:us-east-1:{}:key/key"}


def unknown_types(resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the types of resources without a schema and without a reason to have none.

    Add a type to `scripts/build_resource_schemas.py`, and what its handlers need to `handler_conditions.json`.
    """
    types = {f"{resource['Type']}" for resource in resources}
    known = {name for name in types if name in WITHOUT_HANDLERS or find_resource_schema(name)}
    return sorted(name for name in types - known if not name.startswith(CUSTOM))


class Attributes(dict[str, str]):
    """The attributes of a resource that is not there yet."""

    def __init__(self, logical_id: str, resource: Mapping[str, Any]) -> None:
        path = resource.get("Properties", {}).get("Path", "/")
        place = ARNS.get(resource["Type"], f"iam::{{}}:role{path}{logical_id}")
        super().__init__(Arn=f"arn:aws:{place.format(ACCOUNT)}", EndpointName="lab-search-a-small")
        self.update(dict.fromkeys(NUMBERS, "1"))
        self.logical_id = logical_id

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> str:
        return f"{self.logical_id}-{key}".lower()


def target_id(properties: Mapping[str, str]) -> str:
    """Return the ID that Application Auto Scaling's handler gives a target."""
    dimension = properties["ScalableDimension"]
    return f"{TARGETS[dimension]}|{dimension}|sagemaker"


def resolved_resources(
    template: Mapping[str, Any], parameters: Mapping[str, str]
) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield the resources whose condition holds: logical ID, type, properties; references to others are stand-ins."""
    declared = template.get("Parameters", {}).items()
    asked = {name: each for name, each in declared if not each["Type"].startswith("AWS::SSM::")}
    template = {**template, "Parameters": asked}  # without the version of the bootstrap, which no resource refers to
    given = [{"Key": key, "Value": value} for key, value in parameters.items()]
    values = engine._resolve_parameters(template, given)  # noqa: SLF001 (the contract)
    conditions = engine._evaluate_conditions(template, values)  # noqa: SLF001 (the contract)
    made = {
        name: {
            "PhysicalResourceId": target_id(each["Properties"]) if "Scalable" in each["Type"] else name,
            "Attributes": Attributes(name, each),
        }
        for name, each in template["Resources"].items()
    }
    for name, each in template["Resources"].items():
        if conditions.get(each.get("Condition"), True):
            written = copy.deepcopy(each.get("Properties", {}))
            mappings = template.get("Mappings", {})
            found = engine._resolve_refs(written, made, values, conditions, mappings, "SC-1", "id")  # noqa: SLF001 (the contract)
            kept = {key: value for key, value in found.items() if value is not engine._NO_VALUE}  # noqa: SLF001 (the contract)
            yield name, each["Type"], kept
