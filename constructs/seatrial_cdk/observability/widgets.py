"""The widgets of a CloudWatch dashboard, and the grid that they lie on.

The structure is that of "Dashboard body structure and syntax" in the CloudWatch API reference; names of metrics are
those that Amazon SageMaker publishes ("Metrics for monitoring Amazon SageMaker AI with Amazon CloudWatch", developer
guide) and those of trials (`seatrial_cdk.trials.runtime.report`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDTH: Final = 24
"""Columns of the grid."""
HEIGHT: Final = 6
"""Rows that a graph takes."""
TEXT_HEIGHT: Final = 3
MOST_METRICS: Final = 500
"""Metrics of one graph (CloudWatch quotas)."""
MINUTE_S: Final = 60

Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric of a graph.

    Attributes:
        dimensions: By name, in the order in which they are written.
        period_s: Seconds of a data point.
        key: By which expressions name it; empty for none.
        is_shown: Whether it is drawn, not only calculated with.
    """

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    label: str
    stat: str
    period_s: int = MINUTE_S
    key: str = ""
    is_shown: bool = True

    def written(self) -> list[object]:
        """Return it as the body of a dashboard has it."""
        options: Fields = {"label": self.label, "stat": self.stat, "period": self.period_s}
        if self.key:
            options["id"] = self.key
        if not self.is_shown:
            options["visible"] = False
        pairs = [part for pair in self.dimensions.items() for part in pair]
        return [self.namespace, self.name, *pairs, options]


@dataclass(frozen=True, slots=True)
class MetricFormula:
    """A line that is calculated from others by metric math."""

    expression: str
    label: str
    key: str
    period_s: int = MINUTE_S

    def written(self) -> list[object]:
        """Return it as the body of a dashboard has it."""
        return [{"expression": self.expression, "label": self.label, "id": self.key, "period": self.period_s}]


@dataclass(frozen=True, slots=True)
class GraphBound:
    """A horizontal line at a value: a number, or a token that resolves to one."""

    label: str
    value: float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph.

    Attributes:
        title: Above it, with the unit.
        as_numbers: The newest values are shown in place of the course.
    """

    title: str
    lines: Sequence[MetricLine | MetricFormula]
    marks: Sequence[GraphBound] = ()
    as_numbers: bool = False

    def written(self, region: str) -> Fields:
        """Return the widget without its place."""
        properties: Fields = {
            "title": self.title,
            "region": region,
            "view": "singleValue" if self.as_numbers else "timeSeries",
            "metrics": [line.written() for line in self.lines[:MOST_METRICS]],
        }
        if not self.as_numbers:
            properties |= {"stacked": False, "yAxis": {"left": {"min": 0}}}
        if self.marks:
            marks = [{"label": mark.label, "value": _Number.of(mark.value)} for mark in self.marks]
            properties["annotations"] = {"horizontal": marks}
        return {"type": "metric", "properties": properties}


@dataclass(frozen=True, slots=True)
class AlarmWidget:
    """The states of some alarms ("Properties of an alarm status widget object").

    Attributes:
        title: Above them.
        arns: The alarms, tokens too.
    """

    title: str
    arns: Sequence[str]

    def written(self, region: str) -> Fields:  # noqa: ARG002 (an ARN has its region)
        """Return the widget without its place."""
        return {"type": "alarm", "properties": {"title": self.title, "alarms": [*self.arns]}}


@dataclass(frozen=True, slots=True)
class DashboardText:
    """A text in Markdown over the whole width."""

    markdown: str


class _Number:
    """A token that resolves to a number, which JSON must have without quotation marks."""

    OPEN: Final = "{number:"
    CLOSE: Final = ":number}"

    @classmethod
    def of(cls, value: float | str) -> float | str:
        """Return a number as it is, and mark a token."""
        return f"{cls.OPEN}{value}{cls.CLOSE}" if isinstance(value, str) else value

    @classmethod
    def unquoted(cls, body: str) -> str:
        """Take the marks and quotation marks away."""
        return body.replace(f'"{cls.OPEN}', "").replace(f'{cls.CLOSE}"', "")


@dataclass(slots=True)
class Grid:
    """Widgets in rows, each row as wide as the dashboard."""

    region: str
    _widgets: list[Fields] = field(default_factory=list)
    _y: int = 0

    def add_text(self, text: DashboardText) -> None:
        """Add a text as a row."""
        place: Fields = {"x": 0, "y": self._y, "width": WIDTH, "height": TEXT_HEIGHT}
        self._widgets.append({**place, "type": "text", "properties": {"markdown": text.markdown}})
        self._y += TEXT_HEIGHT

    def add_row(self, graphs: Iterable[Graph | AlarmWidget]) -> None:
        """Add graphs, or states of alarms, of the same width as a row; none add nothing."""
        row = tuple(graphs)
        if not row:
            return
        width = WIDTH // len(row)
        for number, graph in enumerate(row):
            place: Fields = {"x": number * width, "y": self._y, "width": width, "height": HEIGHT}
            self._widgets.append({**place, **graph.written(self.region)})
        self._y += HEIGHT

    def body(self) -> str:
        """Return the dashboard's body as JSON; tokens stay in it."""
        return _Number.unquoted(json.dumps({"widgets": self._widgets}, separators=(",", ":")))
