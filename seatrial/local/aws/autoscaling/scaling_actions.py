"""Target tracking on the copies of inference components: alarms are read, and copies are added or removed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.local.aws.alarms.alarm_rule import StateValue, alarm_rule
from seatrial.local.aws.api import ApiError
from seatrial.local.aws.autoscaling.capacity import Bounds, LastActions, PolicyReading, wanted_change
from seatrial.local.aws.autoscaling.scalable_targets import ScalingActivity
from seatrial.local.aws.autoscaling.target_tracking import COPIES, HIGH, HIGH_PERIODS, LOW
from seatrial.local.aws.control_plane.inference_components import copy_count, scale_component
from seatrial.local.aws.control_plane.records import Kind, Status
from seatrial.local.aws.json_document import child, children, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.local.aws.alarms.alarm_book import AlarmBook
    from seatrial.local.aws.autoscaling.scalable_targets import Key, Scaling
    from seatrial.local.aws.control_plane.cloud import Cloud
    from seatrial.local.aws.control_plane.records import Record
    from seatrial.local.aws.json_document import Document


@dataclass(slots=True)
class _Actions:
    """What was done to one component: the activity that goes on, and when the last ones ended."""

    component_since_s: float
    running: ScalingActivity | None = None
    last: LastActions = field(default_factory=LastActions)


@dataclass(slots=True)
class ScalingActions:
    """Acts on every scalable target of copies; one thread uses it.

    Attributes:
        cloud: Whose components.
        scaling: The targets and policies.
        book: The alarms of the policies.
        scale: UpdateInferenceComponentRuntimeConfig.
    """

    cloud: Cloud
    scaling: Scaling
    book: AlarmBook
    scale: Callable[[Cloud, Document], Document] = scale_component
    _actions: dict[Key, _Actions] = field(default_factory=dict)

    def act(self, now_s: float) -> None:
        """Note which activities have ended, and start those that are wanted now."""
        with self.scaling.lock:
            targets = {key: target for key, target in self.scaling.targets.items() if key[2] == COPIES}
        for key in self._actions.keys() - targets.keys():
            self._note_end(self._actions[key], None, now_s)
        self._actions = {key: each for key, each in self._actions.items() if key in targets or each.running}
        for key, target in targets.items():
            self._act_on(key, target, now_s)

    def _act_on(self, key: Key, target: Document, now_s: float) -> None:
        record = self.cloud.store.find(Kind.INFERENCE_COMPONENT, key[1].partition("/")[2])
        since_s = record.created_s if record else 0.0
        done = self._actions.get(key)
        if done is None or (done.component_since_s != since_s and done.running is None):
            done = self._actions[key] = _Actions(since_s)
        self._note_end(done, record, now_s)
        if record is None or record.status is not Status.IN_SERVICE or done.running:
            return
        current = copy_count(record.request)
        readings = [self._reading(policy, done.last, now_s) for policy in self._policies(key)]
        change = wanted_change(current, _bounds(target), readings, done.last, now_s)
        if change is None:
            return
        wanted = {"InferenceComponentName": record.name, "DesiredRuntimeConfig": {"CopyCount": change.desired}}
        try:
            self.scale(self.cloud, wanted)
        except ApiError:
            return  # it changes for another reason: the next period tries again
        asked = f"Successfully set desired copy count to {change.desired}. Waiting for change to be fulfilled."
        scales_out = change.desired > current
        done.running = ScalingActivity(
            key=key, desired=change.desired, scales_out=scales_out, cause=change.cause, message=asked
        )
        with self.scaling.lock:
            self.scaling.activities.append(done.running)

    def _policies(self, key: Key) -> list[Document]:
        with self.scaling.lock:
            of_key = [policy for (whose, _), policy in self.scaling.policies.items() if whose == key]
        return [policy for policy in of_key if text(policy, "PolicyType") == "TargetTrackingScaling"]

    def _note_end(self, done: _Actions, record: Record | None, now_s: float) -> None:
        activity = done.running
        if activity is None or (record is not None and record.status and record.status.in_transit):
            return
        done.running = None
        activity.end(_failure(record, activity.desired))
        ended = {"out_s" if activity.scales_out else "in_s": now_s}
        done.last = replace(done.last, **ended)

    def _reading(self, policy: Document, last: LastActions, now_s: float) -> PolicyReading:
        configuration = child(policy, "TargetTrackingScalingPolicyConfiguration")
        high, low = self._datapoints(policy, HIGH, last, now_s), self._datapoints(policy, LOW, last, now_s)
        return PolicyReading(
            policy=text(policy, "PolicyName"),
            target=number(configuration, "TargetValue"),
            high=high[-1] if len(high) == HIGH_PERIODS else None,
            low=max(low) if low else None,
            out_cooldown_s=whole(configuration, "ScaleOutCooldown"),
            in_cooldown_s=whole(configuration, "ScaleInCooldown"),
            scales_in=configuration.get("DisableScaleIn") is not True,
        )

    def _datapoints(self, policy: Document, side: str, last: LastActions, now_s: float) -> list[float]:
        """Return what the alarm of a side saw since the last action, when it is in ALARM."""
        names = [text(alarm, "AlarmName") for alarm in children(policy, "Alarms")]
        found = [
            alarm for alarm in self.book.alarms() if alarm["AlarmName"] in names and side in str(alarm["AlarmName"])
        ]
        rule = alarm_rule(found[0]) if found else None
        if rule is None or found[0]["StateValue"] != StateValue.ALARM:
            return []
        end_s, seen = rule.end_s(now_s), rule.look(self.cloud.history, now_s)
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


def _failure(record: Record | None, desired: int) -> str | None:
    """Return why a component has not the copies that were asked for, or None when it has."""
    if record is None:
        return "The inference component was deleted."
    if record.failure_reason or copy_count(record.request) != desired:
        return record.failure_reason or f"The inference component has {copy_count(record.request)} copies."
    return None
