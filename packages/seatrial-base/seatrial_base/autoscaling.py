"""How Application Auto Scaling decides: the alarms of target tracking, steps, cooldowns, several policies at once.

The embedded AWS and the simulation of a day both decide by these functions. Facts: Application Auto Scaling user guide,
"How target tracking scaling works" (cooldowns, several policies: the largest capacity goes out, all agree to go in) and
"Step scaling policies"; SageMaker AI developer guide, "Automatic scaling" (metrics and their periods), "Scale an
endpoint to zero instances" and "Metrics in CloudWatch" (concurrent requests are normalized by copies; Min and Max).

The alarms of target tracking on the metric of ten seconds: 3 datapoints to scale out, 90 to scale in (AWS, aws-samples/
sagemaker-genai-hosting-examples, `03-features/autoscaling/scale_down_to_zero.ipynb`; the AWS blog of 2024-12-02 on zero
has 90 and a minute). 90 % of the target: AWS Lambda developer guide, "Configuring provisioned concurrency", of its own.
3 and 15 datapoints of a minute: reported (hashicorp/terraform-provider-aws 42553, aws/containers-roadmap 638).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


COOLDOWN_S: Final = 300
"""Virtual seconds between two actions of a policy that doesn't say (StepScalingPolicyConfiguration)."""
HIGH_PERIODS: Final = 3
LOW_WINDOW_S: Final = 900
"""How long the metric has to be low, in every period, before copies are taken away."""
LOW_SHARE: Final = 0.9
"""Of the target: below it the alarm for scaling in counts a period."""
COPIES_COOLDOWN_FROM_ZERO_S: Final = 60
"""Of the step policy that starts the first copy: developer guide, "Scale an endpoint to zero instances"."""
FROM_ZERO_PERIOD_S: Final = 60
IDLE_MINUTES: Final = 20
"""Minutes until an instance without copies is released: API reference, ScaleInPolicy, `CooldownInMinutes`."""
COPIES: Final = "sagemaker:inference-component:DesiredCopyCount"
INSTANCES: Final = "sagemaker:variant:DesiredInstanceCount"
PROVISIONED: Final = "sagemaker:variant:DesiredProvisionedConcurrency"

PREDEFINED: Final = {
    "SageMakerInferenceComponentInvocationsPerCopy": (COPIES, "InvocationsPerCopy", "Sum", 60),
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": (
        COPIES,
        "ConcurrentRequestsPerCopy",
        "Maximum",
        10,
    ),
    "SageMakerVariantInvocationsPerInstance": (INSTANCES, "InvocationsPerInstance", "Sum", 60),
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        INSTANCES,
        "ConcurrentRequestsPerModel",
        "Maximum",
        10,
    ),
    "SageMakerVariantProvisionedConcurrencyUtilization": (
        PROVISIONED,
        "ServerlessProvisionedConcurrencyUtilization",
        "Maximum",
        60,
    ),
}
"""Predefined metric: the dimension that it fits, its CloudWatch name, statistic and period in seconds."""
TRACKING_COOLDOWN_S: Final = {COPIES: 0, INSTANCES: 300}
"""Virtual seconds between two actions of a target-tracking policy that doesn't say."""

