"""Alarms are evaluated whenever one of their periods has ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial_laptop.aws.alarms.alarm_rule import StateValue, alarm_rule
from seatrial_laptop.aws.json_document import text

if TYPE_CHECKING:
    from seatrial_laptop.aws.alarms.alarm_book import AlarmBook
    from seatrial_laptop.aws.alarms.alarm_rule import AlarmRule, Datapoints
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.metric_history import MetricHistory


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
        alarms = {text(alarm, "AlarmName"): alarm for alarm in self.book.alarms()}
        for name in self._told.keys() - alarms.keys():
            del self._told[name], self._ended_s[name]
        for name, alarm in alarms.items():
            rule = alarm_rule(alarm)
            if rule and self._ended_s.get(name) != rule.end_s(now_s):
                self._ended_s[name] = rule.end_s(now_s)
                self._evaluate(name, alarm, rule, rule.look(self.history, now_s))

    def _evaluate(self, name: str, alarm: Document, rule: AlarmRule, datapoints: Datapoints) -> None:
        now = StateValue(text(alarm, "StateValue"))
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
