"""Inference components: their copies, from creation to deletion."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import ApiError, invalid
from seatrial_laptop.aws.control_plane.cloud import Cloud, clipped, in_background
from seatrial_laptop.aws.control_plane.containers import component_container, known_instance_role
from seatrial_laptop.aws.control_plane.endpoints import components_of, settled_record
from seatrial_laptop.aws.control_plane.fleets import LOOK_S, NoRoom, pool_with_capacity, pools_of
from seatrial_laptop.aws.control_plane.records import (
    Kind,
    Record,
    Status,
    arn_of,
    has_model,
    live_variants,
    production_variants,
)
from seatrial_laptop.aws.control_plane.rollout import (
    AlarmWatch,
    Configured,
    RollbackFailed,
    RolledBack,
    Rollout,
    check_alarms,
    launch_copies,
    update_batch_size,
)
from seatrial_laptop.aws.json_document import Document, child, children, text_member, whole
from seatrial_laptop.aws.runtime.artifacts import ArtifactError
from seatrial_laptop.aws.runtime.running_copies import CopyFailed, CopyPlace
from seatrial_laptop.aws.runtime.telemetry import copy_dimensions, metric_dimensions

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.runtime.running_copies import CopyProcess


FEWEST: Final = 2
"""Specifications at least, when there are several."""
BASE: Final = "BaseInferenceComponentName"

LONGEST_WITHOUT_ROOM_S: Final = 3_600
"""The longest ContainerStartupHealthCheckTimeoutInSeconds, of a request that doesn't say."""
STUCK_POLL_S: Final = 0.05
"""Real seconds between two looks whether an update is still held by a fault."""


def create_component(cloud: Cloud, request: Document) -> Document:
    """Place a model on an endpoint and start its copies.

    Raises:
        ApiError: ValidationException, the request doesn't fit the endpoint, or the name is taken.
    """
    plain = {key: value for key, value in request.items() if key != "Tags"}
    endpoint = cloud.store.need(Kind.ENDPOINT, text_member(request, "EndpointName"))
    if endpoint.status is not Status.IN_SERVICE:
        raise invalid(f'Endpoint "{endpoint.arn}" must be InService to take inference components: {endpoint.status}.')
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName"))
    placed = production_variants(config)
    if any(has_model(variant) for variant in placed):
        raise invalid(f'Endpoint "{endpoint.arn}" hosts models, it can not take inference components.')
    name = text_member(request, "VariantName")
    if name and name not in [text_member(variant, "VariantName") for variant in placed]:
        raise invalid(f'Could not find variant "{name}" of endpoint "{endpoint.arn}".')
    variant = name or text_member(placed[0], "VariantName")
    kept = with_one_specification(cloud, {**plain, "VariantName": variant})
    own_name, is_adapter = text_member(request, "InferenceComponentName"), bool(base_name(kept))
    if not is_adapter and copy_count(kept) == 0:
        raise invalid("RuntimeConfig.CopyCount must be at least 1 to create an inference component.")
    with cloud.store.lock:
        if is_adapter:
            kept = {**kept, "VariantName": check_adapter(cloud, kept).request["VariantName"]}
        spec = None if is_adapter else specified_container(cloud, kept)
        record = Record(Kind.INFERENCE_COMPONENT, own_name, kept, status=Status.CREATING)
        record = cloud.store.add(record, children(request, "Tags"))
    work = (
        partial(_load_adapter, cloud, record, kept)
        if spec is None
        else partial(_create, cloud, record, Configured(kept, spec, copy_count(kept)))
    )
    in_background(cloud, record, work, name=f"create-{record.name}")
    return {"InferenceComponentArn": record.arn}


