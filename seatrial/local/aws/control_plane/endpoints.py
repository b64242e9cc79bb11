"""Endpoints: their variants' copies, from creation to deletion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    hosts = _hosts(cloud, text(request, "EndpointConfigName"))
    kept = {key: value for key, value in request.items() if key != "Tags"}
    record = Record(Kind.ENDPOINT, text(request, "EndpointName"), kept, status=Status.CREATING)
    record = cloud.store.add(record, children(request, "Tags"))
    change = _Deployment(cloud, record, kept, wanted_copies, hosts)
    in_background(cloud, record, change.run, name=f"create-{record.name}")
    return {"EndpointArn": record.arn}


def update_endpoint(cloud: Cloud, request: Document) -> Document:
    """Move an endpoint to another configuration; when the new copies fail, the old ones stay (the silent rollback).

    With RetainAllVariantProperties the variants keep their instance counts, unless DesiredInstanceCount is excluded.

    Raises:
        ApiError: ValidationException, the endpoint or the configuration isn't there, or the endpoint is changing.
    """
    with cloud.store.lock:
        record = settled(cloud, Kind.ENDPOINT, text(request, "EndpointName"))
        config_name = text(request, "EndpointConfigName")
        retained = _retains_counts(request)
        wanted_copies = _wanted_copies(cloud, record.name, config_name, retained=retained)
        hosts = _hosts(cloud, config_name)
        cloud.store.change(record, status=Status.UPDATING)
    wanted = {**record.request, "EndpointConfigName": config_name}
    change = _Deployment(cloud, record, wanted, wanted_copies, hosts, retained=retained)
    in_background(cloud, record, change.run, name=f"update-{record.name}")
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
        "ProductionVariants": [_variant_view(cloud, record.name, each) for each in variants(config)] if config else [],
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


def _wanted_copies(cloud: Cloud, name: str, config_name: str, *, retained: bool = False) -> WantedCopies:
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, config_name)
    return {
        place: (
            model_container(cloud.store, text(variant, "ModelName"), variant),
            _count(cloud, place, variant, retained),
        )
        for variant in variants(config)
        if "ModelName" in variant and (place := Place(name, text(variant, "VariantName")))
    }


def _count(cloud: Cloud, place: Place, variant: Document, retained: bool) -> int:  # noqa: FBT001 (one caller)
    live = len(cloud.running.copies(place)) if retained else 0
    return live or whole(variant, "InitialInstanceCount", 1)


def _hosts(cloud: Cloud, config_name: str) -> list[Document]:
    """Return the variants that host inference components."""
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, config_name)
    return [variant for variant in variants(config) if "ModelName" not in variant]


def _retains_counts(request: Document) -> bool:
    excluded = [text(each, "VariantPropertyType") for each in children(request, "ExcludeRetainedVariantProperties")]
    return request.get("RetainAllVariantProperties") is True and "DesiredInstanceCount" not in excluded


@dataclass(frozen=True, slots=True)
class _Deployment:
    """What the creation or the update of an endpoint does in the background."""

    cloud: Cloud
    record: Record
    wanted: Document
    copies: WantedCopies
    hosts: list[Document]
    retained: bool = False

    def run(self) -> None:
        cloud, record = self.cloud, self.record
        try:
            self._check_limit()
            for variant in self.hosts:
                cloud.fleets.open(record.name, variant, retained=self.retained)
            fresh = _launch(cloud, self.copies)
        except CopyFailed as failure:
            status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
            cloud.store.change(record, status=status, failure_reason=clipped(str(failure)))
            return
        cloud.fleets.close(record.name, keep=[text(variant, "VariantName") for variant in self.hosts])
        for place in _places(cloud, record) - fresh.keys():
            cloud.running.put(place, ())
        for place, copies in fresh.items():
            cloud.running.put(place, copies)
        cloud.store.change(record, status=Status.IN_SERVICE, request=self.wanted)

    def _check_limit(self) -> None:
        limit = self.cloud.faults.settings().capacity_limit
        count = sum(count for _, count in self.copies.values())
        if limit is not None and count > limit:
            raise CopyFailed(f"InsufficientInstanceCapacity: {count} instances were asked for, and {limit} can be had.")


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
    cloud.fleets.close(record.name)
    cloud.store.remove(record)


def _variant_view(cloud: Cloud, endpoint_name: str, variant: Document) -> Document:
    name, weight = text(variant, "VariantName"), variant.get("InitialVariantWeight", 1.0)
    fleet = cloud.fleets.find(endpoint_name, name)
    live = len(cloud.running.copies(Place(endpoint_name, name))) or whole(variant, "InitialInstanceCount", 1)
    current, desired = (fleet.current, fleet.desired) if fleet else (live, live)
    counts = {"CurrentInstanceCount": current, "DesiredInstanceCount": desired}
    weights = {"CurrentWeight": weight, "DesiredWeight": weight}
    kept = {key: variant[key] for key in ("ManagedInstanceScaling", "RoutingConfig") if key in variant}
    return {"VariantName": name, **counts, **weights, **kept}
