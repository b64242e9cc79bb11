"""The alarms that MiniStack keeps, through two private names of its CloudWatch; `tests/laptop` holds the contract."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, cast

import boto3
from ministack.services import cloudwatch

from seatrial_laptop.aws.alarms.alarm_rule import StateValue, alarm_rule
from seatrial_laptop.aws.json_document import text_member
from seatrial_laptop.environment import REGION

if TYPE_CHECKING:
    from seatrial_laptop.aws.alarms.alarm_rule import AlarmRule, Datapoints
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.metric_history import MetricHistory


NAMESPACE: Final = "AWS/SageMaker"


class AlarmBook(Protocol):
    """Where alarms are looked up, and where their states are set."""

    def alarms(self) -> list[Document]:
        """Return the alarms on metrics of SageMaker, as DescribeAlarms tells them."""

    def raised(self, action: str) -> list[Document]:
        """Return the alarms in state ALARM, of any namespace, that have this action."""

    def state(self, name: str) -> StateValue | None:
        """Return the state of an alarm, a composite one too; None when there is none."""

    def set_state(self, name: str, state: StateValue, reason: str) -> None:
        """Set the state of an alarm, with its actions and its history."""


class StateClient(Protocol):
    """The call of CloudWatch that is made here."""

    def set_alarm_state(self, **request: object) -> object:
        """Set the state of an alarm."""


class MiniStackAlarms:
    """The alarms in the CloudWatch of this process; use it off the event loop only."""

    def alarms(self) -> list[Document]:
        """Return the alarms on metrics of SageMaker, as DescribeAlarms tells them."""
        kept = cloudwatch._alarms.items()  # noqa: SLF001 (the contract)
        return [dict(alarm) for _, alarm in kept if is_ours(alarm)]

    def raised(self, action: str) -> list[Document]:
        """Return the alarms in state ALARM, of any namespace, that have this action."""
        kept = [dict(alarm) for _, alarm in cloudwatch._alarms.items()]  # noqa: SLF001 (the contract)
        return [alarm for alarm in kept if acts(alarm, action)]

    def state(self, name: str) -> StateValue | None:
        """Return the state of an alarm, a composite one too; None when there is none."""
        alarm = cloudwatch._alarms.get(name) or cloudwatch._composite_alarms.get(name)  # noqa: SLF001 (the contract)
        return StateValue(alarm["StateValue"]) if alarm else None

    def set_state(self, name: str, state: StateValue, reason: str) -> None:
        """Set the state of an alarm, with its actions and its history."""
        _own_cloudwatch().set_alarm_state(AlarmName=name, StateValue=str(state), StateReason=reason)


def acts(alarm: Document, action: str) -> bool:
    """Return whether an alarm is in state ALARM and does this action now."""
    enabled = alarm.get("ActionsEnabled", True) is not False
    actions = alarm.get("AlarmActions") or []
    return enabled and isinstance(actions, list) and action in actions and alarm["StateValue"] == StateValue.ALARM


def is_ours(alarm: object) -> bool:
    """Return whether we evaluate an alarm, and MiniStack must not."""
    return isinstance(alarm, Mapping) and alarm.get("Namespace") == NAMESPACE


def take_over_evaluation() -> None:
    """Keep MiniStack's own evaluation away from the alarms that are evaluated here."""
    theirs = cloudwatch._evaluate_alarm  # noqa: SLF001 (the contract)

    def evaluate_alarm(alarm: object) -> None:
        if not is_ours(alarm):
            theirs(alarm)

    cloudwatch._evaluate_alarm = evaluate_alarm  # noqa: SLF001 (the contract)


@functools.cache
def _own_cloudwatch() -> StateClient:
    return cast("StateClient", boto3.client("cloudwatch", region_name=REGION))


@dataclass(slots=True)
class Evaluation:
    """Sets the states of all alarms on metrics of SageMaker; one thread uses it.

    A state that a user set (SetAlarmState) holds until an evaluation that has data.
    """

    book: AlarmBook
    history: MetricHistory
    _ended_s: dict[str, float] = field(default_factory=dict)
    _told: dict[str, StateValue] = field(default_factory=dict)

    def evaluate(self, now_s: float) -> None:
        """Evaluate the alarms whose last whole period wasn't looked at before."""
        alarms = {text_member(alarm, "AlarmName"): alarm for alarm in self.book.alarms()}
        for name in self._told.keys() - alarms.keys():
            del self._told[name], self._ended_s[name]
        for name, alarm in alarms.items():
            rule = alarm_rule(alarm)
            if rule and self._ended_s.get(name) != rule.end_s(now_s):
                self._ended_s[name] = rule.end_s(now_s)
                self._evaluate(name, alarm, rule, rule.look(self.history, now_s))

    def _evaluate(self, name: str, alarm: Document, rule: AlarmRule, datapoints: Datapoints) -> None:
        now = StateValue(text_member(alarm, "StateValue"))
        set_by_user = now is not self._told.setdefault(name, StateValue.INSUFFICIENT_DATA)
        if set_by_user and all(value is None for value in datapoints):
            return
        state = rule.state(datapoints) or now
        self._told[name] = state
        if state is not now:
            self.book.set_state(name, state, _reason(rule, datapoints))


def _reason(rule: AlarmRule, datapoints: Datapoints) -> str:
    known = [f"{value:g}" for value in datapoints if value is not None]
    told = f"{len(known)} of the last {rule.periods} periods have data [{', '.join(known)}]"
    return f"Threshold Crossed: {told}; {rule.statistic} {rule.comparison} {rule.threshold:g}"[:1023]
