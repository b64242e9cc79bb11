"""Proof that the live endpoint is this deployment's: `InService` alone also describes a rolled-back update.

Names identify the live deployment, not a status: while managed instance scaling returns an update's extra instances,
and while copies are scaled, a healthy endpoint or component is `Updating`. Of the image, the model has the requested
name; a component that names its container itself also has the digest that was pulled for it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.aws.errors import aws_problem, is_denied
from seatrial_load.documents.result import LiveProof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import (
        DescribeEndpointOutputTypeDef,
        DescribeInferenceComponentOutputTypeDef,
        DescribeModelOutputTypeDef,
    )

    from seatrial_load.documents.request import Expected, TrialTarget


SERVING = ("InService", "Updating")
# The differences of another deployment, as opposed to those of one that broke.
IDENTITY = ("EndpointConfigName", "EndpointName", "Specification.ModelName", "Image")
DENIED_POLL_S = 5.0
# Wait for a missing permission: one that was just granted isn't known everywhere at once (AWS IAM).
DENIED_PATIENCE_S = 60.0
ROLLED_BACK_HINT = "the update was rolled back or another deployment replaced it: check the endpoint's events"


def prove_live(
    target: TrialTarget,
    expected: Expected,
    *,
    sagemaker: SageMakerClient | None = None,
    sleep: Callable[[float], None] = time.sleep,
    patience_s: float = DENIED_PATIENCE_S,
) -> LiveProof:
    """Describe the live endpoint and compare it with this deployment.

    Raises:
        BenchError: SEA502, with every difference; SEA503 no credentials; SEA504 the control plane can't be reached;
            SEA511 a permission is missing; SEA512 a value of the AWS configuration can't be used.
    """
    where, live, differences = _compared(target, expected, sagemaker, _Patience(sleep, patience_s))
    if differences:
        raise _refusal(where, differences)
    return _proof(live, expected)


def prove_still_live(
    target: TrialTarget,
    expected: Expected,
    *,
    sagemaker: SageMakerClient | None = None,
    sleep: Callable[[float], None] = time.sleep,
    patience_s: float = DENIED_PATIENCE_S,
) -> LiveProof:
    """Check again after the measurement: a deployment that broke meanwhile is data, another one in its place is not.

    Returns:
        The proof; one that isn't proven, with what broke, when an endpoint or a component failed or lost its copies.

    Raises:
        BenchError: SEA502 another deployment is live; SEA503 no credentials; SEA504 the control plane can't be reached;
            SEA511 a permission is missing; SEA512 a value of the AWS configuration can't be used.
    """
    where, live, differences = _compared(target, expected, sagemaker, _Patience(sleep, patience_s))
    if any(field in IDENTITY for field, _ in differences):
        raise _refusal(where, differences)
    proof = _proof(live, expected)
    return replace(proof, proven=False, because="; ".join(text for _, text in differences)) if differences else proof


@dataclass(frozen=True, slots=True)
class _Patience:
    """The wait for a missing permission."""

    sleep: Callable[[float], None]
    longest_s: float

    def described(self, client: SageMakerClient, target: TrialTarget, expected: Expected) -> _Live:
        """Describe what is live; where that is denied, again every few seconds, up to `longest_s`."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 (only needed to prove a deployment)

        left_s = self.longest_s
        while True:
            try:
                endpoint = client.describe_endpoint(EndpointName=target.endpoint_name)
                name = target.inference_component
                component = None if name is None else client.describe_inference_component(InferenceComponentName=name)
                live = _Live(endpoint, component, None)
                # the model is read only where its image is to be proven, and only this deployment's own
                if expected.image is None or live.model_name != expected.model_name:
                    return live
                return replace(live, model=client.describe_model(ModelName=expected.model_name))
            except ClientError as refused:
                if not is_denied(refused) or left_s < DENIED_POLL_S:
                    raise
            left_s -= DENIED_POLL_S
            self.sleep(DENIED_POLL_S)


def _compared(
    target: TrialTarget, expected: Expected, sagemaker: SageMakerClient | None, patience: _Patience
) -> tuple[str, _Live, list[tuple[str, str]]]:
    where = f"endpoint {target.endpoint_name}"
    with asking(where):
        if sagemaker is None:
            import boto3  # noqa: PLC0415 (costs more than a second; only needed where a deployment is proven)

            sagemaker = boto3.client("sagemaker", region_name=target.region)
        live = patience.described(sagemaker, target, expected)
    differences = list(_endpoint_differences(live.endpoint, expected))
    if live.component is not None:
        differences += _component_differences(live.component, target, expected)
    return where, live, [*differences, *_image_differences(live, expected)]


def _refusal(where: str, differences: Iterable[tuple[str, str]]) -> BenchError:
    return BenchError(Finding("SEA502", Place.at(where, field), text, ROLLED_BACK_HINT) for field, text in differences)


