"""What an inference component asks to run: one specification, one for each instance type, or an adapter of another."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.control_plane.containers import component_container
from seatrial_laptop.aws.control_plane.endpoints import components_of
from seatrial_laptop.aws.control_plane.instance_pools import pool_with_capacity, pools_of
from seatrial_laptop.aws.control_plane.live_variants import live_variants
from seatrial_laptop.aws.control_plane.records import Kind, Status
from seatrial_laptop.aws.json_document import Document, child, children, text
from seatrial_laptop.aws.runtime.copy_process import CopyFailed

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.control_plane.instance_pools import InstancePool
    from seatrial_laptop.aws.control_plane.records import Record


FEWEST: Final = 2
"""Specifications at least, when there are several."""
BASE: Final = "BaseInferenceComponentName"


def base_name(request: Document) -> str:
    """Return the component whose copies load this adapter; empty for a component with copies of its own."""
    return text(child(request, "Specification"), BASE)


def with_one_specification(cloud: Cloud, request: Document) -> Document:
    """Return a request whose Specification is the one that runs: of several, that of the first pool with capacity.

    Raises:
        ApiError: ValidationException, there is none, or the several ones don't fit the variant.
    """
    several = children(request, "Specifications")
    if not several:
        if not child(request, "Specification"):
            raise invalid("Either Specification or Specifications must be given.")
        return request
    _check_several(several)
    by_type = {text(each, "InstanceType"): each for each in several}
    pools = _pools(cloud, request)
    missing = [pool.instance_type for pool in pools if pool.instance_type not in by_type]
    if missing:
        raise invalid(f"Specifications lack the instance types of the variant: {', '.join(missing)}.")
    try:
        found = pool_with_capacity(pools, cloud.faults.settings).instance_type
    except CopyFailed:
        found = pools[0].instance_type
    return {**request, "Specification": by_type[found]}


def specified_container(cloud: Cloud, request: Document) -> ContainerSpec:
    """Return the container of a component.

    Raises:
        ApiError: ValidationException, the specification isn't whole.
    """
    specification = child(request, "Specification")
    if ("ModelName" in specification) == ("Container" in specification):
        raise invalid("Specification must have either ModelName or Container.")
    if "ComputeResourceRequirements" not in specification:
        raise invalid("Specification must have ComputeResourceRequirements.")
    spec = component_container(cloud.store, specification)
    if not spec.image:
        raise invalid("The container must name an Image.")
    return spec


def check_adapter(cloud: Cloud, request: Document) -> Record:
    """Return the base of an adapter.

    Raises:
        ApiError: ValidationException, the base isn't there or doesn't fit, or the adapter asks for more than its files.
    """
    specification, endpoint = child(request, "Specification"), text(request, "EndpointName")
    base = cloud.store.need(Kind.INFERENCE_COMPONENT, base_name(request))
    if text(base.request, "EndpointName") != endpoint:
        raise invalid(f"Base inference component {base.name} is not on endpoint {endpoint}.")
    if base_name(base.request):
        raise invalid(f"Base inference component {base.name} is an adapter itself.")
    if base.status is not Status.IN_SERVICE:
        raise invalid(f"Base inference component {base.name} must be InService: {base.status}.")
    if "ComputeResourceRequirements" in specification:
        raise invalid("An adapter has no ComputeResourceRequirements: it uses those of its base.")
    if not text(child(specification, "Container"), "ArtifactUrl"):
        raise invalid("An adapter needs Container.ArtifactUrl.")
    return base


def adapters_of(cloud: Cloud, component: Record) -> list[str]:
    """Return the names of a component's adapters."""
    placed = components_of(cloud, text(component.request, "EndpointName"))
    return [each.name for each in placed if base_name(each.request) == component.name]


def _check_several(several: list[Document]) -> None:
    types = Counter(text(each, "InstanceType") for each in several)
    if len(several) < FEWEST or "" in types or max(types.values()) > 1:
        raise invalid("Specifications must be two or more, each with an InstanceType of its own.")
    if any(BASE in each for each in several):
        raise invalid("An adapter takes one Specification.")


def _pools(cloud: Cloud, request: Document) -> tuple[InstancePool, ...]:
    endpoint = cloud.store.need(Kind.ENDPOINT, text(request, "EndpointName"))
    live = live_variants(cloud.store, endpoint)
    found = next((each for each in live if each.name == text(request, "VariantName", live[0].name)), live[0])
    return pools_of(found.document)
