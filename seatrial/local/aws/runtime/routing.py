"""Which copy answers an invocation, and when the runtime refuses it itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial.local.aws.api import ApiError
from seatrial.local.aws.control_plane.endpoints import components_of
from seatrial.local.aws.control_plane.records import Kind, Status, variants
from seatrial.local.aws.json_document import text
from seatrial.local.aws.runtime.running_copies import Place
from seatrial.local.aws.runtime.telemetry import Invocation
from seatrial.local.environment import own_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.local.aws.control_plane.cloud import Cloud
    from seatrial.local.aws.runtime.copy_process import CopyProcess


COMPONENT_HEADER: Final = "x-amzn-sagemaker-inference-component"
VARIANT_HEADER: Final = "x-amzn-sagemaker-target-variant"
TARGET_MODEL_HEADER: Final = "x-amzn-sagemaker-target-model"
SESSION_HEADER: Final = "x-amzn-sagemaker-session-id"
SESSION: Final = re.compile(r"NEW_SESSION|[a-zA-Z0-9](-*[a-zA-Z0-9])*")
SERVING: Final = (Status.IN_SERVICE, Status.UPDATING)


@dataclass(frozen=True, slots=True)
class Route:
    """Where an invocation goes: the copy, its place, and the variant that AWS names in the answer."""

    copy: CopyProcess
    place: Place
    variant: str


def route(cloud: Cloud, endpoint_name: str, headers: Mapping[str, str]) -> Route:
    """Return the copy with the least outstanding requests, with one more; give it back when the request has ended.

    Raises:
        ApiError: ValidationError, as the runtime words it.
    """
    endpoint = cloud.store.find(Kind.ENDPOINT, endpoint_name)
    if endpoint is None:
        raise _invalid(f"Endpoint {endpoint_name} of account {own_account()} not found.")
    if endpoint.status not in SERVING:
        raise _invalid(f"Endpoint {endpoint_name} of account {own_account()} is not InService: {endpoint.status}.")
    config = cloud.store.need(Kind.ENDPOINT_CONFIG, text(endpoint.request, "EndpointConfigName"))
    names = [text(variant, "VariantName") for variant in variants(config)]
    _check_headers(headers, endpoint_name)
    component = headers.get(COMPONENT_HEADER, "")
    if component or components_of(cloud, endpoint_name):
        copy = _copy_of_component(cloud, endpoint_name, component)
        return Route(copy, Place(component), names[0])
    wanted = headers.get(VARIANT_HEADER, names[0])
    if wanted not in names:
        raise _invalid(f"Variant {wanted} was not found for endpoint {endpoint_name} of account {own_account()}.")
    place = Place(endpoint_name, wanted)
    found = cloud.running.reserve(place)
    if found is None:
        raise _invalid(f"Variant {wanted} of endpoint {endpoint_name} has no capacity to process this request.")
    return Route(found, place, wanted)


def _copy_of_component(cloud: Cloud, endpoint_name: str, name: str) -> CopyProcess:
    if not name:
        raise _invalid(
            "Inference Component Name header is required for endpoints to which you plan to deploy inference "
            "components. Please include Inference Component Name header or consider using SageMaker models."
        )
    if name not in [component.name for component in components_of(cloud, endpoint_name)]:
        raise _invalid(f"Inference Component {name} of endpoint {endpoint_name} not found.")
    copy = cloud.running.reserve(Place(name))
    if copy is None:
        refused = Invocation(status=0, model_s=0.0, overhead_s=0.0, in_flight=0, no_capacity=True)
        cloud.telemetry.saw(Place(name), refused)
        raise _invalid(
            "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress "
            "(if configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
        )
    return copy


def _check_headers(headers: Mapping[str, str], endpoint_name: str) -> None:
    """Refuse what the service refuses before it looks for a copy."""
    if TARGET_MODEL_HEADER in headers:
        raise _invalid(f"TargetModel belongs to a multi-model endpoint, and {endpoint_name} is none.")
    session = headers.get(SESSION_HEADER)
    if session is not None and not SESSION.fullmatch(session):
        raise _invalid(
            f"Value '{session}' at 'sessionId' failed to satisfy constraint: Member must satisfy regular expression "
            f"pattern: {SESSION.pattern}"
        )


def _invalid(message: str) -> ApiError:
    return ApiError("ValidationError", message)
