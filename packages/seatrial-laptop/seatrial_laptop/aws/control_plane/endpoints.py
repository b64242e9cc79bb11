"""Endpoints: their variants' copies, from creation to deletion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.control_plane.cloud import Cloud, clipped, in_background
from seatrial_laptop.aws.control_plane.records import (
    COUNT,
    DESIRED,
    WEIGHT,
    EmulatedVariant,
    Kind,
    Record,
    Status,
    configured_variants,
    is_asynchronous,
    live_variants,
    merged_changes,
)
from seatrial_laptop.aws.control_plane.rollout import (
    AlarmWatch,
    FleetShift,
    WantedVariant,
    check_alarms,
    check_capacity,
    launch_variant,
    restart_component,
    wanted_variant,
)
from seatrial_laptop.aws.json_document import Document, child, children, text_member
from seatrial_laptop.aws.runtime.running_copies import CopyFailed, CopyPlace, stop_copies
from seatrial_laptop.aws.runtime.telemetry import copy_dimensions, endpoint_dimensions, metric_dimensions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_laptop.aws.runtime.running_copies import CopyProcess

WantedCopies = Mapping[CopyPlace, WantedVariant]
"""What each variant with a model runs."""


def create_endpoint(cloud: Cloud, request: Document) -> Document:
    """Start an endpoint; its variants with a model get one process per instance.

    Raises:
        ApiError: ValidationException, the configuration isn't there or the name is taken.
    """
    name, config_name = text_member(request, "EndpointName"), text_member(request, "EndpointConfigName")
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, config_name)
    variants = configured_variants(config)
    wanted_copies = _wanted_copies(cloud, name, variants)
    check_alarms(cloud, child(request, "DeploymentConfig"), config)
    kept = {key: value for key, value in request.items() if key != "Tags"}
    record = cloud.store.add(Record(Kind.ENDPOINT, name, kept, status=Status.CREATING), children(request, "Tags"))
    change = _Deployment(cloud, record, kept, wanted_copies, _hosts(variants), {})
    in_background(cloud, record, change.run, name=f"create-{record.name}")
    return {"EndpointArn": record.arn}


def update_endpoint(cloud: Cloud, request: Document) -> Document:
    """Move an endpoint to another configuration; when the new copies fail, the old ones stay (the silent rollback).

    With RetainAllVariantProperties the variants keep their weights and instance counts, unless they are excluded.

    Raises:
        ApiError: ValidationException, the endpoint or the configuration isn't there, or the endpoint is changing.
    """
    with cloud.store.lock:
        record = settled_record(cloud, Kind.ENDPOINT, text_member(request, "EndpointName"))
        config = cloud.store.need(Kind.ENDPOINT_CONFIG, text_member(request, "EndpointConfigName"))
        if _has(record, config.name) and cloud.faults.settings().same_config == "refused":
            # In our words: SageMaker's are not known.
            raise invalid(
                f'Cannot update endpoint "{record.arn}": it has endpoint configuration "{config.arn}" already. '
                "You must create a new EndpointConfig."
            )
        kept = child(record.request, "DeploymentConfig") if request.get("RetainDeploymentConfig") is True else {}
        deployment = child(request, "DeploymentConfig") or kept
        check_alarms(cloud, deployment, config)
        desired = _retained(cloud, record, config, request)
        variants = configured_variants(config, desired)
        wanted_copies = _wanted_copies(cloud, record.name, variants)
        cloud.store.change(record, status=Status.UPDATING)
    last = {"DeploymentConfig": deployment, "LastDeploymentConfig": deployment} if deployment else {}
    plain = {key: value for key, value in record.request.items() if key not in ("DeploymentConfig", DESIRED)}
    wanted = {**plain, "EndpointConfigName": config.name, **last, **({DESIRED: desired} if desired else {})}
    retained = _retains(request, COUNT)
    change = _Deployment(cloud, record, wanted, wanted_copies, _hosts(variants), deployment, retained=retained)
    in_background(cloud, record, change.run, name=f"update-{record.name}")
    return {"EndpointArn": record.arn}


def update_weights_and_capacities(cloud: Cloud, request: Document) -> Document:
    """Change the weights and the instance counts of variants with models.

    Raises:
        ApiError: ValidationException, the endpoint or a variant isn't there, the endpoint is changing, or a count is
            not allowed.
    """
    changes = children(request, "DesiredWeightsAndCapacities")
    with cloud.store.lock:
        record = settled_record(cloud, Kind.ENDPOINT, text_member(request, "EndpointName"))
        _check_changes(cloud, record, changes)
        desired = merged_changes(children(record.request, DESIRED), changes)
        wanted = {**record.request, DESIRED: desired}
        changed = Record(record.kind, record.name, wanted)
        cloud.store.change(record, status=Status.UPDATING)
    wanted_copies = _wanted_copies(cloud, record.name, live_variants(cloud.store, changed))
    change = _Resize(cloud, record, wanted, wanted_copies)
    in_background(cloud, record, change.run, name=f"resize-{record.name}")
    return {"EndpointArn": record.arn}


def delete_endpoint(cloud: Cloud, request: Document) -> Document:
    """Stop an endpoint.

    Raises:
        ApiError: ValidationException, the endpoint isn't there, is changing, or still has inference components.
    """
    with cloud.store.lock:
        record = settled_record(cloud, Kind.ENDPOINT, text_member(request, "EndpointName"))
        placed = [component.name for component in components_of(cloud, record.name)]
        if placed:
            raise invalid(
                "Cannot delete endpoint with inference component associated. Please delete inference component and "
                f"try it again. ({', '.join(placed)})"
            )
        cloud.store.change(record, status=Status.DELETING)
    in_background(cloud, record, lambda: _remove(cloud, record), name=f"delete-{record.name}")
    return {}


def endpoint_view(cloud: Cloud, record: Record) -> Document:
    """Return the response of DescribeEndpoint."""
    config = cloud.store.find(Kind.ENDPOINT_CONFIG, text_member(record.request, "EndpointConfigName"))
    reason = {"FailureReason": record.failure_reason} if record.failure_reason else {}
    live = live_variants(cloud.store, record)
    views = [(each.is_shadow, _variant_view(cloud, record.name, each)) for each in live]
    shadows = [view for is_shadow, view in views if is_shadow]
    return {
        **record.request,
        **reason,
        **(_reported_of_config(config.request) if config else {}),
        "EndpointStatus": record.status,
        "ProductionVariants": [view for is_shadow, view in views if not is_shadow],
        **({"ShadowProductionVariants": shadows} if shadows else {}),
    }


def components_of(cloud: Cloud, endpoint_name: str) -> list[Record]:
    """Return the inference components of an endpoint."""
    every = cloud.store.all(Kind.INFERENCE_COMPONENT)
    return [record for record in every if text_member(record.request, "EndpointName") == endpoint_name]


def serving_component(component: Record) -> str:
    """Return the component whose copies serve: an adapter's base, or the component itself."""
    return text_member(child(component.request, "Specification"), "BaseInferenceComponentName") or component.name


