"""Inference components: their copies, from creation to deletion."""

from __future__ import annotations

import math
import sys
from typing import Final

from seatrial.catalog import instances
from seatrial.local.aws.api import invalid
from seatrial.local.aws.control_plane.cloud import Cloud, clipped, in_background
from seatrial.local.aws.control_plane.containers import ContainerSpec, component_container
from seatrial.local.aws.control_plane.endpoints import components_of, settled
from seatrial.local.aws.control_plane.records import Kind, Record, Status, arn_of, variants
from seatrial.local.aws.json_document import Document, child, children, number, text, whole
from seatrial.local.aws.runtime.copy_process import CopyFailed
from seatrial.local.aws.runtime.running_copies import Place

NEEDED: Final = "NumberOfAcceleratorDevicesRequired"


def create_component(cloud: Cloud, request: Document) -> Document:
    """Place a model on an endpoint and start its copies.

    Raises:
        ApiError: ValidationException, the request doesn't fit the endpoint, or the name is taken.
    """
    kept = {key: value for key, value in request.items() if key != "Tags"}
    _check_endpoint(cloud, request)
    spec = _container(cloud, kept)
    record = Record(Kind.INFERENCE_COMPONENT, text(request, "InferenceComponentName"), kept, status=Status.CREATING)
    cloud.store.add(record, children(request, "Tags"))
    in_background(cloud, record, lambda: _deploy(cloud, record, kept, spec), name=f"create-{record.name}")
    return {"InferenceComponentArn": record.arn}


def update_component(cloud: Cloud, request: Document) -> Document:
    """Change a component's specification or its number of copies.

    New copies start before the old ones stop. When they fail, the old ones go on serving the old specification and
    the component is InService again, with a FailureReason (the silent rollback of AWS). A request that changes nothing
    restarts nothing and clears the FailureReason.

    Raises:
        ApiError: ValidationException, the component isn't there, is changing, or the specification isn't allowed.
    """
    with cloud.store.lock:
        record = settled(cloud, Kind.INFERENCE_COMPONENT, text(request, "InferenceComponentName"))
        changes = {key: request[key] for key in ("Specification", "Specifications", "RuntimeConfig") if key in request}
        wanted = {**record.request, **changes}
        spec = _container(cloud, wanted)
        cloud.store.change(record, status=Status.UPDATING)
    in_background(cloud, record, lambda: _deploy(cloud, record, wanted, spec), name=f"update-{record.name}")
    return {"InferenceComponentArn": record.arn}


def scale_component(cloud: Cloud, request: Document) -> Document:
    """Change a component's number of copies.

    Raises:
        ApiError: ValidationException, the component isn't there or is changing.
    """
    name = text(request, "InferenceComponentName")
    runtime = {"RuntimeConfig": child(request, "DesiredRuntimeConfig")}
    return update_component(cloud, {"InferenceComponentName": name, **runtime})


def delete_component(cloud: Cloud, request: Document) -> Document:
    """Stop a component's copies.

    Raises:
        ApiError: ValidationException, the component isn't there or is changing.
    """
    with cloud.store.lock:
        record = settled(cloud, Kind.INFERENCE_COMPONENT, text(request, "InferenceComponentName"))
        cloud.store.change(record, status=Status.DELETING)
    in_background(cloud, record, lambda: _remove(cloud, record), name=f"delete-{record.name}")
    return {}


def component_view(cloud: Cloud, record: Record) -> Document:
    """Return what DescribeInferenceComponent says."""
    specification = dict(child(record.request, "Specification"))
    if container := child(record.request, "Specification").get("Container"):
        written = child({"Container": container}, "Container")
        deployed = {"DeployedImage": {"SpecifiedImage": text(written, "Image")}}
        specification["Container"] = {**{key: value for key, value in written.items() if key != "Image"}, **deployed}
    reason = {"FailureReason": record.failure_reason} if record.failure_reason else {}
    return {
        **record.request,
        **reason,
        "EndpointArn": arn_of(Kind.ENDPOINT, text(record.request, "EndpointName")),
        "Specification": specification,
        "InferenceComponentStatus": record.status,
        "RuntimeConfig": {
            "DesiredCopyCount": copy_count(record.request),
            "CurrentCopyCount": len(cloud.running.copies(Place(record.name))),
        },
    }


def copy_count(request: Document) -> int:
    """Return the number of copies that a request asks for."""
    return whole(child(request, "RuntimeConfig"), "CopyCount", 1)


