"""Alarms on metrics of `AWS/SageMaker`: kept by MiniStack's CloudWatch, evaluated here in virtual time.

Facts: Amazon CloudWatch User Guide, "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data": M of
N datapoints, and what missing ones mean. Only the last N periods are looked at; CloudWatch also looks at a few before
them when some are missing. MiniStack's alarms are reached through two private names; `tests/laptop` holds the contract.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

import boto3
from ministack.services import cloudwatch

from seatrial_laptop.aws.json_document import children, number, text_member, whole
from seatrial_laptop.aws.ministack import wrapper
from seatrial_laptop.aws.runtime.telemetry import (
    SAMPLE_S,
    Dimensions,
    MetricHistory,
    is_statistic,
    metric_dimensions,
    statistic,
)
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient

    from seatrial_laptop.aws.json_document import Document


NAMESPACE: Final = "AWS/SageMaker"


class StateValue(StrEnum):
    """The state of an alarm."""

    ALARM = "ALARM"
    OK = "OK"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


COMPARISONS: Final = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanOrEqualToThreshold": operator.le,
    "LessThanThreshold": operator.lt,
}
BREACHING: Final = {"breaching": True, "notBreaching": False}
"""What a missing datapoint counts as; None for the other treatments."""

Datapoints = list[float | None]
"""The statistic of each period, oldest first; None where it has no data."""


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """What an alarm watches, and when it goes off.

    Attributes:
        metric: A metric of `AWS/SageMaker`.
        period_s: Virtual seconds; at least those of a sample.
        periods: How many periods are looked at (N).
        datapoints: How many of them must breach (M).
        comparison: A key of `COMPARISONS`.
        missing: `missing`, `ignore`, `breaching` or `notBreaching`.
    """

    metric: str
    dimensions: Dimensions
    statistic: str
    period_s: float
    periods: int
    datapoints: int
    threshold: float
    comparison: str
    missing: str = "missing"

    def end_s(self, now_s: float) -> float:
        """Return when the last whole period ended."""
        # Virtual seconds are floats: a moment just below the end of a period is its end.
        return math.floor(now_s / self.period_s + 1e-6) * self.period_s

    def look(self, history: MetricHistory, now_s: float) -> Datapoints:
        """Return the statistic of each of the last whole periods."""
        begin_s = self.end_s(now_s) - self.periods * self.period_s + 1e-3
        values: list[list[float]] = [[] for _ in range(self.periods)]
        for each in history.samples(self.dimensions, after_s=begin_s, until_s=self.end_s(now_s) + 1e-3):
            values[math.ceil((each.end_s - begin_s) / self.period_s) - 1] += each.values.get(self.metric, ())
        return [statistic(self.statistic, of_period) for of_period in values]

    def state(self, datapoints: Sequence[float | None]) -> StateValue | None:
        """Return the state that these datapoints make; None keeps the one that it has."""
        breach = [
            (BREACHING.get(self.missing) if value is None else COMPARISONS[self.comparison](value, self.threshold))
            for value in datapoints
        ]
        if breach.count(True) >= self.datapoints or self._breaches_as_far_as_known(breach):
            return StateValue.ALARM
        known = [one for one in breach if one is not None]
        if not known:
            return None if self.missing == "ignore" else StateValue.INSUFFICIENT_DATA
        return None if self.missing == "ignore" and all(known) else StateValue.OK

    def _breaches_as_far_as_known(self, breach: Sequence[bool | None]) -> bool:
        """Whether the oldest breach is M periods old or older and everything since then breaches or is missing."""
        if self.missing != "missing" or True not in breach:
            return False
        since = breach[breach.index(True) :]
        return len(since) >= self.datapoints and False not in since


def alarm_rule(alarm: Document) -> AlarmRule | None:
    """Return the rule of an alarm as in the response of DescribeAlarms.

    None for a comparison or a statistic that is not evaluated here: the alarm stays in INSUFFICIENT_DATA.
    """
    periods = whole(alarm, "EvaluationPeriods", 1)
    comparison = text_member(alarm, "ComparisonOperator")
    computed = str(alarm.get("ExtendedStatistic") or alarm["Statistic"])
    if comparison not in COMPARISONS or not is_statistic(computed):
        return None
    return AlarmRule(
        metric=text_member(alarm, "MetricName"),
        dimensions=metric_dimensions(children(alarm, "Dimensions")),
        statistic=computed,
        # A period shorter than a sample would have no data most of the time.
        period_s=max(float(whole(alarm, "Period", 60)), SAMPLE_S),
        periods=periods,
        datapoints=whole(alarm, "DatapointsToAlarm", periods),
        threshold=number(alarm, "Threshold"),
        comparison=comparison,
        missing=text_member(alarm, "TreatMissingData", "missing"),
    )


class AlarmBook(Protocol):
    """Where alarms are looked up, and where their states are set."""

    def alarms(self) -> list[Document]:
        """Return the alarms on metrics of SageMaker, as in the response of DescribeAlarms."""

    def raised(self, action: str) -> list[Document]:
        """Return the alarms in state ALARM, of any namespace, that have this action."""

    def state(self, name: str) -> StateValue | None:
        """Return the state of an alarm, a composite one too; None when there is none."""

    def set_state(self, name: str, state: StateValue, reason: str) -> None:
        """Set the state of an alarm, with its actions and its history."""


class MiniStackAlarms:
    """The alarms in the CloudWatch of this process; use it off the event loop only."""

    def alarms(self) -> list[Document]:
        """Return the alarms on metrics of SageMaker, as in the response of DescribeAlarms."""
        return [alarm for alarm in _kept_alarms() if is_ours(alarm)]

    def raised(self, action: str) -> list[Document]:
        """Return the alarms in state ALARM, of any namespace, that have this action."""
        return [alarm for alarm in _kept_alarms() if acts(alarm, action)]

    def state(self, name: str) -> StateValue | None:
        """Return the state of an alarm, a composite one too; None when there is none."""
        alarm = cloudwatch._alarms.get(name) or cloudwatch._composite_alarms.get(name)  # noqa: SLF001 (the contract)
        return StateValue(alarm["StateValue"]) if alarm else None

    def set_state(self, name: str, state: StateValue, reason: str) -> None:
        """Set the state of an alarm, with its actions and its history."""
        own_cloudwatch().set_alarm_state(AlarmName=name, StateValue=state.value, StateReason=reason)


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

    @wrapper("_evaluate_alarm", cloudwatch)
    def evaluate_alarm(theirs: Callable[[object], None], alarm: object) -> None:
        if not is_ours(alarm):
            theirs(alarm)


def _kept_alarms() -> list[Document]:
    return [dict(alarm) for _, alarm in cloudwatch._alarms.items()]  # noqa: SLF001 (the contract)


@functools.cache
def own_cloudwatch() -> CloudWatchClient:
    """Return a client of this same process's CloudWatch; use it off the event loop only."""
    return boto3.client("cloudwatch", region_name=REGION)


