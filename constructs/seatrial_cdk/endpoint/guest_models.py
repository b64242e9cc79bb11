"""The further models of an endpoint, and the adapters of all of them, as a deployment has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Tags

from seatrial.deployment.alias import alias_name
from seatrial_cdk.endpoint.added_component import AdapterComponent, AddedComponent
from seatrial_cdk.endpoint.endpoint_outputs import EndpointAlias
from seatrial_cdk.endpoint.planned_endpoint import optimized_container, planned_copies
from seatrial_cdk.observability.endpoint_alarms import EndpointAlarms
from seatrial_cdk.scaling.planned_scaling import define_scaling, start_minutes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial_cdk.endpoint.component_endpoint import ComponentEndpoint
    from seatrial_cdk.scaling.planned_scaling import EndpointScaling


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestParts:
    """A further model of an endpoint with what belongs to it.

    Attributes:
        component: Its component.
        alarms: Its alarms.
        scaling: The scaling of its copies; `None` when their number is fixed.
        alias: The SSM parameter that names it.
        adapters: Its adapters.
    """

    component: AddedComponent
    alarms: EndpointAlarms
    scaling: EndpointScaling | None
    alias: EndpointAlias
    adapters: tuple[AdapterComponent, ...]


def define_guests(
    scope: Construct, host: ComponentEndpoint, deployment: Deployment, *, topic_arn: str | None, alias_scope: Construct
) -> tuple[GuestParts, ...]:
    """Define the further models of an endpoint, each with alarms, scaling, alias and adapters.

    Args:
        scope: What they belong to.
        host: The endpoint.
        deployment: The endpoint's deployment.
        topic_arn: Topic of the alarms.
        alias_scope: What the aliases belong to, which stays in each generation.
    """
    return tuple(_define_guest(scope, host, deployment, guest, topic_arn, alias_scope) for guest in deployment.guests)


def traffic_shares(
    host: ComponentEndpoint, guests: Sequence[GuestParts], deployment: Deployment
) -> dict[ComponentEndpoint | AddedComponent, float]:
    """Return the weight of each component of a deployment's traffic; empty where its model takes all requests.

    Args:
        host: The endpoint.
        guests: Its further models.
        deployment: The endpoint's deployment.
    """
    components: list[ComponentEndpoint | AddedComponent] = [host, *(guest.component for guest in guests)]
    names = [deployment.endpoint.name, *(guest.endpoint.name for guest in deployment.guests)]
    by_spec = dict(zip(names, components, strict=True))
    return {by_spec[share.spec]: share.weight for share in deployment.endpoint.hosting.traffic or ()}


def define_adapters(
    scope: Construct, base: ComponentEndpoint | AddedComponent, deployment: Deployment
) -> tuple[AdapterComponent, ...]:
    """Define the adapters of a deployment.

    Args:
        scope: What they belong to.
        base: The component with the base model.
        deployment: Its deployment.
    """
    return tuple(
        AdapterComponent(scope, f"Adapter-{each.name}", base=base, name=each.name, artifact_s3_uri=each.s3_uri)
        for each in deployment.endpoint.serving.adapters
    )


def _define_guest(  # noqa: PLR0917 (private)
    scope: Construct,
    host: ComponentEndpoint,
    deployment: Deployment,
    guest: Deployment,
    topic_arn: str | None,
    alias_scope: Construct,
) -> GuestParts:
    spec, component = guest.endpoint, deployment.component_of(guest)
    # An inference component can't be moved to another endpoint or renamed: a later generation is another resource.
    construct_id = component.removeprefix(f"{deployment.environment.name}-")
    added = AddedComponent(
        scope,
        construct_id,
        endpoint=host,
        name=component.removeprefix(f"{deployment.endpoint_name}-"),
        container=optimized_container(scope, guest),
        copies=planned_copies(guest.plan, spec.hosting),
        alias_name=alias_name(deployment.environment.name, spec.name),
        weights_key=host.weights_key,
        role_options=host.role_options,
    )
    alarms = EndpointAlarms(
        added,
        "Alarms",
        endpoint=added,
        slo=spec.slo,
        output_tokens=spec.workload.output_tokens,
        topic_arn=topic_arn,
        start_minutes=start_minutes(guest),
    )
    scaling = define_scaling(added, "Scaling", added, guest, None)
    alias = EndpointAlias(
        alias_scope, f"Alias-{spec.name}", endpoint=added, after=[each for each in (scaling,) if each is not None]
    )
    for tag, value in spec.tags.items():
        Tags.of(added).add(tag, value)
    return GuestParts(
        component=added,
        alarms=alarms,
        scaling=scaling,
        alias=alias,
        adapters=define_adapters(added, added, guest),
    )