def _load_adapter(cloud: Cloud, record: Record, wanted: Document) -> None:
    """Look at an adapter's files; the local engine does not load them, so the base answers as it is."""
    spec = component_container(cloud.store, child(wanted, "Specification"))
    base = cloud.store.need(Kind.INFERENCE_COMPONENT, base_name(wanted))
    try:
        refuse_adapter(component_container(cloud.store, child(base.request, "Specification")))
        with tempfile.TemporaryDirectory() as folder:
            spec.fill(Path(folder))
    except ArtifactError as error:
        status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
        cloud.store.change(record, status=status, request=record.request, failure_reason=clipped(str(error)))
        return
    cloud.store.change(record, status=Status.IN_SERVICE, request=wanted)


def update_component(cloud: Cloud, request: Document) -> Document:
    """Change a component's specification or its number of copies.

    New copies start before the old ones stop, in batches when the DeploymentConfig has a rolling update. When they
    fail, the old ones go on serving the old specification and the component is InService again, with a FailureReason. A
    request that changes nothing restarts nothing and clears the FailureReason; one without RuntimeConfig keeps the live
    copy count.

    Raises:
        ApiError: ValidationException, the component isn't there, is changing, or the request isn't allowed.
    """
    deployment = child(request, "DeploymentConfig")
    with cloud.store.lock:
        record = settled_record(cloud, Kind.INFERENCE_COMPONENT, text_member(request, "InferenceComponentName"))
        changes = {key: request[key] for key in ("Specification", "Specifications", "RuntimeConfig") if key in request}
        last = {"LastDeploymentConfig": deployment} if deployment else {}
        if "Specification" in changes and "Specifications" in changes:
            raise invalid("Specification and Specifications exclude each other.")
        specified = {"Specification", "Specifications"}
        replaced = specified if specified & changes.keys() else ()
        plain = {key: value for key, value in record.request.items() if key not in replaced}
        requested = with_one_specification(cloud, {**plain, **changes, **last})
        if base_name(record.request) or base_name(requested):
            if base_name(record.request) != base_name(requested):
                raise invalid("The base of an adapter can't be changed, and a component can't become an adapter.")
            if "RuntimeConfig" in changes:
                raise invalid(f"Inference component {record.name} is an adapter: its copies are those of its base.")
            check_adapter(cloud, requested)
            cloud.store.change(record, status=Status.UPDATING)
            in_background(cloud, record, lambda: _load_adapter(cloud, record, requested), name=f"update-{record.name}")
            return {"InferenceComponentArn": record.arn}
        wanted = Configured(requested, specified_container(cloud, requested), copy_count(requested))
        endpoint = cloud.store.need(Kind.ENDPOINT, text_member(requested, "EndpointName"))
        config = cloud.store.need(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName"))
        check_alarms(cloud, deployment, config)
        policy = child(deployment, "RollingUpdatePolicy")
        batch = update_batch_size(child(policy, "MaximumBatchSize"), wanted.copies) if policy else max(wanted.copies, 1)
        current = {**record.request, "RuntimeConfig": {"CopyCount": wanted.copies}}
        cloud.store.change(record, status=Status.UPDATING, request=current)
    change = _Update(cloud, record, wanted, batch, deployment)
    in_background(cloud, record, change.run, name=f"update-{record.name}")
    return {"InferenceComponentArn": record.arn}


def scale_component(cloud: Cloud, request: Document) -> Document:
    """Change a component's number of copies.

    Raises:
        ApiError: ValidationException, the component isn't there or is changing.
    """
    name = text_member(request, "InferenceComponentName")
    runtime = {"RuntimeConfig": child(request, "DesiredRuntimeConfig")}
    return update_component(cloud, {"InferenceComponentName": name, **runtime})


def delete_component(cloud: Cloud, request: Document) -> Document:
    """Stop a component's copies.

    Raises:
        ApiError: ValidationException, the component isn't there or is changing.
    """
    with cloud.store.lock:
        record = settled_record(cloud, Kind.INFERENCE_COMPONENT, text_member(request, "InferenceComponentName"))
        if adapters := adapters_of(cloud, record):
            raise invalid(
                f"Cannot delete inference component {record.name} while it is the base of: {', '.join(adapters)}. "
                "Delete them first."
            )
        cloud.store.change(record, status=Status.DELETING)
    in_background(cloud, record, lambda: _remove(cloud, record), name=f"delete-{record.name}")
    return {}


def component_view(cloud: Cloud, record: Record) -> Document:
    """Return the response of DescribeInferenceComponent."""
    several = children(record.request, "Specifications")
    reason = {"FailureReason": record.failure_reason} if record.failure_reason else {}
    plain = {key: value for key, value in record.request.items() if key != "Specification"}
    view: Document = {"Specification": _deployed(child(record.request, "Specification"))}
    base = cloud.store.find(Kind.INFERENCE_COMPONENT, base_name(record.request)) or record
    copies = cloud.running.copies(CopyPlace(base.name))
    types = Counter(copy.instance_type for copy in copies if copy.instance_type)
    placed = [{"InstanceType": name, "CurrentCopyCount": count} for name, count in types.items()]
    counts = {"DesiredCopyCount": copy_count(base.request), "CurrentCopyCount": len(copies)}
    return {
        **plain,
        **reason,
        **({"Specifications": [_deployed(each) for each in several]} if several else view),
        "EndpointArn": arn_of(Kind.ENDPOINT, text_member(record.request, "EndpointName")),
        "InferenceComponentStatus": record.status,
        "RuntimeConfig": {**counts, **({"PlacementStatus": placed} if "Specifications" in base.request else {})},
    }


def _deployed(specification: Document) -> Document:
    """Return a specification as in the response of Describe: the image as a DeployedImage."""
    container = child(specification, "Container")
    if not container:
        return specification
    image = {"DeployedImage": {"SpecifiedImage": text_member(container, "Image")}} if "Image" in container else {}
    return {**specification, "Container": {**{key: container[key] for key in container if key != "Image"}, **image}}


def copy_count(request: Document) -> int:
    """Return the number of copies of a request."""
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
            if same and faults.settings().raised_alarms_end_updates:
                AlarmWatch(self.cloud, self.deployment, 0).check()
            self._scale() if same else self._roll()
        except (CopyFailed, RolledBack) as failure:
            status = Status.IN_SERVICE if record.status is Status.IN_SERVICE else Status.FAILED
            self._end(record.request, status, str(failure))
        except RollbackFailed as failure:
            self._end(record.request, Status.FAILED, str(failure))
        else:
            self._end(self.wanted.request)

    def _scale(self) -> None:
        place = CopyPlace(self.record.name)
        kept = self.cloud.running.copies(place)[: self.wanted.copies]
        missing = self.wanted.copies - len(kept)
        added = launch_copies(self.cloud, self.record.name, self.wanted, missing) if missing else ()
        self.cloud.running.put(place, kept + added)

    def _roll(self) -> None:
        request = self.record.request
        try:
            spec = specified_container(self.cloud, request)
        except ApiError:
            # Its model was deleted: what runs goes on.
            spec = None
        old = Configured(request, spec, copy_count(request))
        Rollout(self.cloud, self.record.name, old, self.wanted, self.batch, self.deployment).run()

    def _end(self, request: Document, status: Status = Status.IN_SERVICE, reason: str = "") -> None:
        self.cloud.store.change(self.record, status=status, request=request, failure_reason=clipped(reason))


def _create(cloud: Cloud, record: Record, wanted: Configured) -> None:
    """Start the copies of a new component; without room it is Creating for as long as its container may take to start.

    Components were seen in Creating for an hour and for days, and nobody could delete them (huggingface/skills;
    aws/amazon-sagemaker-examples issue 3432). That a lack of room is among the causes is assumed.
    """
    limit_s = wanted.spec.startup_limit_s if wanted.spec else None
    end_s = cloud.clock.now_s() + (LONGEST_WITHOUT_ROOM_S if limit_s is None else limit_s)
    copies: tuple[CopyProcess, ...] | None = None
    while copies is None:
        try:
            copies = launch_copies(cloud, record.name, wanted, wanted.copies)
        except CopyFailed as failure:
            if not isinstance(failure, NoRoom) or cloud.clock.now_s() >= end_s:
                cloud.store.change(record, status=Status.FAILED, failure_reason=clipped(str(failure)))
                return
            cloud.clock.wait(LOOK_S)
    cloud.running.put(CopyPlace(record.name), copies)
    cloud.store.change(record, status=Status.IN_SERVICE)


def _remove(cloud: Cloud, record: Record) -> None:
    place = CopyPlace(record.name)
    cloud.running.delete(place)
    cloud.history.forget(metric_dimensions(copy_dimensions(place)))
    cloud.store.remove(record)


def base_name(request: Document) -> str:
    """Return the component whose copies load this adapter; empty for a component with copies of its own."""
    return text_member(child(request, "Specification"), BASE)


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
    types = Counter(text_member(each, "InstanceType") for each in several)
    if len(several) < FEWEST or "" in types or max(types.values()) > 1:
        raise invalid("Specifications must be two or more, each with an InstanceType of its own.")
    if any(BASE in each for each in several):
        raise invalid("An adapter takes one Specification.")
    by_type = {text_member(each, "InstanceType"): each for each in several}
    endpoint = cloud.store.need(Kind.ENDPOINT, text_member(request, "EndpointName"))
    live = live_variants(cloud.store, endpoint)
    variant_name = text_member(request, "VariantName", live[0].name)
    pools = pools_of(next((variant for variant in live if variant.name == variant_name), live[0]).document)
    missing = [pool.instance_type for pool in pools if pool.instance_type not in by_type]
    if missing:
        raise invalid(f"Specifications lack the instance types of the variant: {', '.join(missing)}.")
    try:
        instance_type = pool_with_capacity(pools, cloud.faults.settings).instance_type
    except CopyFailed:
        instance_type = pools[0].instance_type
    return {**request, "Specification": by_type[instance_type]}


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
    if "Container" in specification:
        spec = replace(spec, checked_role=known_instance_role(cloud.store, text_member(request, "EndpointName")))
    if not spec.image:
        raise invalid("The container must name an Image.")
    return spec


def check_adapter(cloud: Cloud, request: Document) -> Record:
    """Return the base of an adapter.

    Raises:
        ApiError: ValidationException, the base isn't there or doesn't fit, or the adapter requests more than its files.
    """
    specification, endpoint = child(request, "Specification"), text_member(request, "EndpointName")
    base = cloud.store.need(Kind.INFERENCE_COMPONENT, base_name(request))
    if text_member(base.request, "EndpointName") != endpoint:
        raise invalid(f"Base inference component {base.name} is not on endpoint {endpoint}.")
    if base_name(base.request):
        raise invalid(f"Base inference component {base.name} is an adapter itself.")
    if base.status is not Status.IN_SERVICE:
        raise invalid(f"Base inference component {base.name} must be InService: {base.status}.")
    if "ComputeResourceRequirements" in specification:
        raise invalid("An adapter has no ComputeResourceRequirements: it uses those of its base.")
    if not text_member(child(specification, "Container"), "ArtifactUrl"):
        raise invalid("An adapter needs Container.ArtifactUrl.")
    return base


def refuse_adapter(base: ContainerSpec) -> None:
    """Refuse an adapter where the container of its base has no `POST /adapters` (assumed: how SageMaker says so).

    vLLM's own server has it since pull request 27892, with VLLM_ALLOW_RUNTIME_LORA_UPDATING alone; TGI has none. LMI
    has it in every version that is known; of other images nothing is known.

    Raises:
        ArtifactError: It has not.
    """
    name = base.image.rpartition("/")[2]
    is_allowed = base.environment.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").lower() in {"1", "true"}
    if ("vllm" in name and not is_allowed) or "tgi" in name:
        raise ArtifactError(f"The container {name} did not load the adapter: POST /adapters returned status 404.")


def adapters_of(cloud: Cloud, component: Record) -> list[str]:
    """Return the names of a component's adapters."""
    placed = components_of(cloud, text_member(component.request, "EndpointName"))
    return [each.name for each in placed if base_name(each.request) == component.name]
