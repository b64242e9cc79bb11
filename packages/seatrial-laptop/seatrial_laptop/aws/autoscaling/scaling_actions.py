"""Scaling by policies and schedules: alarms are read, and copies or instances are added or removed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seatrial_base.autoscaling import (
    COOLDOWN_S,
    COPIES,
    HIGH_PERIODS,
    INSTANCES,
    TRACKING_COOLDOWN_S,
    Bounds,
    CapacityChange,
    LastActions,
    PolicyReading,
    WantedStep,
    wanted_change,
)
from seatrial_laptop.aws.alarms import StateValue, alarm_rule, is_ours
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling.scalable_targets import LOOKED, ScalingActivity, capacities_of, is_due, is_over
from seatrial_laptop.aws.autoscaling.scaling_policies import HIGH, LOW, Breach, stepped_capacity
from seatrial_laptop.aws.control_plane.endpoints import update_weights_and_capacities
from seatrial_laptop.aws.control_plane.inference_components import copy_count, scale_component
from seatrial_laptop.aws.control_plane.records import Kind, Status, live_variants
from seatrial_laptop.aws.json_document import child, children, number, text_member, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.alarms import AlarmBook
    from seatrial_laptop.aws.autoscaling.scalable_targets import Key, Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.json_document import Document


ACTED_ON: Final = (COPIES, INSTANCES)
"""The scalable dimensions of targets that are acted on."""


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
        with self.scaling.lock:
            policies = [policy for (whose, _), policy in self.scaling.policies.items() if whose == key]
        readings = [self._reading(policy, done.last, now_s) for policy in policies if not _is_step(policy)]
        stepping = [policy for policy in policies if _is_step(policy)]
        steps = [step for policy in stepping for step in self._steps(policy, resource.current, done.last, now_s)]
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
        desired, scales_out = change.desired, change.desired > resource.current
        activity = ScalingActivity(key=key, desired=desired, scales_out=scales_out, cause=change.cause)
        activity.message = f"Successfully set {activity.counted} to {desired}. Waiting for change to be fulfilled."
        done.running = activity
        with self.scaling.lock:
            self.scaling.activities.append(activity)

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
