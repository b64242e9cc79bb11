"""Scaling by policies and schedules: alarms are read, and copies or instances are added or removed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.alarms import StateValue, alarm_rule, is_ours
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling.scalable_targets import LOOKED, ScalingActivity, capacities_of, is_due, is_over
from seatrial_laptop.aws.autoscaling.scaling_policies import (
    COOLDOWN_S,
    COPIES,
    HIGH,
    HIGH_PERIODS,
    INSTANCES,
    LOW,
    Breach,
    stepped_capacity,
)
from seatrial_laptop.aws.control_plane.endpoints import update_weights_and_capacities
from seatrial_laptop.aws.control_plane.inference_components import copy_count, scale_component
from seatrial_laptop.aws.control_plane.records import Kind, Status, live_variants
from seatrial_laptop.aws.json_document import child, children, number, text_member, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_laptop.aws.alarms import AlarmBook
    from seatrial_laptop.aws.autoscaling.scalable_targets import Key, Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.json_document import Document


ACTED_ON: Final = (COPIES, INSTANCES)
"""The scalable dimensions of targets that are acted on."""
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


@dataclass(slots=True)
class _Actions:
    """What was done to one resource: the activity that goes on, and when the last ones ended."""

    resource_since_s: float
    running: ScalingActivity | None = None
    last: LastActions = field(default_factory=LastActions)


@dataclass(slots=True)
class ScalingActions:
    """Acts on every scalable target of copies or instances; one thread uses it.

    Attributes:
        scale: UpdateInferenceComponentRuntimeConfig.
        resize: UpdateEndpointWeightsAndCapacities.
    """

    cloud: Cloud
    scaling: Scaling
    book: AlarmBook
    scale: Callable[[Cloud, Document], Document] = scale_component
    resize: Callable[[Cloud, Document], Document] = update_weights_and_capacities
    _actions: dict[Key, _Actions] = field(default_factory=dict)

    def act(self, now_s: float) -> None:
        """Note which activities have ended, do what is scheduled, and start what is wanted now."""
        with self.scaling.lock:
            date_s = self.cloud.clock.date_s(now_s)
            for (scheduled_key, name), action in list(self.scaling.scheduled.items()):
                scheduled_target = self.scaling.targets[scheduled_key]
                suspended = child(scheduled_target, "SuspendedState").get("ScheduledScalingSuspended") is True
                if is_due(action, date_s) and not suspended:
                    self._set_capacities(scheduled_key, scheduled_target, action)
                if is_over(action, date_s):
                    del self.scaling.scheduled[scheduled_key, name]
                else:
                    self.scaling.scheduled[scheduled_key, name] = {**action, LOOKED: date_s}
            targets = {key: target for key, target in self.scaling.targets.items() if key[2] in ACTED_ON}
        # A target that was deregistered starts without a past when it is registered again.
        for key in self._actions.keys() - targets.keys():
            self._note_end(self._actions[key], None, now_s)
        self._actions = {key: each for key, each in self._actions.items() if key in targets or each.running}
        for key, target in targets.items():
            self._act_on(key, target, now_s)

    def _set_capacities(self, key: Key, target: Document, action: Document) -> None:
        changed = {**target, **capacities_of(action)}
        least, most = whole(changed, "MinCapacity"), whole(changed, "MaxCapacity")
        activity = ScalingActivity(
            key=key,
            desired=least,
            scales_out=False,
            cause=f"scheduled action name {text_member(action, 'ScheduledActionName')} was triggered",
            message=f"Successfully set min capacity to {least} and max capacity to {most}",
            description=f"Setting min capacity to {least} and max capacity to {most}",
        )
        if least <= most:
            self.scaling.targets[key] = changed
            activity.status = "Successful"
        else:
            activity.status, activity.message = "Failed", "MaxCapacity must be greater than or equal to MinCapacity."
        activity.ended_s = activity.started_s
        self.scaling.activities.append(activity)

    def _act_on(self, key: Key, target: Document, now_s: float) -> None:
        resource = scaled_resource(self.cloud, key)
        since_s = resource.record.created_s if resource else 0.0
        done = self._actions.get(key)
        if done is None or (done.resource_since_s != since_s and done.running is None):
            done = self._actions[key] = _Actions(since_s)
        self._note_end(done, resource, now_s)
        if resource is None or resource.record.status is not Status.IN_SERVICE or done.running:
            return
        policies = self._policies(key)
        readings = [self._reading(policy, done.last, now_s) for policy in policies if not _is_step(policy)]
        steps = [
            step
            for policy in policies
            if _is_step(policy)
            for step in self._steps(policy, resource.current, done.last, now_s)
        ]
        suspended = child(target, "SuspendedState")
        change = wanted_change(
            resource.current,
            Bounds(
                least=whole(target, "MinCapacity"),
                most=whole(target, "MaxCapacity"),
                out_suspended=suspended.get("DynamicScalingOutSuspended") is True,
                in_suspended=suspended.get("DynamicScalingInSuspended") is True,
            ),
            readings,
            done.last,
            now_s,
            steps=steps,
        )
        if change is not None:
            self._start(key, resource, change, done)

    def _start(self, key: Key, resource: ScaledResource, change: CapacityChange, done: _Actions) -> None:
        try:
            (self.resize if resource.variant else self.scale)(self.cloud, resource.request(change.desired))
        except ApiError:
            # It changes for another reason: the next period tries again.
            return
        activity = ScalingActivity(
            key=key,
            desired=change.desired,
            scales_out=change.desired > resource.current,
            cause=change.cause,
            message="",
        )
        activity.message = (
            f"Successfully set {activity.counted} to {change.desired}. Waiting for change to be fulfilled."
        )
        done.running = activity
        with self.scaling.lock:
            self.scaling.activities.append(activity)

    def _policies(self, key: Key) -> list[Document]:
        with self.scaling.lock:
            return [policy for (whose, _), policy in self.scaling.policies.items() if whose == key]

    def _note_end(self, done: _Actions, resource: ScaledResource | None, now_s: float) -> None:
        activity = done.running
        if activity is None or (resource is not None and resource.record.status and resource.record.status.in_transit):
            return
        done.running = None
        gone = f"The {'inference component' if activity.key[2] == COPIES else 'endpoint'} was deleted."
        activity.end(resource.failure(activity.desired) if resource else gone)
        ended = {"out_s" if activity.scales_out else "in_s": now_s}
        done.last = replace(done.last, **ended)

    def _steps(self, policy: Document, current: int, last: LastActions, now_s: float) -> list[WantedStep]:
        configuration = child(policy, "StepScalingPolicyConfiguration")
        cooldown_s = whole(configuration, "Cooldown", COOLDOWN_S)
        steps = []
        for alarm in self.book.raised(text_member(policy, "PolicyARN")):
            breach = self._breach(alarm, last, now_s)
            if breach is None:
                continue
            cause = f"monitor alarm {breach.alarm} in state ALARM triggered policy {text_member(policy, 'PolicyName')}"
            steps.append(WantedStep(stepped_capacity(configuration, current, breach), cause, cooldown_s))
        return steps

    def _breach(self, alarm: Document, last: LastActions, now_s: float) -> Breach | None:
        """Return by how much an alarm's metric is off now; None when all it saw is older than the last action.

        The metric of another namespace isn't known here: it counts as being at the threshold.
        """
        is_above = text_member(alarm, "ComparisonOperator").startswith("Greater")
        rule = alarm_rule(alarm) if is_ours(alarm) else None
        if rule is None:
            return Breach(text_member(alarm, "AlarmName"), 0.0, is_above)
        end_s, seen = rule.end_s(now_s), rule.look(self.cloud.history, now_s)
        # A period that began before the last action has measured the capacity from before it.
        fresh = [
            value
            for back, value in enumerate(reversed(seen))
            if value is not None and end_s - (back + 1) * rule.period_s >= last.any_s
        ]
        return Breach(text_member(alarm, "AlarmName"), fresh[0] - rule.threshold, is_above) if fresh else None

    def _reading(self, policy: Document, last: LastActions, now_s: float) -> PolicyReading:
        configuration = child(policy, "TargetTrackingScalingPolicyConfiguration")
        default_s = TRACKING_COOLDOWN_S.get(text_member(policy, "ScalableDimension"), 0)
        high, low = self._datapoints(policy, HIGH, last, now_s), self._datapoints(policy, LOW, last, now_s)
        return PolicyReading(
            policy=text_member(policy, "PolicyName"),
            target=number(configuration, "TargetValue"),
            high=high[-1] if len(high) == HIGH_PERIODS else None,
            low=max(low) if low else None,
            out_cooldown_s=whole(configuration, "ScaleOutCooldown", default_s),
            in_cooldown_s=whole(configuration, "ScaleInCooldown", default_s),
            scales_in=configuration.get("DisableScaleIn") is not True,
        )

    def _datapoints(self, policy: Document, side: str, last: LastActions, now_s: float) -> list[float]:
        """Return what the alarm of a side saw since the last action, when it is in ALARM."""
        names = [text_member(alarm, "AlarmName") for alarm in children(policy, "Alarms")]
        alarms = [
            alarm for alarm in self.book.alarms() if alarm["AlarmName"] in names and side in str(alarm["AlarmName"])
        ]
        rule = alarm_rule(alarms[0]) if alarms else None
        if rule is None or alarms[0]["StateValue"] != StateValue.ALARM:
            return []
        end_s, seen = rule.end_s(now_s), rule.look(self.cloud.history, now_s)
        if side == LOW and end_s - rule.periods * rule.period_s < last.out_s:
            # What was just added is not taken away before a whole window was low.
            return []
        starts = [end_s - (back + 1) * rule.period_s for back in reversed(range(rule.periods))]
        return [
            value for start_s, value in zip(starts, seen, strict=True) if value is not None and start_s >= last.any_s
        ]


def _is_step(policy: Document) -> bool:
    return text_member(policy, "PolicyType") == "StepScaling"


@dataclass(frozen=True, slots=True)
class ScaledResource:
    """The resource of a scalable target, as it is now.

    Attributes:
        variant: The variant; empty for a component.
    """

    record: Record
    variant: str
    current: int

    def request(self, desired: int) -> Document:
        """Return the request that sets another number of copies or instances."""
        if not self.variant:
            return {"InferenceComponentName": self.record.name, "DesiredRuntimeConfig": {"CopyCount": desired}}
        wanted = {"VariantName": self.variant, "DesiredInstanceCount": desired}
        return {"EndpointName": self.record.name, "DesiredWeightsAndCapacities": [wanted]}

    def failure(self, desired: int) -> str | None:
        """Return why it has not the requested number, or None when it has."""
        if self.record.failure_reason:
            return self.record.failure_reason
        if self.current == desired:
            return None
        return f"The {self.record.kind.in_words} has {self.current} {'instances' if self.variant else 'copies'}."


def scaled_resource(cloud: Cloud, key: Key) -> ScaledResource | None:
    """Return the resource of a scalable target, or None when it is gone."""
    _, resource_id, dimension = key
    parts = resource_id.split("/")
    if dimension == COPIES:
        record = cloud.store.find(Kind.INFERENCE_COMPONENT, parts[1])
        return ScaledResource(record, "", copy_count(record.request)) if record else None
    endpoint = cloud.store.find(Kind.ENDPOINT, parts[1])
    variants = (
        [variant for variant in live_variants(cloud.store, endpoint) if variant.name == parts[3]] if endpoint else []
    )
    return ScaledResource(endpoint, parts[3], variants[0].instances) if endpoint and variants else None


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
    ready = [
        reading for reading in readings if reading.high is not None and now_s >= last.out_s + reading.out_cooldown_s
    ]
    changes = [
        CapacityChange(
            min(bounds.most, max(current + 1, _keeping(current, each.high or 0, each.target))), _cause(each, "High")
        )
        for each in ready
    ]
    return max(changes, key=lambda change: change.desired, default=None)


def _in(
    current: int, bounds: Bounds, readings: Sequence[PolicyReading], last: LastActions, now_s: float
) -> CapacityChange | None:
    if not readings or any(reading.low is None for reading in readings if reading.scales_in):
        return None
    ready = [reading for reading in readings if reading.scales_in]
    if len(ready) < len(readings) or any(now_s < last.in_s + each.in_cooldown_s for each in ready):
        return None
    changes = [
        CapacityChange(
            max(bounds.least, min(current, _keeping(current, each.low or 0, each.target))), _cause(each, "Low")
        )
        for each in ready
    ]
    return max(changes, key=lambda change: change.desired)


def _keeping(current: int, metric: float, target: float) -> int:
    """Return how many copies bring the metric per copy to the target or below."""
    return math.ceil(current * metric / target - 1e-9)


def _cause(reading: PolicyReading, side: str) -> str:
    return f"monitor alarm Alarm{side} in state ALARM triggered policy {reading.policy}"
