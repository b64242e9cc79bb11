"""The scaling of a deployment: limits, schedules and how instances go, as its spec says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.spec.scaling import InstanceScaleInSpec
from seatrial.units import S_PER_MINUTE
from seatrial_cdk.rolling_update import INSTANCE_START_S
from seatrial_cdk.scaling_limits import ScalingLimits, ScheduledCapacity
from seatrial_cdk.variant_instances import InstanceScaleIn

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment
    from seatrial.spec.scaling import ScalingSpec


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


def instance_scale_in(scaling: ScalingSpec) -> InstanceScaleIn | None:
    """Return how instances are removed; `None` as the service does it."""
    asked = scaling.instance_scale_in
    if asked == InstanceScaleInSpec():
        return None
    return InstanceScaleIn(
        strategy="CONSOLIDATION" if asked.strategy == "consolidation" else "IDLE_RELEASE",
        cooldown_minutes=asked.cooldown_minutes,
        max_step=asked.max_step,
    )


def start_minutes(deployment: Deployment) -> int:
    """Return how many minutes refused requests are normal for: as long as a start from zero may take, else one."""
    if not deployment.endpoint.scaling.goes_to_zero:
        return 1
    plan = deployment.plan
    return math.ceil((INSTANCE_START_S + plan.download_timeout_s.value + plan.startup_timeout_s.value) / S_PER_MINUTE)
