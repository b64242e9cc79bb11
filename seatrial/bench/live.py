"""Proof that the live endpoint is this deployment's: `InService` alone also describes a rolled-back update.

What is live is told by names, not by a status: while managed instance scaling returns an update's extra instances, and
while copies are scaled, a healthy endpoint or component is `Updating`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.result import LiveProof
from seatrial.errors import BenchError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import DescribeEndpointOutputTypeDef, DescribeInferenceComponentOutputTypeDef

    from seatrial.bench.request import Expected, Target

SERVING = ("InService", "Updating")
ROLLED_BACK_HINT = "the update was rolled back, or another deployment came between: read the endpoint's events"


def prove_live(target: Target, expected: Expected, *, sagemaker: SageMakerClient | None = None) -> LiveProof:
    """Ask the control plane what is live and compare it with this deployment.

    Args:
        target: The endpoint, and its inference component if it has one.
        expected: What this deployment made.
        sagemaker: The control plane's client; made by boto3 for the target's region when not given.

    Raises:
        BenchError: SEA502, with every difference; SEA503 no credentials; SEA504 the control plane can't be reached.
    """
    where = f"endpoint {target.endpoint_name}"
    endpoint, component = _described(target, sagemaker, where)
    differences = list(_endpoint_differences(endpoint, expected))
    if component is not None:
        differences += _component_differences(component, target, expected)
    if differences:
        raise BenchError(Problem(where, field, "SEA502", text, ROLLED_BACK_HINT) for field, text in differences)
    return _proof(endpoint, component, expected)


def not_proven() -> LiveProof:
    """Say that nothing was proven, since no deployment was named."""
    because = "not proven: the request names no deployment that the endpoint should belong to"
    return LiveProof(proven=False, endpoint_config_name=None, model_name=None, copy_count=None, because=because)


def _described(
    target: Target, sagemaker: SageMakerClient | None, where: str
) -> tuple[DescribeEndpointOutputTypeDef, DescribeInferenceComponentOutputTypeDef | None]:
    from botocore import exceptions  # noqa: PLC0415 (costs half a second; only needed where a deployment is proven)

    no_credentials = (
        exceptions.CredentialRetrievalError,
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.ProfileNotFound,
        exceptions.SSOError,
        exceptions.TokenRetrievalError,
    )
    try:
        client = _client(target.region) if sagemaker is None else sagemaker
        return client.describe_endpoint(EndpointName=target.endpoint_name), _component(client, target)
    except exceptions.ClientError as refused:
        raise BenchError.of("SEA502", f"the control plane refused to describe it: {refused}", where=where) from refused
    except no_credentials as missing:
        raise BenchError.of("SEA503", f"no credentials to describe it with: {missing}", where=where) from missing
    except exceptions.BotoCoreError as unreachable:
        message = f"the control plane can't be reached: {unreachable}"
        raise BenchError.of("SEA504", message, where=where) from unreachable


def _client(region: str) -> SageMakerClient:
    import boto3  # noqa: PLC0415 (costs more than a second; only needed where a deployment is proven)

    return boto3.client("sagemaker", region_name=region)


def _component(client: SageMakerClient, target: Target) -> DescribeInferenceComponentOutputTypeDef | None:
    if target.inference_component is None:
        return None
    return client.describe_inference_component(InferenceComponentName=target.inference_component)


def _copies(component: DescribeInferenceComponentOutputTypeDef | None) -> int | None:
    return None if component is None else component.get("RuntimeConfig", {}).get("CurrentCopyCount", 0)


def _proof(
    endpoint: DescribeEndpointOutputTypeDef,
    component: DescribeInferenceComponentOutputTypeDef | None,
    expected: Expected,
) -> LiveProof:
    config_name, copies = endpoint["EndpointConfigName"], _copies(component)
    runs = (
        ""
        if component is None
        else (
            f", its component is {component['InferenceComponentStatus']} and runs model {expected.model_name} "
            f"in {copies} copies"
        )
    )
    return LiveProof(
        proven=True,
        endpoint_config_name=config_name,
        model_name=None if copies is None else expected.model_name,
        copy_count=copies,
        because=f"the endpoint is {endpoint['EndpointStatus']} on config {config_name}{runs}",
    )


def _endpoint_differences(endpoint: DescribeEndpointOutputTypeDef, expected: Expected) -> Iterator[tuple[str, str]]:
    live_config = endpoint.get("EndpointConfigName", "none")
    if endpoint["EndpointStatus"] not in SERVING:
        yield "EndpointStatus", f"the endpoint is {endpoint['EndpointStatus']}, neither InService nor Updating"
    if live_config != expected.endpoint_config_name:
        wanted = expected.endpoint_config_name
        yield "EndpointConfigName", f"the live endpoint config is {live_config}, this deployment's is {wanted}"
    if endpoint.get("FailureReason"):
        yield "FailureReason", f"the endpoint's last update failed: {endpoint['FailureReason']}"


def _component_differences(
    component: DescribeInferenceComponentOutputTypeDef, target: Target, expected: Expected
) -> Iterator[tuple[str, str]]:
    name = target.inference_component
    status = component.get("InferenceComponentStatus", "unknown")
    live_model = component.get("Specification", {}).get("ModelName", "none")
    copies = _copies(component)
    if component["EndpointName"] != target.endpoint_name:
        yield "EndpointName", f"component {name} is on endpoint {component['EndpointName']}"
    if status not in SERVING:
        yield "InferenceComponentStatus", f"component {name} is {status}, neither InService nor Updating"
    if live_model != expected.model_name:
        wanted = expected.model_name
        yield (
            "Specification.ModelName",
            f"the live model of component {name} is {live_model}, this deployment's is {wanted}",
        )
    if component.get("FailureReason"):
        yield "FailureReason", f"component {name}: {component['FailureReason']}"
    if copies is None or copies < 1:
        yield "RuntimeConfig.CurrentCopyCount", f"component {name} runs {copies} copies, at least 1 is needed"
