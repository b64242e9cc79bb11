"""The alarms of an endpoint that are raised at the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.account.response import mapping, rows, text_at
from seatrial.documents.live_endpoint import ROLLBACK_ALARM, RaisedAlarm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.account.reader import AwsReader


def raised_alarms(endpoint: str, components: Iterable[str], reader: AwsReader) -> tuple[RaisedAlarm, ...]:
    """Return the alarms in state ALARM on metrics of an endpoint or its components, by name.

    Args:
        endpoint: The endpoint's name.
        components: Names of its components.
        reader: Asks CloudWatch.
    """
    ours = {("EndpointName", endpoint)} | {("InferenceComponentName", each) for each in components}
    found = reader.rows("alarms", "cloudwatch", "describe_alarms", "MetricAlarms", StateValue="ALARM")
    return tuple(
        RaisedAlarm(
            text_at(row, "AlarmName"),
            text_at(row, "StateReason"),
            text_at(row, "AlarmDescription").startswith(ROLLBACK_ALARM),
        )
        for row in sorted(found, key=lambda each: text_at(each, "AlarmName"))
        if ours & {*_dimensions(row)} and not _only_scales(row)
    )


def _only_scales(alarm: Mapping[str, object]) -> bool:
    """Tell whether an alarm does nothing but scale: that of scaling in is raised whenever there is little traffic."""
    actions = alarm.get("AlarmActions")
    return isinstance(actions, list) and bool(actions) and all(":scalingPolicy:" in f"{each}" for each in actions)


def _dimensions(alarm: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    watched = [alarm, *(mapping(mapping(row, "MetricStat"), "Metric") for row in rows(alarm, "Metrics"))]
    for metric in watched:
        for row in rows(metric, "Dimensions"):
            yield text_at(row, "Name"), text_at(row, "Value")