def settled_record(cloud: Cloud, kind: Kind, name: str) -> Record:
    """Return a record that isn't changing.

    Raises:
        ApiError: ValidationException, it isn't there or is changing.
    """
    record = cloud.store.need(kind, name)
    if record.status and record.status.in_transit:
        raise invalid(f'Cannot update in-progress {kind.in_words} "{record.arn}": its status is {record.status}.')
    return record


def live_copies(cloud: Cloud, endpoint_name: str, variant: str) -> int:
    """Return how many instances of a variant with a model serve."""
    return len(cloud.running.copies(CopyPlace(endpoint_name, variant)))


def _wanted_copies(cloud: Cloud, name: str, variants: Sequence[EmulatedVariant]) -> WantedCopies:
    return {
        CopyPlace(name, variant.name): wanted_variant(cloud, variant.document, variant.instances)
        for variant in variants
        if variant.has_model
    }


def _hosts(variants: Sequence[EmulatedVariant]) -> list[Document]:
    """Return the variants that host inference components."""
    return [variant.document for variant in variants if not variant.has_model]


def _has(record: Record, config_name: object) -> bool:
    return text_member(record.request, "EndpointConfigName") == config_name


def _retains(request: Document, what: str) -> bool:
    excluded = children(request, "ExcludeRetainedVariantProperties")
    retained = request.get("RetainAllVariantProperties") is True
    return retained and what not in [text_member(each, "VariantPropertyType") for each in excluded]


