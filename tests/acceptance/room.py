"""An endpoint without room: a component beside the one that serves takes every instance that it may have."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.acceptance.endpoint import Endpoint


def filled(endpoint: Endpoint) -> str:
    """Take every instance that is left with a component of the live model, and return its name once it serves."""
    client, live = endpoint.target.client("sagemaker"), endpoint.described()
    (variant,) = client.describe_endpoint(EndpointName=endpoint.endpoint_name)["ProductionVariants"]
    free = variant["ManagedInstanceScaling"]["MaxInstanceCount"] - endpoint.copies()
    name = f"{endpoint.endpoint_name}-filler"
    client.create_inference_component(
        InferenceComponentName=name,
        EndpointName=endpoint.endpoint_name,
        VariantName=variant["VariantName"],
        Specification={
            "ModelName": live["Specification"]["ModelName"],
            "ComputeResourceRequirements": live["Specification"]["ComputeResourceRequirements"],
        },
        RuntimeConfig={"CopyCount": free},
    )

    def serves() -> bool:
        told = client.describe_inference_component(InferenceComponentName=name)
        return bool(told["InferenceComponentStatus"] == "InService")

    endpoint.target.until(serves, "the instances are taken")
    return name


def emptied(endpoint: Endpoint, name: str, *, delete: bool = True) -> None:
    """Delete a component, unless somebody did, and wait until it is gone."""
    client = endpoint.target.client("sagemaker")
    if delete:
        client.delete_inference_component(InferenceComponentName=name)

    def gone() -> bool:
        listed = client.list_inference_components(NameContains=name)["InferenceComponents"]
        return not listed

    endpoint.target.until(gone, f"{name} is gone")
    with suppress(ClientError):  # SageMaker makes the group of its logs, and leaves it behind
        logs = endpoint.target.client("logs")
        logs.delete_log_group(logGroupName=f"/aws/sagemaker/InferenceComponents/{name}")
