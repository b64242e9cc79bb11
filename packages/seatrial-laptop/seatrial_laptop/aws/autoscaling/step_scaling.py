"""How far a step scaling policy goes when one of its alarms is in ALARM."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.json_document import Document, children, number, text_member, whole

if TYPE_CHECKING:
    from collections.abc import Sequence


COOLDOWN_S: Final = 300
"""Virtual seconds between two actions of a policy that doesn't say (StepScalingPolicyConfiguration)."""
LOWER: Final = "MetricIntervalLowerBound"
UPPER: Final = "MetricIntervalUpperBound"


@dataclass(frozen=True, slots=True)
class Breach:
    """An alarm in ALARM.

    Attributes:
        alarm: Its name.
        delta: The metric less the threshold.
        is_above: Whether the alarm goes off above its threshold.
    """

    alarm: str
    delta: float
    is_above: bool


def check_steps(configuration: Document) -> None:
    """Refuse a step scaling policy that says nothing, or two things at once.

    Raises:
        ApiError: ValidationException.
    """
    steps = children(configuration, "StepAdjustments")
    if not steps or "AdjustmentType" not in configuration:
        raise invalid("StepScalingPolicyConfiguration must have AdjustmentType and StepAdjustments.")
    bounds = sorted((_bound(step, LOWER, -math.inf), _bound(step, UPPER, math.inf)) for step in steps)
    if any(low >= high for low, high in bounds):
        raise invalid("MetricIntervalLowerBound must be less than MetricIntervalUpperBound.")
    for (_, high), (low, _) in itertools.pairwise(bounds):
        if low < high:
            raise invalid("StepAdjustment intervals must not overlap.")
        if low > high:
            raise invalid("StepAdjustment intervals must not have a gap between them.")
    if "MinAdjustmentMagnitude" in configuration and not _is_percent(configuration):
        raise invalid("MinAdjustmentMagnitude needs AdjustmentType PercentChangeInCapacity.")


def stepped_capacity(configuration: Document, current: int, breach: Breach) -> int:
    """Return the capacity that a policy wants; the current one when no step fits the breach."""
    step = _fitting(children(configuration, "StepAdjustments"), breach)
    if step is None:
        return current
    adjustment = whole(step, "ScalingAdjustment")
    if text_member(configuration, "AdjustmentType") == "ExactCapacity":
        return adjustment
    if _is_percent(configuration):
        return current + _percent(current, adjustment, whole(configuration, "MinAdjustmentMagnitude"))
    return current + adjustment


def _fitting(steps: Sequence[Document], breach: Breach) -> Document | None:
    """Return the step of a breach: above a threshold the lower bound belongs to it, below one the upper."""
    for step in steps:
        low, high = _bound(step, LOWER, -math.inf), _bound(step, UPPER, math.inf)
        if (low <= breach.delta < high) if breach.is_above else (low < breach.delta <= high):
            return step
    return None


def _percent(current: int, percent: int, least: int) -> int:
    """Return a change in percent: less than one counts as one, more is cut to whole copies."""
    change = current * percent / 100
    size = max(math.floor(abs(change)), 1 if change else 0, least if percent else 0)
    return size if percent > 0 else -size


def _is_percent(configuration: Document) -> bool:
    return text_member(configuration, "AdjustmentType") == "PercentChangeInCapacity"


def _bound(step: Document, key: str, default: float) -> float:
    return number(step, key) if key in step else default