@dataclass(slots=True)
class Evaluation:
    """Sets the states of all alarms on metrics of SageMaker; one thread uses it.

    A state that a user set (SetAlarmState) holds until an evaluation that has data.
    """

    book: AlarmBook
    history: MetricHistory
    _ended_s: dict[str, float] = field(default_factory=dict)
    _states: dict[str, StateValue] = field(default_factory=dict)

    def evaluate(self, now_s: float) -> None:
        """Evaluate the alarms whose last whole period wasn't looked at before."""
        alarms = {text_member(alarm, "AlarmName"): alarm for alarm in self.book.alarms()}
        for name in self._states.keys() - alarms.keys():
            del self._states[name], self._ended_s[name]
        for name, alarm in alarms.items():
            rule = alarm_rule(alarm)
            if rule and self._ended_s.get(name) != rule.end_s(now_s):
                self._ended_s[name] = rule.end_s(now_s)
                self._evaluate(name, alarm, rule, rule.look(self.history, now_s))

    def _evaluate(self, name: str, alarm: Document, rule: AlarmRule, datapoints: Datapoints) -> None:
        now = StateValue(text_member(alarm, "StateValue"))
        # A state that is not the one set here last is a user's: it holds until there is data.
        set_by_user = now is not self._states.setdefault(name, StateValue.INSUFFICIENT_DATA)
        if set_by_user and all(value is None for value in datapoints):
            return
        state = rule.state(datapoints) or now
        self._states[name] = state
        if state is not now:
            self.book.set_state(name, state, _reason(rule, datapoints))


def _reason(rule: AlarmRule, datapoints: Datapoints) -> str:
    known = [f"{value:g}" for value in datapoints if value is not None]
    counted = f"{len(known)} of the last {rule.periods} periods have data [{', '.join(known)}]"
    return f"Threshold Crossed: {counted}; {rule.statistic} {rule.comparison} {rule.threshold:g}"[:1023]
