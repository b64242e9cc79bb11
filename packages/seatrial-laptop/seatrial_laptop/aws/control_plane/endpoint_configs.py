"""Endpoint configurations: what SageMaker refuses when they are created."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.control_plane.instance_pools import pools_of
from seatrial_laptop.aws.control_plane.live_variants import SHADOWS, has_model
from seatrial_laptop.aws.control_plane.records import Kind, Record, variants
from seatrial_laptop.aws.json_document import Document, child, children, text, whole

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.cloud import Cloud


def create_endpoint_config(cloud: Cloud, request: Document) -> Document:
    """Keep an endpoint configuration.

    Raises:
        ApiError: ValidationException, its members don't fit together, a model isn't there, or the name is taken.
    """
    plain = {key: value for key, value in request.items() if key != "Tags"}
    record = Record(Kind.ENDPOINT_CONFIG, text(request, "EndpointConfigName"), plain)
    shadows = children(request, SHADOWS)
    for variant in (*variants(record), *shadows):
        _check_variant(cloud, request, variant)
    _check_names([*variants(record), *shadows])
    _check_kinds(request, variants(record), shadows)
    return {"EndpointConfigArn": cloud.store.add(record, children(request, "Tags")).arn}


def _check_variant(cloud: Cloud, request: Document, variant: Document) -> None:
    name = text(variant, "VariantName")
    _check_instances(name, variant)
    _check_routing(name, variant)
    if has_model(variant):
        for pool in pools_of(variant):
            cloud.store.need(Kind.MODEL, pool.model_name)
    elif "ExecutionRoleArn" not in request:
        raise invalid(
            f"ExecutionRoleArn is required when variant {name} has no ModelName (it is to host inference components)."
        )


def _check_instances(name: str, variant: Document) -> None:
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


def _check_routing(name: str, variant: Document) -> None:
    routing = child(variant, "RoutingConfig")
    if "PrefixAwareRoutingConfig" in routing and text(routing, "RoutingStrategy") != "PREFIX_AWARE":
        raise invalid(f"PrefixAwareRoutingConfig of variant {name} needs RoutingStrategy PREFIX_AWARE.")


def _check_names(every: list[Document]) -> None:
    repeated = _repeated([text(variant, "VariantName") for variant in every])
    if repeated:
        raise invalid(f"Variant names must be unique: {', '.join(repeated)}.")


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
    if not text(child(child(request, "AsyncInferenceConfig"), "OutputConfig"), "S3OutputPath"):
        raise invalid("The embedded AWS has no default bucket: AsyncInferenceConfig.OutputConfig needs S3OutputPath.")
    if shadows:
        raise invalid("AsyncInferenceConfig and ShadowProductionVariants exclude each other.")
    if not all(with_models):
        raise invalid(
            "AsyncInferenceConfig needs variants with a ModelName: inference components take no async requests."
        )


def _repeated(values: list[object]) -> list[str]:
    return [str(value) for value, count in Counter(values).items() if count > 1]
