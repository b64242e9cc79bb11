"""The control plane of SageMaker: models, endpoints and their parts, optimization jobs, tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import absent, check_request, invalid, output_members, service_model, summary_members
from seatrial_laptop.aws.control_plane.containers import primary_container
from seatrial_laptop.aws.control_plane.endpoint_configs import create_endpoint_config
from seatrial_laptop.aws.control_plane.endpoints import (
    create_endpoint,
    delete_endpoint,
    endpoint_view,
    update_endpoint,
    update_weights_and_capacities,
)
from seatrial_laptop.aws.control_plane.inference_components import (
    component_view,
    create_component,
    delete_component,
    scale_component,
    update_component,
)
from seatrial_laptop.aws.control_plane.optimization_jobs import OPERATIONS as OF_OPTIMIZATION_JOBS
from seatrial_laptop.aws.control_plane.records import Kind, Record
from seatrial_laptop.aws.json_document import Document, children, text, texts, whole
from seatrial_laptop.aws.runtime.download_rights import role_exists

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.control_plane.cloud import Cloud


SERVICE: Final = "sagemaker"


def call_sagemaker(cloud: Cloud, operation: str, request: Document) -> Document:
    """Do one operation of the SageMaker API.

    Raises:
        ApiError: The request isn't valid, or the embedded AWS has no such operation.
    """
    if operation not in service_model(SERVICE).operation_names:
        raise absent(operation)
    check_request(SERVICE, operation, request)
    if named := OPERATIONS.get(operation):
        return named(cloud, request)
    for kind in Kind:
        if operation == f"Describe{kind}":
            return _describe(cloud, kind, request)
        if operation == f"List{kind}s":
            return _list(cloud, kind, request)
    raise absent(operation)


def _create_model(cloud: Cloud, request: Document) -> Document:
    role = text(request, "ExecutionRoleArn")
    known = bool(role) and role_exists(role)
    record = Record(Kind.MODEL, text(request, "ModelName"), _without_tags(request), role_is_known=known)
    if ("PrimaryContainer" in request) == ("Containers" in request):
        raise invalid("A model must have either PrimaryContainer or Containers.")
    container = primary_container(record)
    if ("Image" in container) == ("ModelPackageName" in container):
        raise invalid("The container must name either an Image or a ModelPackageName.")
    if "ModelDataUrl" in container and "ModelDataSource" in container:
        raise invalid("ModelDataUrl and ModelDataSource exclude each other.")
    return {"ModelArn": cloud.store.add(record, children(request, "Tags")).arn}


def _delete_record(kind: Kind) -> Callable[[Cloud, Document], Document]:
    def delete(cloud: Cloud, request: Document) -> Document:
        cloud.store.remove(cloud.store.need(kind, text(request, f"{kind}Name")))
        return {}

    return delete


def _add_tags(cloud: Cloud, request: Document) -> Document:
    arn = _tagged_arn(cloud, request)
    cloud.store.tag(arn, children(request, "Tags"))
    return {"Tags": cloud.store.tags(arn)}


def _list_tags(cloud: Cloud, request: Document) -> Document:
    return {"Tags": cloud.store.tags(_tagged_arn(cloud, request))}


def _delete_tags(cloud: Cloud, request: Document) -> Document:
    cloud.store.untag(_tagged_arn(cloud, request), texts(request, "TagKeys"))
    return {}


def _tagged_arn(cloud: Cloud, request: Document) -> str:
    arn = text(request, "ResourceArn")
    if not (cloud.store.has_arn(arn) or any(job.arn == arn for job in cloud.jobs.all())):
        raise invalid(f'Could not find "{arn}".')
    return arn


OPERATIONS: Final[dict[str, Callable[[Cloud, Document], Document]]] = {
    "CreateModel": _create_model,
    "CreateEndpointConfig": create_endpoint_config,
    "CreateEndpoint": create_endpoint,
    "CreateInferenceComponent": create_component,
    "UpdateEndpoint": update_endpoint,
    "UpdateEndpointWeightsAndCapacities": update_weights_and_capacities,
    "UpdateInferenceComponent": update_component,
    "UpdateInferenceComponentRuntimeConfig": scale_component,
    "DeleteModel": _delete_record(Kind.MODEL),
    "DeleteEndpointConfig": _delete_record(Kind.ENDPOINT_CONFIG),
    "DeleteEndpoint": delete_endpoint,
    "DeleteInferenceComponent": delete_component,
    "AddTags": _add_tags,
    "ListTags": _list_tags,
    "DeleteTags": _delete_tags,
    **OF_OPTIMIZATION_JOBS,
}
"""The operations that differ by kind; Describe and List are the same for all four."""


def _describe(cloud: Cloud, kind: Kind, request: Document) -> Document:
    record = cloud.store.need(kind, text(request, f"{kind}Name"))
    members = output_members(SERVICE, f"Describe{kind}")
    return {key: value for key, value in _view(cloud, record).items() if key in members}


def _list(cloud: Cloud, kind: Kind, request: Document) -> Document:
    views = [_view(cloud, record) for record in cloud.store.all(kind)]
    found = [view for view in views if _matches(kind, view, request)]
    key = "CreationTime" if text(request, "SortBy", "CreationTime") == "CreationTime" else f"{kind}Name"
    descending = text(request, "SortOrder", "Descending").startswith("Desc")
    found.sort(key=lambda view: str(view[key]), reverse=descending)
    first, most = int(text(request, "NextToken", "0")), whole(request, "MaxResults", 100)
    members = summary_members(SERVICE, f"List{kind}s", f"{kind}s")
    page = [{name: value for name, value in view.items() if name in members} for view in found[first : first + most]]
    more = {"NextToken": str(first + most)} if first + most < len(found) else {}
    return {f"{kind}s": page, **more}


def _matches(kind: Kind, view: Document, request: Document) -> bool:
    equal = {"StatusEquals": f"{kind}Status", "EndpointNameEquals": "EndpointName", "VariantNameEquals": "VariantName"}
    wanted = {member: text(request, name) for name, member in equal.items() if name in request}
    part = text(request, "NameContains")
    return part in text(view, f"{kind}Name") and all(view.get(member) == value for member, value in wanted.items())


def _view(cloud: Cloud, record: Record) -> Document:
    views = {Kind.ENDPOINT: endpoint_view, Kind.INFERENCE_COMPONENT: component_view}
    own = views[record.kind](cloud, record) if record.kind in views else record.request
    times = {"CreationTime": record.created_s, "LastModifiedTime": record.modified_s}
    return {**own, f"{record.kind}Arn": record.arn, **times}


def _without_tags(request: Document) -> Document:
    return {key: value for key, value in request.items() if key != "Tags"}
