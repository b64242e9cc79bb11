"""Scaling by policies and schedules: alarms are read, and copies or instances are added or removed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.alarms.alarm_book import is_ours
from seatrial_laptop.aws.alarms.alarm_rule import StateValue, alarm_rule
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling.capacity import Bounds, LastActions, PolicyReading, WantedStep, wanted_change
from seatrial_laptop.aws.autoscaling.scalable_targets import ScalingActivity
from seatrial_laptop.aws.autoscaling.scheduled_actions import LOOKED, capacities_of, is_due, is_over
from seatrial_laptop.aws.autoscaling.step_scaling import COOLDOWN_S, Breach, stepped_capacity
from seatrial_laptop.aws.autoscaling.target_tracking import COPIES, HIGH, HIGH_PERIODS, INSTANCES, LOW
from seatrial_laptop.aws.control_plane.endpoints import update_weights_and_capacities
from seatrial_laptop.aws.control_plane.inference_components import copy_count, scale_component
from seatrial_laptop.aws.control_plane.live_variants import live_variants
from seatrial_laptop.aws.control_plane.records import Kind, Status
from seatrial_laptop.aws.json_document import child, children, number, text_member, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.alarms.alarm_book import AlarmBook
    from seatrial_laptop.aws.autoscaling.capacity import CapacityChange
    from seatrial_laptop.aws.autoscaling.scalable_targets import Key, Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.json_document import Document


ACTED_ON: Final = (COPIES, INSTANCES)
"""The scalable dimensions of targets that are acted on."""
TRACKING_COOLDOWN_S: Final = {COPIES: 0, INSTANCES: 300}
"""Virtual seconds between two actions of a target-tracking policy that doesn't say."""


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
        cloud: Whose components and variants.
        scaling: The targets, policies and scheduled actions.
        book: The alarms of the policies.
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
            self._do_scheduled(self.cloud.clock.date_s(now_s))
            targets = {key: target for key, target in self.scaling.targets.items() if key[2] in ACTED_ON}
        for key in self._actions.keys() - targets.keys():
            self._note_end(self._actions[key], None, now_s)
        self._actions = {key: each for key, each in self._actions.items() if key in targets or each.running}
        for key, target in targets.items():
            self._act_on(key, target, now_s)

    def _do_scheduled(self, date_s: float) -> None:
        """Set the capacities of every scheduled action that came due, in the order of their creation."""
        for (key, name), action in list(self.scaling.scheduled.items()):
            target = self.scaling.targets[key]
            suspended = child(target, "SuspendedState").get("ScheduledScalingSuspended") is True
            if is_due(action, date_s) and not suspended:
                self._set_capacities(key, target, action)
            if is_over(action, date_s):
                del self.scaling.scheduled[key, name]
            else:
                self.scaling.scheduled[key, name] = {**action, LOOKED: date_s}

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
        found = scaled_resource(self.cloud, key)
        since_s = found.record.created_s if found else 0.0
        done = self._actions.get(key)
        if done is None or (done.resource_since_s != since_s and done.running is None):
            done = self._actions[key] = _Actions(since_s)
        self._note_end(done, found, now_s)
        if found is None or found.record.status is not Status.IN_SERVICE or done.running:
            return
        policies = self._policies(key)
        readings = [self._reading(each, done.last, now_s) for each in policies if not _is_step(each)]
        steps = [
            step for each in policies if _is_step(each) for step in self._steps(each, found.current, done.last, now_s)
        ]
        change = wanted_change(found.current, _bounds(target), readings, done.last, now_s, steps=steps)
        if change is not None:
            self._start(key, found, change, done)

    def _start(self, key: Key, found: ScaledResource, change: CapacityChange, done: _Actions) -> None:
        try:
            (self.resize if found.variant else self.scale)(self.cloud, found.request(change.desired))
        except ApiError:
            return  # it changes for another reason: the next period tries again
        activity = ScalingActivity(
            key=key, desired=change.desired, scales_out=change.desired > found.current, cause=change.cause, message=""
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

    def _note_end(self, done: _Actions, found: ScaledResource | None, now_s: float) -> None:
        activity = done.running
        if activity is None or (found is not None and found.record.status and found.record.status.in_transit):
            return
        done.running = None
        gone = f"The {'inference component' if activity.key[2] == COPIES else 'endpoint'} was deleted."
        activity.end(found.failure(activity.desired) if found else gone)
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
        found = [
            alarm for alarm in self.book.alarms() if alarm["AlarmName"] in names and side in str(alarm["AlarmName"])
        ]
        rule = alarm_rule(found[0]) if found else None
        if rule is None or found[0]["StateValue"] != StateValue.ALARM:
            return []
        end_s, seen = rule.end_s(now_s), rule.look(self.cloud.history, now_s)
        if side == LOW and end_s - rule.periods * rule.period_s < last.out_s:
            return []  # what was just added is not taken away before a whole window was low
        starts = [end_s - (back + 1) * rule.period_s for back in reversed(range(rule.periods))]
        return [
            value for start_s, value in zip(starts, seen, strict=True) if value is not None and start_s >= last.any_s
        ]


def _bounds(target: Document) -> Bounds:
    suspended = child(target, "SuspendedState")
    return Bounds(
        least=whole(target, "MinCapacity"),
        most=whole(target, "MaxCapacity"),
        out_suspended=suspended.get("DynamicScalingOutSuspended") is True,
        in_suspended=suspended.get("DynamicScalingInSuspended") is True,
    )


def _is_step(policy: Document) -> bool:
    return text_member(policy, "PolicyType") == "StepScaling"


@dataclass(frozen=True, slots=True)
class ScaledResource:
    """The resource of a scalable target, as it is now.

    Attributes:
        record: The component, or the endpoint.
        variant: The variant; empty for a component.
        current: Its desired copies or instances.
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
        """Return why it has not the number that was asked for, or None when it has."""
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
    found = [each for each in live_variants(cloud.store, endpoint) if each.name == parts[3]] if endpoint else []
    return ScaledResource(endpoint, parts[3], found[0].instances) if endpoint and found else None
