"""Inference components: their copies, from creation to deletion."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from seatrial.local.aws.api import ApiError, invalid
from seatrial.local.aws.control_plane.alarm_watch import check_alarms_exist
from seatrial.local.aws.control_plane.batch_size import batch_size
from seatrial.local.aws.control_plane.cloud import Cloud, clipped, in_background
from seatrial.local.aws.control_plane.containers import ContainerSpec, component_container
from seatrial.local.aws.control_plane.endpoints import settled
from seatrial.local.aws.control_plane.records import Kind, Record, Status, arn_of, variants
from seatrial.local.aws.control_plane.rollout import (
    Configured,
    RollbackFailed,
    RolledBack,
    Rollout,
    launch_copies,
)
from seatrial.local.aws.json_document import Document, child, children, text, whole
from seatrial.local.aws.runtime.copy_process import CopyFailed
from seatrial.local.aws.runtime.metric_history import dimensions_of
from seatrial.local.aws.runtime.running_copies import Place
from seatrial.local.aws.runtime.telemetry import dimensions

STUCK_POLL_S: Final = 0.05
"""Real seconds between two looks whether an update is still held by a fault."""


def create_component(cloud: Cloud, request: Document) -> Document:
    """Place a model on an endpoint and start its copies.

    Raises:
        ApiError: ValidationException, the request doesn't fit the endpoint, or the name is taken.
    """
    kept = {key: value for key, value in request.items() if key != "Tags"}
    variant = _check_endpoint(cloud, request)
    if copy_count(kept) == 0:
        raise invalid("RuntimeConfig.CopyCount must be at least 1 to create an inference component.")
    kept = {**kept, "VariantName": variant}
    wanted = Configured(kept, _container(cloud, kept), copy_count(kept))
    record = Record(Kind.INFERENCE_COMPONENT, text(request, "InferenceComponentName"), kept, status=Status.CREATING)
    record = cloud.store.add(record, children(request, "Tags"))
    in_background(cloud, record, lambda: _create(cloud, record, wanted), name=f"create-{record.name}")
    return {"InferenceComponentArn": record.arn}


def update_component(cloud: Cloud, request: Document) -> Document:
    """Change a component's specification or its number of copies.

    New copies start before the old ones stop, in batches when the DeploymentConfig says so. When they fail, the old
    ones go on serving the old specification and the component is InService again, with a FailureReason. A request that
    changes nothing restarts nothing and clears the FailureReason; one without RuntimeConfig keeps the live copy count.

    Raises:
        ApiError: ValidationException, the component isn't there, is changing, or the request isn't allowed.
    """
    deployment = child(request, "DeploymentConfig")
    with cloud.store.lock:
        record = settled(cloud, Kind.INFERENCE_COMPONENT, text(request, "InferenceComponentName"))
        changes = {key: request[key] for key in ("Specification", "Specifications", "RuntimeConfig") if key in request}
        last = {"LastDeploymentConfig": deployment} if deployment else {}
        asked = {**record.request, **changes, **last}
        wanted = Configured(asked, _container(cloud, asked), copy_count(asked))
        batch = _batch(cloud, deployment, wanted.copies)
        told = {**record.request, "RuntimeConfig": {"CopyCount": wanted.copies}}
        cloud.store.change(record, status=Status.UPDATING, request=told)
    change = _Update(cloud, record, wanted, batch, deployment)
    in_background(cloud, record, change.run, name=f"update-{record.name}")
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


@dataclass(frozen=True, slots=True)
class _Update:
    """What an update does in the background."""

    cloud: Cloud
    record: Record
    wanted: Configured
    batch: int
    deployment: Document

    def run(self) -> None:
        faults, record = self.cloud.faults, self.record
        while faults.is_stuck(record.name):
            time.sleep(STUCK_POLL_S)
        same = child(self.wanted.request, "Specification") == child(record.request, "Specification")
        if not same and faults.take_silent_rollback():
            self._end(record.request)
            return
        try:
            self._scale() if same else self._roll()
        except (CopyFailed, RolledBack) as failure:
            status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
            self._end(record.request, status, str(failure))
        except RollbackFailed as failure:
            self._end(record.request, Status.FAILED, str(failure))
        else:
            self._end(self.wanted.request)

    def _scale(self) -> None:
        place = Place(self.record.name)
        kept = self.cloud.running.copies(place)[: self.wanted.copies]
        missing = self.wanted.copies - len(kept)
        added = launch_copies(self.cloud, self.record.name, self.wanted, missing) if missing else ()
        self.cloud.running.put(place, kept + added)

    def _roll(self) -> None:
        request = self.record.request
        try:
            spec = _container(self.cloud, request)
        except ApiError:  # its model was deleted; what runs goes on
            spec = None
        old = Configured(request, spec, copy_count(request))
        Rollout(self.cloud, self.record.name, old, self.wanted, self.batch, self.deployment).run()

    def _end(self, request: Document, status: Status = Status.IN_SERVICE, reason: str = "") -> None:
        self.cloud.store.change(self.record, status=status, request=request, failure_reason=clipped(reason))


def _create(cloud: Cloud, record: Record, wanted: Configured) -> None:
    try:
        copies = launch_copies(cloud, record.name, wanted, wanted.copies)
    except CopyFailed as failure:
        cloud.store.change(record, status=Status.FAILED, failure_reason=clipped(str(failure)))
        return
    cloud.running.put(Place(record.name), copies)
    cloud.store.change(record, status=Status.IN_SERVICE)


def _batch(cloud: Cloud, deployment: Document, copies: int) -> int:
    """Return how many copies are replaced at a time; all of them without a policy."""
    check_alarms_exist(cloud, deployment)
    policy = child(deployment, "RollingUpdatePolicy")
    return batch_size(child(policy, "MaximumBatchSize"), copies) if policy else max(copies, 1)


def _check_endpoint(cloud: Cloud, request: Document) -> str:
    """Return the name of the variant that takes the component."""
    endpoint = cloud.store.need(Kind.ENDPOINT, text(request, "EndpointName"))
    if endpoint.status is not Status.IN_SERVICE:
        raise invalid(f'Endpoint "{endpoint.arn}" must be InService to take inference components: {endpoint.status}.')
    placed = variants(cloud.store.need(Kind.ENDPOINT_CONFIG, text(endpoint.request, "EndpointConfigName")))
    if any("ModelName" in variant for variant in placed):
        raise invalid(f'Endpoint "{endpoint.arn}" hosts models, it can not take inference components.')
    name = text(request, "VariantName")
    if name and name not in [text(variant, "VariantName") for variant in placed]:
        raise invalid(f'Could not find variant "{name}" of endpoint "{endpoint.arn}".')
    return name or text(placed[0], "VariantName")


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


def _remove(cloud: Cloud, record: Record) -> None:
    place = Place(record.name)
    cloud.running.put(place, ())
    cloud.history.forget(dimensions_of(dimensions(place)))
    cloud.store.remove(record)
