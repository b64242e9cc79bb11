"""When an alarm on metrics of `AWS/SageMaker` is in ALARM: M of N datapoints, and what missing ones mean.

Facts: Amazon CloudWatch User Guide, "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data". Only
the last N periods are looked at; CloudWatch also looks at a few before them when some are missing.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.json_document import children, number, text_member, whole
from seatrial_laptop.aws.runtime.metric_history import (
    SAMPLE_S,
    Dimensions,
    MetricHistory,
    is_statistic,
    metric_dimensions,
    statistic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_laptop.aws.json_document import Document


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
        dimensions: Whose metric.
        statistic: Of the values within a period.
        period_s: Virtual seconds; at least those of a sample.
        periods: How many periods are looked at (N).
        datapoints: How many of them must breach (M).
        threshold: What the statistic is compared with.
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
        return math.floor(now_s / self.period_s + 1e-6) * self.period_s

    def look(self, history: MetricHistory, now_s: float) -> Datapoints:
        """Return the statistic of each of the last whole periods."""
        end_s = self.end_s(now_s)
        starts = [end_s - (back + 1) * self.period_s for back in reversed(range(self.periods))]
        return [self._datapoint(history, start_s) for start_s in starts]

    def state(self, datapoints: Sequence[float | None]) -> StateValue | None:
        """Return the state that these datapoints make; None keeps the one that it has."""
        breach = [self._breaches(value) for value in datapoints]
        if breach.count(True) >= self.datapoints or self._breaches_as_far_as_known(breach):
            return StateValue.ALARM
        known = [one for one in breach if one is not None]
        if not known:
            return None if self.missing == "ignore" else StateValue.INSUFFICIENT_DATA
        return None if self.missing == "ignore" and all(known) else StateValue.OK

    def _datapoint(self, history: MetricHistory, start_s: float) -> float | None:
        end_s = start_s + self.period_s
        values = history.values(self.dimensions, self.metric, after_s=start_s + 1e-3, until_s=end_s + 1e-3)
        return statistic(self.statistic, values)

    def _breaches(self, value: float | None) -> bool | None:
        return BREACHING.get(self.missing) if value is None else COMPARISONS[self.comparison](value, self.threshold)

    def _breaches_as_far_as_known(self, breach: Sequence[bool | None]) -> bool:
        """Whether the oldest breach is M periods old or older and everything since then breaches or is missing."""
        if self.missing != "missing" or True not in breach:
            return False
        since = breach[breach.index(True) :]
        return len(since) >= self.datapoints and False not in since


def alarm_rule(alarm: Document) -> AlarmRule | None:
    """Return the rule of an alarm as DescribeAlarms tells it.

    None for a comparison or a statistic that is not evaluated here: the alarm stays in INSUFFICIENT_DATA.
    """
    periods = whole(alarm, "EvaluationPeriods", 1)
    comparison, computed = (
        text_member(alarm, "ComparisonOperator"),
        str(alarm.get("ExtendedStatistic") or alarm["Statistic"]),
    )
    if comparison not in COMPARISONS or not is_statistic(computed):
        return None
    return AlarmRule(
        metric=text_member(alarm, "MetricName"),
        dimensions=metric_dimensions(children(alarm, "Dimensions")),
        statistic=computed,
        period_s=max(float(whole(alarm, "Period", 60)), SAMPLE_S),
        periods=periods,
        datapoints=whole(alarm, "DatapointsToAlarm", periods),
        threshold=number(alarm, "Threshold"),
        comparison=comparison,
        missing=text_member(alarm, "TreatMissingData", "missing"),
    )
