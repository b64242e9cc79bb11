"""The control plane of SageMaker: models, endpoints and their parts, optimization jobs, tags."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.hosting_kinds import MEMORY_MB, refusals
from seatrial_laptop.aws.api import absent, check_api_request, invalid, output_members, service_model, summary_members
from seatrial_laptop.aws.control_plane.containers import primary_container
from seatrial_laptop.aws.control_plane.endpoints import (
    create_endpoint,
    delete_endpoint,
    endpoint_view,
    update_endpoint,
    update_weights_and_capacities,
)
from seatrial_laptop.aws.control_plane.fleets import pools_of
from seatrial_laptop.aws.control_plane.inference_components import (
    component_view,
    create_component,
    delete_component,
    scale_component,
    update_component,
)
from seatrial_laptop.aws.control_plane.optimization_jobs import OPERATIONS as OF_OPTIMIZATION_JOBS
from seatrial_laptop.aws.control_plane.records import (
    SHADOWS,
    Kind,
    Record,
    configured_variants,
    has_model,
    hosting_kinds,
    production_variants,
)
from seatrial_laptop.aws.json_document import Document, child, children, page_of, text_member, text_members, whole
from seatrial_laptop.aws.rights import role_exists

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
    check_api_request(SERVICE, operation, request)
    if named := OPERATIONS.get(operation):
        return named(cloud, request)
    for kind in Kind:
        if operation == f"Describe{kind}":
            record = cloud.store.need(kind, text_member(request, f"{kind}Name"))
            members = output_members(SERVICE, f"Describe{kind}")
            return {key: value for key, value in _view(cloud, record).items() if key in members}
        if operation == f"List{kind}s":
            return _list(cloud, kind, request)
    raise absent(operation)


def _create_model(cloud: Cloud, request: Document) -> Document:
    role = text_member(request, "ExecutionRoleArn")
    plain = {key: value for key, value in request.items() if key != "Tags"}
    is_known = bool(role) and role_exists(role)
    record = Record(Kind.MODEL, text_member(request, "ModelName"), plain, role_is_known=is_known)
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
        cloud.store.remove(cloud.store.need(kind, text_member(request, f"{kind}Name")))
        return {}

    return delete


def _add_tags(cloud: Cloud, request: Document) -> Document:
    arn = _tagged_arn(cloud, request)
    cloud.store.tag(arn, children(request, "Tags"))
    return {"Tags": cloud.store.tags(arn)}


def _list_tags(cloud: Cloud, request: Document) -> Document:
    return {"Tags": visible_tags_of(cloud, _tagged_arn(cloud, request))}


def visible_tags(cloud: Cloud, record: Record) -> list[Document]:
    """Return the tags that others see of a resource: none while it is as young as `tags_late_s`."""
    return [] if cloud.faults.hides_tags(record.born_s) else cloud.store.tags(record.arn)


def visible_tags_of(cloud: Cloud, arn: str) -> list[Document]:
    """Return the tags that others see of a resource by its ARN; none where it is absent."""
    record = cloud.store.of_arn(arn)
    return visible_tags(cloud, record) if record else cloud.store.tags(arn)


def _delete_tags(cloud: Cloud, request: Document) -> Document:
    cloud.store.untag(_tagged_arn(cloud, request), text_members(request, "TagKeys"))
    return {}


def _tagged_arn(cloud: Cloud, request: Document) -> str:
    arn = text_member(request, "ResourceArn")
    if not (cloud.store.has_arn(arn) or any(job.arn == arn for job in cloud.jobs.all())):
        raise invalid(f'Could not find "{arn}".')
    return arn


def _list(cloud: Cloud, kind: Kind, request: Document) -> Document:
    views = [_view(cloud, record) for record in cloud.store.all(kind)]
    matches = [view for view in views if _matches(kind, view, request)]
    key = "CreationTime" if text_member(request, "SortBy", "CreationTime") == "CreationTime" else f"{kind}Name"
    descending = text_member(request, "SortOrder", "Descending").startswith("Desc")
    matches.sort(key=lambda view: str(view[key]), reverse=descending)
    members = summary_members(SERVICE, f"List{kind}s", f"{kind}s")
    summaries = [{name: value for name, value in view.items() if name in members} for view in matches]
    return page_of(f"{kind}s", summaries, request, 100)


def _matches(kind: Kind, view: Document, request: Document) -> bool:
    equal = {"StatusEquals": f"{kind}Status", "EndpointNameEquals": "EndpointName", "VariantNameEquals": "VariantName"}
    wanted = {member: text_member(request, name) for name, member in equal.items() if name in request}
    part = text_member(request, "NameContains")
    return part in text_member(view, f"{kind}Name") and all(
        view.get(member) == value for member, value in wanted.items()
    )


def _view(cloud: Cloud, record: Record) -> Document:
    views = {Kind.ENDPOINT: endpoint_view, Kind.INFERENCE_COMPONENT: component_view}
    own = views[record.kind](cloud, record) if record.kind in views else record.request
    times = {"CreationTime": record.created_s, "LastModifiedTime": record.modified_s}
    return {**own, f"{record.kind}Arn": record.arn, **times}


def create_endpoint_config(cloud: Cloud, request: Document) -> Document:
    """Keep an endpoint configuration.

    Raises:
        ApiError: ValidationException, its members don't fit together, a model isn't there, or the name is taken.
    """
    plain = {key: value for key, value in request.items() if key != "Tags"}
    record = Record(Kind.ENDPOINT_CONFIG, text_member(request, "EndpointConfigName"), plain)
    shadows = children(request, SHADOWS)
    for variant in (*production_variants(record), *shadows):
        _check_variant(cloud, request, variant)
    repeated = _repeated([text_member(variant, "VariantName") for variant in [*production_variants(record), *shadows]])
    if repeated:
        raise invalid(f"Variant names must be unique: {', '.join(repeated)}.")
    _check_kinds(request, production_variants(record), shadows)
    _check_exclusions(cloud, record)
    return {"EndpointConfigArn": cloud.store.add(record, children(request, "Tags")).arn}


def _check_variant(cloud: Cloud, request: Document, variant: Document) -> None:
    name = text_member(variant, "VariantName")
    pools, scaling = children(variant, "InstancePools"), child(variant, "ManagedInstanceScaling")
    if pools and "InstanceType" in variant:
        raise invalid(f"InstanceType and InstancePools of variant {name} exclude each other.")
    for key in ("InstanceType", "Priority"):
        repeated = _repeated([pool.get(key) for pool in pools if key in pool])
        if repeated:
            raise invalid(f"InstancePools of variant {name} have the same {key} more than once: {', '.join(repeated)}.")
    least, most = whole(scaling, "MinInstanceCount", 0), whole(scaling, "MaxInstanceCount", 1)
    if "MaxInstanceCount" in scaling and least > most:
        raise invalid(f"MinInstanceCount of variant {name} is greater than its MaxInstanceCount.")
    routing = child(variant, "RoutingConfig")
    if "PrefixAwareRoutingConfig" in routing and text_member(routing, "RoutingStrategy") != "PREFIX_AWARE":
        raise invalid(f"PrefixAwareRoutingConfig of variant {name} needs RoutingStrategy PREFIX_AWARE.")
    if has_model(variant):
        for pool in pools_of(variant):
            cloud.store.need(Kind.MODEL, pool.model_name)
    elif "ExecutionRoleArn" not in request:
        raise invalid(
            f"ExecutionRoleArn is required when variant {name} has no ModelName (it is to host inference components)."
        )


def _check_kinds(request: Document, production: list[Document], shadows: list[Document]) -> None:
    with_models = [has_model(variant) for variant in (*production, *shadows)]
    if any(with_models) and not all(with_models):
        raise invalid("Either every variant has a model, or none: an endpoint hosts models or inference components.")
    if shadows and (len(production), len(shadows)) != (1, 1):
        raise invalid("ShadowProductionVariants need exactly one production variant and one shadow variant.")
    if shadows and not all(with_models):
        raise invalid("Shadow variants need a ModelName: inference components have none.")
    if "AsyncInferenceConfig" not in request:
        return
    if not text_member(child(child(request, "AsyncInferenceConfig"), "OutputConfig"), "S3OutputPath"):
        raise invalid("The embedded AWS has no default bucket: AsyncInferenceConfig.OutputConfig needs S3OutputPath.")
    if not all(with_models):
        raise invalid(
            "AsyncInferenceConfig needs variants with a ModelName: inference components take no async requests."
        )


def _check_exclusions(cloud: Cloud, config: Record) -> None:
    """Refuse what the kind of the endpoint excludes, of the configuration, its variants and their models."""
    refused: list[str] = []
    for variant in configured_variants(config):
        model = cloud.store.find(Kind.MODEL, text_member(variant.document, "ModelName"))
        kinds = hosting_kinds(variant, config)
        refused += refusals(kinds, "variant", variant.document)
        refused += refusals(kinds, "config", config.request)
        refused += refusals(kinds, "model", model.request if model else {})
        size = child(variant.document, "ServerlessConfig")
        if size and size["MemorySizeInMB"] not in MEMORY_MB:
            refused.append(f"MemorySizeInMB is one of {', '.join(map(str, MEMORY_MB))}")
        if whole(size, "ProvisionedConcurrency", 0) > whole(size, "MaxConcurrency", 0):
            refused.append("ProvisionedConcurrency is at most MaxConcurrency")
    if refused:
        raise invalid(f"{'; '.join(dict.fromkeys(refused))}.")


def _repeated(values: list[object]) -> list[str]:
    return [str(value) for value, count in Counter(values).items() if count > 1]


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