def _retained(cloud: Cloud, record: Record, config: Record, request: Document) -> list[Document]:
    """Return the weights and counts that the variants of the new configuration keep."""
    names = {variant.name for variant in configured_variants(config)}
    kept: list[Document] = []
    for variant in live_variants(cloud.store, record):
        weight = {WEIGHT: variant.weight} if _retains(request, WEIGHT) else {}
        live = live_copies(cloud, record.name, variant.name) or variant.instances
        count = {COUNT: live} if variant.has_model and _retains(request, COUNT) else {}
        if variant.name in names and (weight or count):
            kept.append({"VariantName": variant.name, **weight, **count})
    return kept


def _check_changes(cloud: Cloud, record: Record, changes: Sequence[Document]) -> None:
    variants = {variant.name: variant for variant in live_variants(cloud.store, record)}
    counts = Counter(text_member(change, "VariantName") for change in changes)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise invalid(f"Variants are named more than once: {', '.join(repeated)}.")
    for change in changes:
        name = text_member(change, "VariantName")
        if name not in variants:
            raise invalid(f'Could not find variant "{name}" of endpoint "{record.arn}".')
        if COUNT in change and not variants[name].has_model:
            raise invalid(f"Variant {name} hosts inference components: its instances follow ManagedInstanceScaling.")
        if change.get(COUNT) == 0 and not is_asynchronous(cloud.store, record):
            raise invalid(
                f"DesiredInstanceCount of variant {name} must be at least 1: the endpoint is not asynchronous."
            )


@dataclass(frozen=True, slots=True)
class _Deployment:
    """What the creation or the update of an endpoint does in the background."""

    cloud: Cloud
    record: Record
    wanted: Document
    copies: WantedCopies
    hosts: list[Document]
    deployment: Document
    retained: bool = False

    def run(self) -> None:
        cloud, record = self.cloud, self.record
        places = {place for place in cloud.running.places() if place.variant and place.owner == record.name}
        before = {place: cloud.running.copies(place) for place in places}
        try:
            check_capacity(cloud, sum(copy.copies for copy in self.copies.values()))
            for variant in self.hosts:
                cloud.fleets.open(record.name, variant, retained=self.retained)
            # An update to the same configuration may replace the instances of components.
            is_same = _has(record, self.wanted["EndpointConfigName"]) and record.status is not Status.CREATING
            if is_same and cloud.faults.settings().same_config == "replaced":
                self._renew()
            FleetShift(cloud, self.copies, before, self.deployment).run()
        except CopyFailed as failure:
            status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
            cloud.store.change(record, status=status, failure_reason=clipped(str(failure)))
            return
        cloud.fleets.close(record.name, keep=[text_member(variant, "VariantName") for variant in self.hosts])
        cloud.traffic.forget(record.name)
        cloud.store.change(record, status=Status.IN_SERVICE, request=self.wanted)

    def _renew(self) -> None:
        """Start new instances, and the copies of all components on them."""
        AlarmWatch(self.cloud, self.deployment, 0).check()
        for variant in self.hosts:
            name = text_member(variant, "VariantName")
            fleet = self.cloud.fleets.find(self.record.name, name)
            if fleet is None:
                continue
            with fleet.renewal():
                for component in components_of(self.cloud, self.record.name):
                    if text_member(component.request, "VariantName") == name:
                        restart_component(self.cloud, component)