def not_proven() -> LiveProof:
    """Return that nothing was proven, since no deployment was named."""
    because = "not checked: the request names no deployment"
    return LiveProof(proven=False, endpoint_config_name=None, model_name=None, copy_count=None, because=because)


@dataclass(frozen=True, slots=True)
class _Live:
    """The control plane's descriptions; no component where the variant holds the model, no model unless needed."""

    endpoint: DescribeEndpointOutputTypeDef
    component: DescribeInferenceComponentOutputTypeDef | None
    model: DescribeModelOutputTypeDef | None

    @property
    def model_name(self) -> str | None:
        """The model of the component; None where it has a container of its own."""
        return None if self.component is None else self.component.get("Specification", {}).get("ModelName")

    @property
    def images(self) -> tuple[str, ...]:
        """The image by each name that is known: what was specified, and what it was resolved to."""
        specification = {} if self.component is None else self.component.get("Specification", {})
        deployed = specification.get("Container", {}).get("DeployedImage", {})
        container = {} if self.model is None else self.model.get("PrimaryContainer", {})
        names = (deployed.get("SpecifiedImage"), deployed.get("ResolvedImage"), container.get("Image"))
        return tuple(dict.fromkeys(name for name in names if name))


@contextmanager
def asking(where: str) -> Iterator[None]:
    """Raise the problem of a call of the control plane; `where` names its subject.

    Raises:
        BenchError: As `prove_live`.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (only needed to prove a deployment)

    try:
        yield
    except (BotoCoreError, ClientError, OSError, ValueError) as failed:
        problem = aws_problem(failed, where=where)
        if problem is not None:
            raise BenchError([problem]) from failed
        if not isinstance(failed, ClientError):
            raise
        raise BenchError.of("SEA502", f"it can't be described: {failed}", where=where) from failed


def _copies(component: DescribeInferenceComponentOutputTypeDef | None) -> int | None:
    return None if component is None else component.get("RuntimeConfig", {}).get("CurrentCopyCount", 0)


def _proof(live: _Live, expected: Expected) -> LiveProof:
    endpoint, component = live.endpoint, live.component
    config_name, copies = endpoint["EndpointConfigName"], _copies(component)
    runs = (
        ""
        if component is None
        else (
            f", its component is {component['InferenceComponentStatus']} and runs model {expected.model_name} "
            f"in {copies} copies"
        )
    )
    image = f", from image {live.images[-1]}" if expected.image is not None and live.images else ""
    return LiveProof(
        proven=True,
        endpoint_config_name=config_name,
        model_name=None if copies is None else expected.model_name,
        copy_count=copies,
        because=f"the endpoint is {endpoint['EndpointStatus']} with config {config_name}{runs}{image}",
    )


def _endpoint_differences(endpoint: DescribeEndpointOutputTypeDef, expected: Expected) -> Iterator[tuple[str, str]]:
    live_config = endpoint.get("EndpointConfigName", "none")
    if endpoint["EndpointStatus"] not in SERVING:
        yield "EndpointStatus", f"the endpoint is {endpoint['EndpointStatus']}, not InService or Updating"
    if live_config != expected.endpoint_config_name:
        wanted = expected.endpoint_config_name
        yield "EndpointConfigName", f"the live endpoint config is {live_config}, not {wanted} of this deployment"
    if endpoint.get("FailureReason"):
        yield "FailureReason", f"the endpoint's last update failed: {endpoint['FailureReason']}"


def _component_differences(
    component: DescribeInferenceComponentOutputTypeDef, target: TrialTarget, expected: Expected
) -> Iterator[tuple[str, str]]:
    name = target.inference_component
    status = component.get("InferenceComponentStatus", "unknown")
    live_model = component.get("Specification", {}).get("ModelName", "none")
    copies = _copies(component)
    if component["EndpointName"] != target.endpoint_name:
        yield "EndpointName", f"component {name} is on endpoint {component['EndpointName']}"
    if status not in SERVING:
        yield "InferenceComponentStatus", f"component {name} is {status}, not InService or Updating"
    if live_model != expected.model_name:
        wanted = expected.model_name
        yield (
            "Specification.ModelName",
            f"the live model of component {name} is {live_model}, not {wanted} of this deployment",
        )
    if component.get("FailureReason"):
        yield "FailureReason", f"component {name}: {component['FailureReason']}"
    if copies is None or copies < 1:
        yield "RuntimeConfig.CurrentCopyCount", f"component {name} runs {copies} copies; at least 1 is needed"


def _image_differences(live: _Live, expected: Expected) -> Iterator[tuple[str, str]]:
    # By its whole name, or by the digest that the plan pinned: a registry may resolve a tag to another name.
    wanted = expected.image
    if wanted is None or not live.images:
        return
    _, at, digest = wanted.partition("@")
    if not any(name == wanted or (digest and name.endswith(at + digest)) for name in live.images):
        yield "Image", f"the live image is {' resolved to '.join(live.images)}, not {wanted} of this deployment"
