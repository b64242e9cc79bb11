"""The scaling of a deployment: limits, schedules and how instances go, as its spec says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from aws_cdk import Token

from seatrial_base.bounds import INSTANCE_START_S
from seatrial_base.units import S_PER_MINUTE
from seatrial_cdk.scaling.endpoint_scaling import (
    BacklogScaling,
    CopyScaling,
    ScalingLimits,
    ScheduledCapacity,
    VariantScaling,
)

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.specs.scaling import ScalingSpec
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.trials.endpoint_trial import SmokeBenchmark

EndpointScaling: TypeAlias = CopyScaling | VariantScaling | BacklogScaling


def scaling_limits(scaling: ScalingSpec) -> ScalingLimits:
    """Return the limits of a spec's scaling."""
    return ScalingLimits(
        min_capacity=scaling.min_copies,
        max_capacity=scaling.max_copies,
        scale_out_cooldown_s=scaling.scale_out_cooldown_s,
        scale_in_cooldown_s=scaling.scale_in_cooldown_s,
        schedules=tuple(
            ScheduledCapacity(
                name=each.name,
                schedule=each.schedule,
                timezone=each.timezone,
                min_capacity=each.min_copies,
                max_capacity=each.max_copies,
            )
            for each in scaling.schedules
        ),
        scale_in_protection=scaling.scale_in_protection,
    )


def define_scaling(
    scope: Construct, construct_id: str, endpoint: ILlmEndpoint, deployment: Deployment, trial: SmokeBenchmark | None
) -> EndpointScaling | None:
    """Define the scaling that matches the kind of a deployed endpoint; `None` when the number of copies is fixed.

    Each variant is scaled between the same limits; a queue by what waits for its first variant.

    Args:
        scope: What it belongs to.
        construct_id: Its construct ID; the variant's name is added from the second variant on.
        endpoint: The endpoint.
        deployment: What is deployed.
        trial: Its response attributes have the target; `None` without trials.
    """
    scaling, planned = deployment.endpoint.scaling, deployment.plan.target_concurrency_per_copy.value
    if scaling.is_fixed:
        return None
    limits = scaling_limits(scaling)
    if endpoint.inference_component_name is not None:
        target = planned if trial is None else Token.as_number(trial.attribute("TargetConcurrencyPerCopy"))
        return CopyScaling(scope, construct_id, endpoint=endpoint, limits=limits, target_concurrency_per_copy=target)
    if endpoint.is_asynchronous:
        return BacklogScaling(
            scope, construct_id, endpoint=endpoint, limits=limits, target_backlog_per_instance=planned
        )
    names = [each.name for each in deployment.endpoint.hosting.variants or ()] or [endpoint.variant_name]
    made = [
        VariantScaling(
            scope,
            construct_id if name == names[0] else f"{construct_id}{name}",
            endpoint=endpoint,
            limits=limits,
            target_concurrency_per_instance=planned,
            variant_name=name,
        )
        for name in names
    ]
    return made[0]


def start_minutes(deployment: Deployment) -> int:
    """Return how many minutes refused requests are normal for: as long as a start from zero may take, else one."""
    if not deployment.endpoint.scaling.goes_to_zero:
        return 1
    plan = deployment.plan
    return math.ceil((INSTANCE_START_S + plan.download_timeout_s.value + plan.startup_timeout_s.value) / S_PER_MINUTE)