@dataclass(frozen=True, slots=True)
class _Resize:
    """What a change of weights and counts does in the background."""

    cloud: Cloud
    record: Record
    wanted: Document
    copies: WantedCopies

    def run(self) -> None:
        added: dict[CopyPlace, tuple[CopyProcess, ...]] = {}
        try:
            check_capacity(self.cloud, sum(each.copies for each in self.copies.values()))
            for place, wanted in self.copies.items():
                missing = wanted.copies - len(self.cloud.running.copies(place))
                added[place] = launch_variant(self.cloud, place, wanted, missing)
        except CopyFailed as failure:
            stop_copies([copy for copies in added.values() for copy in copies])
            self.cloud.store.change(self.record, status=Status.IN_SERVICE, failure_reason=clipped(str(failure)))
            return
        for place, wanted in self.copies.items():
            kept = self.cloud.running.copies(place)[: wanted.copies]
            self.cloud.running.put(place, kept + added[place])
        self.cloud.traffic.forget(self.record.name)
        self.cloud.store.change(self.record, status=Status.IN_SERVICE, request=self.wanted)


def _remove(cloud: Cloud, record: Record) -> None:
    cloud.queues.close(record.name)
    for place in cloud.running.known_places():
        if not (place.variant and place.owner == record.name):
            continue
        cloud.running.delete(place)
        cloud.history.forget(metric_dimensions(copy_dimensions(place)))
    cloud.history.forget(endpoint_dimensions(record.name))
    cloud.fleets.close(record.name)
    cloud.traffic.forget(record.name)
    cloud.store.remove(record)


REPORTED: tuple[str, ...] = ("AsyncInferenceConfig", "MetricsConfig", "ExplainerConfig")
"""Members of an endpoint configuration that DescribeEndpoint repeats."""


def _reported_of_config(request: Document) -> Document:
    reported = {key: request[key] for key in REPORTED if key in request}
    capture = child(request, "DataCaptureConfig")
    if not capture:
        return reported
    enabled = capture.get("EnableCapture", True) is True
    summary = {
        "EnableCapture": enabled,
        "CaptureStatus": "Started" if enabled else "Stopped",
        "CurrentSamplingPercentage": capture["InitialSamplingPercentage"],
        "DestinationS3Uri": capture["DestinationS3Uri"],
        "KmsKeyId": capture.get("KmsKeyId", ""),
    }
    return {**reported, "DataCaptureConfig": summary}


def _variant_view(cloud: Cloud, endpoint_name: str, variant: EmulatedVariant) -> Document:
    fleet = cloud.fleets.find(endpoint_name, variant.name)
    copies = cloud.running.copies(CopyPlace(endpoint_name, variant.name))
    types = fleet.instance_types() if fleet else [copy.instance_type for copy in copies]
    current, desired = (fleet.current, fleet.desired) if fleet else (len(copies), variant.instances)
    counts = {"CurrentInstanceCount": current, "DesiredInstanceCount": desired}
    weights = {"CurrentWeight": variant.weight, "DesiredWeight": variant.weight}
    repeated = ("ManagedInstanceScaling", "RoutingConfig", "CapacityReservationConfig")
    kept = {key: variant.document[key] for key in repeated if key in variant.document}
    pools = [
        {
            "InstanceType": text_member(pool, "InstanceType"),
            "CurrentInstanceCount": types.count(text_member(pool, "InstanceType")),
        }
        for pool in children(variant.document, "InstancePools")
    ]
    return {"VariantName": variant.name, **counts, **weights, **kept, **({"InstancePools": pools} if pools else {})}