def _check_endpoint(cloud: Cloud, request: Document) -> None:
    endpoint = cloud.store.need(Kind.ENDPOINT, text(request, "EndpointName"))
    if endpoint.status is not Status.IN_SERVICE:
        raise invalid(f'Endpoint "{endpoint.arn}" must be InService to take inference components: {endpoint.status}.')
    placed = variants(cloud.store.need(Kind.ENDPOINT_CONFIG, text(endpoint.request, "EndpointConfigName")))
    if any("ModelName" in variant for variant in placed):
        raise invalid(f'Endpoint "{endpoint.arn}" hosts models, it can not take inference components.')
    name = text(request, "VariantName")
    if name and name not in [text(variant, "VariantName") for variant in placed]:
        raise invalid(f'Could not find variant "{name}" of endpoint "{endpoint.arn}".')


def _container(cloud: Cloud, request: Document) -> ContainerSpec:
    specification = child(request, "Specification")
    if not specification or "Specifications" in request:
        raise invalid("The embedded AWS takes one Specification per inference component.")
    if "BaseInferenceComponentName" in specification:
        raise invalid("The embedded AWS has no adapter inference components (BaseInferenceComponentName).")
    if ("ModelName" in specification) == ("Container" in specification):
        raise invalid("Specification must have either ModelName or Container.")
    if "ComputeResourceRequirements" not in specification:
        raise invalid("Specification must have ComputeResourceRequirements.")
    spec = component_container(cloud.store, specification)
    if not spec.image:
        raise invalid("The container must name an Image.")
    return spec


def _deploy(cloud: Cloud, record: Record, wanted: Document, spec: ContainerSpec) -> None:
    if lack := _lack_of_capacity(cloud, record, wanted):
        status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
        cloud.store.change(record, status=status, failure_reason=clipped(lack))
        return
    place = Place(record.name)
    same = child(wanted, "Specification") == child(record.request, "Specification")
    kept = cloud.running.copies(place)[: copy_count(wanted)] if same else ()
    try:
        copies = kept + cloud.running.launch(place, spec, copy_count(wanted) - len(kept))
    except CopyFailed as failure:
        status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
        cloud.store.change(record, status=status, failure_reason=clipped(str(failure)))
        return
    cloud.running.put(place, copies)
    cloud.store.change(record, status=Status.IN_SERVICE, request=wanted)


def _lack_of_capacity(cloud: Cloud, record: Record, wanted: Document) -> str:
    """Say that the endpoint's instances can't hold the copies; empty when they can.

    Copies are placed by their accelerators, on as many instances as managed scaling may start; a type that is not in
    the catalog takes any number.
    """
    name = text(wanted, "EndpointName")
    endpoint = cloud.store.need(Kind.ENDPOINT, name)
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, text(endpoint.request, "EndpointConfigName"))
    variant = next(iter(variants(config)), {})
    instance = instances.find(text(variant, "InstanceType"))
    others = [other.request for other in components_of(cloud, name) if other.name != record.name]
    devices = [_devices(request) for request in (*others, wanted) for _ in range(copy_count(request))]
    if instance is None or not any(devices):
        return ""
    most = _most_instances(variant)
    needed = _instances_for([count for count in devices if count], instance.accelerator_count)
    if needed <= most:
        return ""
    return (
        f"InsufficientInstanceCapacity: {copy_count(wanted)} copies of {record.name} need {needed} instances of "
        f"{instance.instance_type} with the endpoint's other copies, and its variant has at most {most}."
    )


def _instances_for(devices: list[int], each: int) -> int:
    """Return how many instances of so many accelerators hold the copies, the largest placed first."""
    free: list[int] = []
    for wanted in sorted(devices, reverse=True):
        if wanted > each:
            return sys.maxsize
        place = next((at for at, left in enumerate(free) if left >= wanted), None)
        if place is None:
            free.append(each - wanted)
        else:
            free[place] -= wanted
    return len(free)


def _devices(request: Document) -> int:
    needs = child(child(request, "Specification"), "ComputeResourceRequirements")
    return math.ceil(number(needs, NEEDED)) if NEEDED in needs else 0


def _most_instances(variant: Document) -> int:
    scaling = child(variant, "ManagedInstanceScaling")
    count = whole(variant, "InitialInstanceCount", 1)
    return max(count, whole(scaling, "MaxInstanceCount", count)) if text(scaling, "Status") == "ENABLED" else count


def _remove(cloud: Cloud, record: Record) -> None:
    cloud.running.put(Place(record.name), ())
    cloud.store.remove(record)
