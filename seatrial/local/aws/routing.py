"""Which copy answers an invocation, and when the runtime refuses it itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.local.aws.api_error import ApiError
from seatrial.local.aws.document import text
from seatrial.local.aws.endpoints import components_of
from seatrial.local.aws.fleets import Place
from seatrial.local.aws.records import Kind, Status, variants
from seatrial.local.environment import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.local.aws.cloud import Cloud
    from seatrial.local.aws.copies import Copy

COMPONENT_HEADER: Final = "x-amzn-sagemaker-inference-component"
VARIANT_HEADER: Final = "x-amzn-sagemaker-target-variant"
SERVING: Final = (Status.IN_SERVICE, Status.UPDATING)


def route(cloud: Cloud, endpoint_name: str, headers: Mapping[str, str]) -> tuple[Copy, str]:
    """Return the copy with the least outstanding requests, and the variant that it belongs to.

    Raises:
        ApiError: ValidationError, as the runtime words it.
    """
    endpoint = cloud.store.find(Kind.ENDPOINT, endpoint_name)
    if endpoint is None:
        raise _invalid(f"Endpoint {endpoint_name} of account {ACCOUNT} not found.")
    if endpoint.status not in SERVING:
        raise _invalid(f"Endpoint {endpoint_name} of account {ACCOUNT} is not InService: {endpoint.status}.")
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, text(endpoint.request, "EndpointConfigName"))
    names = [text(variant, "VariantName") for variant in variants(config)]
    component = headers.get(COMPONENT_HEADER, "")
    if component or components_of(cloud, endpoint_name):
        return _copy_of_component(cloud, endpoint_name, component), names[0]
    wanted = headers.get(VARIANT_HEADER, names[0])
    copy = cloud.fleets.pick(Place(endpoint_name, wanted))
    if copy is None:
        raise _invalid(f"Variant {wanted} of endpoint {endpoint_name} has no capacity to process this request.")
    return copy, wanted


def _copy_of_component(cloud: Cloud, endpoint_name: str, name: str) -> Copy:
    if not name:
        raise _invalid(
            "Inference Component Name header is required for endpoints to which you plan to deploy inference "
            "components. Please include Inference Component Name header or consider using SageMaker models."
        )
    if name not in [component.name for component in components_of(cloud, endpoint_name)]:
        raise _invalid(f"Inference Component {name} of endpoint {endpoint_name} not found.")
    copy = cloud.fleets.pick(Place(name))
    if copy is None:
        raise _invalid(
            "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress "
            "(if configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
        )
    return copy


def _invalid(message: str) -> ApiError:
    return ApiError("ValidationError", message)