NEVER_S: Final = -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LastActions:
    """When the last actions ended, in virtual seconds."""

    out_s: float = NEVER_S
    in_s: float = NEVER_S

    @property
    def any_s(self) -> float:
        """When the last one ended, whichever way."""
        return max(self.out_s, self.in_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A scalable target: its capacities, and which way is suspended."""

    least: int
    most: int
    out_suspended: bool = False
    in_suspended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReading:
    """What one policy sees now.

    Attributes:
        target: The metric's value per copy that is aimed at.
        high: The metric when its alarm for scaling out is in ALARM, else None.
        low: The most of the metric when its alarm for scaling in is in ALARM, else None.
    """

    policy: str
    target: float
    high: float | None = None
    low: float | None = None
    out_cooldown_s: float = 0.0
    in_cooldown_s: float = 0.0
    scales_in: bool = True


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """A capacity that is wanted, and why."""

    desired: int
    cause: str


@dataclass(frozen=True, slots=True)
class WantedStep:
    """What a step scaling policy wants now.

    Attributes:
        desired: The capacity, before the bounds of the target.
        cooldown_s: Virtual seconds after an action the same way until the next one.
    """

    desired: int
    cause: str
    cooldown_s: float


def wanted_change(
    current: int,
    bounds: Bounds,
    readings: Sequence[PolicyReading],
    last: LastActions,
    now_s: float,
    *,
    steps: Sequence[WantedStep] = (),
) -> CapacityChange | None:
    """Return the change that the policies make now, or None.

    The capacities come first, then scaling out by any policy, then scaling in: target tracking when all its policies
    agree, or a step. Of several changes the one with the larger capacity is made.
    """
    stepped = _steps(current, bounds, steps, last, now_s)
    outward = [_out(current, bounds, readings, last, now_s), *(each for each in stepped if each.desired > current)]
    change = _within(current, bounds) or max(
        (each for each in outward if each), key=lambda each: each.desired, default=None
    )
    if change is None and not any(reading.high is not None for reading in readings):
        inward = [_in(current, bounds, readings, last, now_s), *stepped]
        change = max((each for each in inward if each), key=lambda each: each.desired, default=None)
    if change is None or change.desired == current:
        return None
    suspended = bounds.out_suspended if change.desired > current else bounds.in_suspended
    return None if suspended else change


def _steps(
    current: int, bounds: Bounds, steps: Sequence[WantedStep], last: LastActions, now_s: float
) -> list[CapacityChange]:
    """Return the changes of step policies whose cooldown is over, within the bounds."""
    changes = []
    for step in steps:
        desired = min(max(step.desired, bounds.least), bounds.most)
        after_s = last.out_s if desired > current else last.any_s
        if desired != current and now_s >= after_s + step.cooldown_s:
            changes.append(CapacityChange(desired, step.cause))
    return changes


def _within(current: int, bounds: Bounds) -> CapacityChange | None:
    if current < bounds.least:
        return CapacityChange(bounds.least, f"minimum capacity was set to {bounds.least}")
    if current > bounds.most:
        return CapacityChange(bounds.most, f"maximum capacity was set to {bounds.most}")
    return None


def _out(
    current: int, bounds: Bounds, readings: Sequence[PolicyReading], last: LastActions, now_s: float
) -> CapacityChange | None:
    changes = []
    for reading in readings:
        if reading.high is not None and now_s >= last.out_s + reading.out_cooldown_s:
            desired = min(bounds.most, max(current + 1, _keeping(current, reading.high, reading.target)))
            changes.append(CapacityChange(desired, _cause(reading, "High")))
    return max(changes, key=lambda change: change.desired, default=None)


def _in(
    current: int, bounds: Bounds, readings: Sequence[PolicyReading], last: LastActions, now_s: float
) -> CapacityChange | None:
    if not readings or any(reading.low is None for reading in readings if reading.scales_in):
        return None
    ready = [reading for reading in readings if reading.scales_in]
    if len(ready) < len(readings) or any(now_s < last.in_s + each.in_cooldown_s for each in ready):
        return None
    wanted = [(max(bounds.least, min(current, _keeping(current, each.low or 0, each.target))), each) for each in ready]
    return max((CapacityChange(desired, _cause(each, "Low")) for desired, each in wanted), key=lambda one: one.desired)


def _keeping(current: int, metric: float, target: float) -> int:
    """Return how many copies bring the metric per copy to the target or below."""
    return math.ceil(current * metric / target - 1e-9)


def _cause(reading: PolicyReading, side: str) -> str:
    return f"monitor alarm Alarm{side} in state ALARM triggered policy {reading.policy}"
