"""Endpoints: their variants' copies, from creation to deletion."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.local.aws.api import invalid
from seatrial.local.aws.control_plane.cloud import Cloud, clipped, in_background
from seatrial.local.aws.control_plane.containers import ContainerSpec, model_container
from seatrial.local.aws.control_plane.records import Kind, Record, Status, variants
from seatrial.local.aws.json_document import Document, children, text, whole
from seatrial.local.aws.runtime.copy_process import CopyFailed, CopyProcess
from seatrial.local.aws.runtime.running_copies import Place, stop_copies

WantedCopies = Mapping[Place, tuple[ContainerSpec, int]]
"""What each variant with a model runs, and how many copies of it."""


def create_endpoint(cloud: Cloud, request: Document) -> Document:
    """Start an endpoint; its variants with a model get one process per instance.

    Raises:
        ApiError: ValidationException, the configuration isn't there or the name is taken.
    """
    wanted_copies = _wanted_copies(cloud, text(request, "EndpointName"), text(request, "EndpointConfigName"))
    kept = {key: value for key, value in request.items() if key != "Tags"}
    record = Record(Kind.ENDPOINT, text(request, "EndpointName"), kept, status=Status.CREATING)
    cloud.store.add(record, children(request, "Tags"))
    in_background(cloud, record, lambda: _deploy(cloud, record, kept, wanted_copies), name=f"create-{record.name}")
    return {"EndpointArn": record.arn}


def update_endpoint(cloud: Cloud, request: Document) -> Document:
    """Move an endpoint to another configuration; when the new copies fail, the old ones stay (the silent rollback).

    Raises:
        ApiError: ValidationException, the endpoint or the configuration isn't there, or the endpoint is changing.
    """
    with cloud.store.lock:
        record = settled(cloud, Kind.ENDPOINT, text(request, "EndpointName"))
        wanted_copies = _wanted_copies(cloud, record.name, text(request, "EndpointConfigName"))
        cloud.store.change(record, status=Status.UPDATING)
    wanted = {**record.request, "EndpointConfigName": text(request, "EndpointConfigName")}
    in_background(cloud, record, lambda: _deploy(cloud, record, wanted, wanted_copies), name=f"update-{record.name}")
    return {"EndpointArn": record.arn}


def delete_endpoint(cloud: Cloud, request: Document) -> Document:
    """Stop an endpoint.

    Raises:
        ApiError: ValidationException, the endpoint isn't there, is changing, or still has inference components.
    """
    with cloud.store.lock:
        record = settled(cloud, Kind.ENDPOINT, text(request, "EndpointName"))
        placed = [component.name for component in components_of(cloud, record.name)]
        if placed:
            raise invalid(
                f"Cannot delete endpoint {record.name} while it hosts inference components: {', '.join(placed)}. "
                "Delete them first."
            )
        cloud.store.change(record, status=Status.DELETING)
    in_background(cloud, record, lambda: _remove(cloud, record), name=f"delete-{record.name}")
    return {}


def endpoint_view(cloud: Cloud, record: Record) -> Document:
    """Return what DescribeEndpoint says."""
    config = cloud.store.find(Kind.ENDPOINT_CONFIG, text(record.request, "EndpointConfigName"))
    reason = {"FailureReason": record.failure_reason} if record.failure_reason else {}
    return {
        **record.request,
        **reason,
        "EndpointStatus": record.status,
        "ProductionVariants": [_variant_view(variant) for variant in variants(config)] if config else [],
    }


def components_of(cloud: Cloud, endpoint_name: str) -> list[Record]:
    """Return the inference components of an endpoint."""
    every = cloud.store.all(Kind.INFERENCE_COMPONENT)
    return [record for record in every if text(record.request, "EndpointName") == endpoint_name]


def settled(cloud: Cloud, kind: Kind, name: str) -> Record:
    """Return a record that isn't changing.

    Raises:
        ApiError: ValidationException, it isn't there or is changing.
    """
    record = cloud.store.need(kind, name)
    if record.status and record.status.in_transit:
        raise invalid(f'Cannot update in-progress {kind.in_words} "{record.arn}": its status is {record.status}.')
    return record


def _wanted_copies(cloud: Cloud, name: str, config_name: str) -> WantedCopies:
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, config_name)
    return {
        Place(name, text(variant, "VariantName")): (
            model_container(cloud.store, text(variant, "ModelName"), variant),
            whole(variant, "InitialInstanceCount", 1),
        )
        for variant in variants(config)
        if "ModelName" in variant
    }


def _deploy(cloud: Cloud, record: Record, wanted: Document, wanted_copies: WantedCopies) -> None:
    try:
        fresh = _launch(cloud, wanted_copies)
    except CopyFailed as failure:
        status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
        cloud.store.change(record, status=status, failure_reason=clipped(str(failure)))
        return
    for place in _places(cloud, record) - fresh.keys():
        cloud.running.put(place, ())
    for place, copies in fresh.items():
        cloud.running.put(place, copies)
    cloud.store.change(record, status=Status.IN_SERVICE, request=wanted)


def _launch(cloud: Cloud, wanted_copies: WantedCopies) -> dict[Place, tuple[CopyProcess, ...]]:
    fresh: dict[Place, tuple[CopyProcess, ...]] = {}
    try:
        for place, (spec, count) in wanted_copies.items():
            fresh[place] = cloud.running.launch(place, spec, count)
    except CopyFailed:
        for copies in fresh.values():
            stop_copies(copies)
        raise
    return fresh


def _places(cloud: Cloud, record: Record) -> set[Place]:
    return {place for place in cloud.running.places() if place.variant and place.owner == record.name}


def _remove(cloud: Cloud, record: Record) -> None:
    for place in _places(cloud, record):
        cloud.running.put(place, ())
    cloud.store.remove(record)


def _variant_view(variant: Document) -> Document:
    count, weight = whole(variant, "InitialInstanceCount", 1), variant.get("InitialVariantWeight", 1.0)
    counts = {"CurrentInstanceCount": count, "DesiredInstanceCount": count}
    weights = {"CurrentWeight": weight, "DesiredWeight": weight}
    kept = {key: variant[key] for key in ("ManagedInstanceScaling", "RoutingConfig") if key in variant}
    return {"VariantName": text(variant, "VariantName"), **counts, **weights, **kept}
