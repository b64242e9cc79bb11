"""Routing of an invocation to a copy, and the refusals of the runtime itself."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.control_plane.endpoints import components_of, serving_component
from seatrial_laptop.aws.control_plane.records import Kind, Status, is_asynchronous, live_variants
from seatrial_laptop.aws.json_document import child, text_member, whole
from seatrial_laptop.aws.runtime.running_copies import CopyPlace, Preference
from seatrial_laptop.aws.runtime.telemetry import Invocation
from seatrial_laptop.environment import own_account

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import EmulatedVariant, Record
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.running_copies import CopyProcess


COMPONENT_HEADER: Final = "x-amzn-sagemaker-inference-component"
VARIANT_HEADER: Final = "x-amzn-sagemaker-target-variant"
TARGET_MODEL_HEADER: Final = "x-amzn-sagemaker-target-model"
SESSION_HEADER: Final = "x-amzn-sagemaker-session-id"
PREFIX_HEADER: Final = "x-amzn-sagemaker-prefix-aware-id"
PREFIX_BYTES: Final = 1024
"""Bytes of the body that prefix-aware routing looks at when the variant has none: the least that the API allows."""
PREFIX_CONCURRENCY: Final = 16
"""Outstanding requests above which the preferred copy gets no more, when the variant doesn't say."""
SESSION: Final = re.compile(r"NEW_SESSION|[a-zA-Z0-9](-*[a-zA-Z0-9])*")
SERVING: Final = (Status.IN_SERVICE, Status.UPDATING)


@dataclass(frozen=True, slots=True)
class Route:
    """Where an invocation goes: the copy, its place, the variant that AWS names in the answer, and the endpoint."""

    copy: CopyProcess
    place: CopyPlace
    variant: str
    endpoint: str


def serving_endpoint(cloud: Cloud, endpoint_name: str) -> Record:
    """Return an endpoint that takes requests.

    Raises:
        ApiError: ValidationError, as the runtime words it.
    """
    endpoint = cloud.store.find(Kind.ENDPOINT, endpoint_name)
    if endpoint is None:
        raise _invalid(f"Endpoint {endpoint_name} of account {own_account()} not found.")
    if endpoint.status not in SERVING:
        raise _invalid(f"Endpoint {endpoint_name} of account {own_account()} is not InService: {endpoint.status}.")
    return endpoint


def route_request(cloud: Cloud, endpoint_name: str, headers: Mapping[str, str], body: bytes = b"") -> Route:
    """Return the copy that answers, with one more outstanding request; give it back when the request has ended.

    Variants with models get their shares by weight. Within a variant or a component it is the copy with the least
    outstanding requests, or with PREFIX_AWARE the one that had the same prefix before.
    """
    endpoint = serving_endpoint(cloud, endpoint_name)
    if is_asynchronous(cloud.store, endpoint):
        raise _invalid(f"Endpoint {endpoint_name} is asynchronous: use InvokeEndpointAsync.")
    variants = [each for each in live_variants(cloud.store, endpoint) if not each.is_shadow]
    # The service refuses these headers before it looks for a copy.
    if TARGET_MODEL_HEADER in headers:
        raise _invalid(f"TargetModel belongs to a multi-model endpoint, and {endpoint_name} is none.")
    session = headers.get(SESSION_HEADER)
    if session is not None and not SESSION.fullmatch(session):
        raise _invalid(
            f"Value '{session}' at 'sessionId' failed to satisfy constraint: Member must satisfy regular expression "
            f"pattern: {SESSION.pattern}"
        )
    component = headers.get(COMPONENT_HEADER, "")
    if component or components_of(cloud, endpoint_name):
        return _route_to_component(cloud, endpoint_name, component, variants, Prefix(headers, body))
    by_name = {each.name: each for each in variants}
    weights = {variant.name: variant.weight for variant in variants}
    chosen = headers.get(VARIANT_HEADER, "") or cloud.traffic.pick(endpoint_name, weights)
    if chosen not in by_name:
        raise _invalid(f"Variant {chosen} was not found for endpoint {endpoint_name} of account {own_account()}.")
    variant = by_name[chosen]
    place = CopyPlace(endpoint_name, variant.name)
    copy = cloud.running.reserve(place, Prefix(headers, body).preference(variant.document))
    if copy is None:
        raise _invalid(f"Variant {variant.name} of endpoint {endpoint_name} has no capacity to process this request.")
    return Route(copy, place, variant.name, endpoint_name)


def shadow_route(cloud: Cloud, endpoint_name: str) -> Route | None:
    """Return the copy of the shadow variant that gets a copy of this request, or None when it gets none.

    The share is the shadow variant's weight by the production variant's.
    """
    endpoint = cloud.store.find(Kind.ENDPOINT, endpoint_name)
    live = live_variants(cloud.store, endpoint) if endpoint else []
    shadow = next((each for each in live if each.is_shadow), None)
    weight = next((each.weight for each in live if not each.is_shadow), 0.0)
    if shadow is None or not weight or not cloud.traffic.samples(endpoint_name, "shadow", shadow.weight / weight):
        return None
    place = CopyPlace(endpoint_name, shadow.name)
    copy = cloud.running.reserve(place)
    return Route(copy, place, shadow.name, endpoint_name) if copy else None


@dataclass(frozen=True, slots=True)
class Prefix:
    """What prefix-aware routing looks at: the caller's ID when there is one, else the first bytes of the body."""

    headers: Mapping[str, str]
    body: bytes

    def preference(self, variant: Document) -> Preference | None:
        """Return which copy a variant's requests with this prefix prefer; None without PREFIX_AWARE."""
        routing = child(variant, "RoutingConfig")
        if text_member(routing, "RoutingStrategy") != "PREFIX_AWARE":
            return None
        config = child(routing, "PrefixAwareRoutingConfig")
        stated = self.headers.get(PREFIX_HEADER, "").encode()
        prefix = stated or self.body[: whole(config, "PrefixLength", PREFIX_BYTES)]
        return Preference(zlib.crc32(prefix), whole(config, "ConcurrencyThreshold", PREFIX_CONCURRENCY))


def _route_to_component(
    cloud: Cloud, endpoint_name: str, name: str, variants: Sequence[EmulatedVariant], prefix: Prefix
) -> Route:
    """Return the copy of a component; an adapter's requests reach the copies of its base."""
    if not name:
        raise _invalid(
            "Inference Component Name header is required for endpoints to which you plan to deploy inference "
            "components. Please include Inference Component Name header or consider using SageMaker models."
        )
    component = next((each for each in components_of(cloud, endpoint_name) if each.name == name), None)
    if component is None:
        raise _invalid(f"Inference Component {name} of endpoint {endpoint_name} not found.")
    host = next(
        (variant for variant in variants if variant.name == text_member(component.request, "VariantName")), variants[0]
    )
    copy = cloud.running.reserve(CopyPlace(serving_component(component)), prefix.preference(host.document))
    if copy is None:
        refused = Invocation(status=0, model_s=0.0, overhead_s=0.0, in_flight=0, no_capacity=True)
        cloud.telemetry.saw(CopyPlace(name), refused)
        raise _invalid(
            "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress "
            "(if configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
        )
    return Route(copy, CopyPlace(name), host.name, endpoint_name)


def _invalid(message: str) -> ApiError:
    return ApiError("ValidationError", message)
