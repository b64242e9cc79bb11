"""What every place did in the last ten virtual seconds, kept for alarms and target tracking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.json_document import text
from seatrial_laptop.aws.runtime.metric_history import KEPT_S, SAMPLE_S, Dimensions, dimensions_of
from seatrial_laptop.aws.runtime.telemetry import (
    concurrency_metric,
    dimensions,
    endpoint_dimensions,
    metric_values,
    queue_metrics,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.runtime.metric_history import Values
    from seatrial_laptop.aws.runtime.running_copies import CopyPlace
    from seatrial_laptop.aws.runtime.telemetry import Invocation


def take_samples(cloud: Cloud, end_s: float, *, since_s: float) -> None:
    """Keep a sample of every place that has copies or was asked, which ends at a virtual moment.

    When more than ten virtual seconds have passed since the last one, those in between tell the same requests in
    flight; invocations count in the last one.
    """
    seen = cloud.telemetry.take_sample()
    for place in {*cloud.running.places(), *seen}:
        for whose, values in _sample(cloud, place, seen.get(place, [])):
            in_flight = {name: each for name, each in values.items() if name == concurrency_metric(place)}
            for missed_s in _missed(since_s, end_s):
                cloud.history.add(whose, missed_s, in_flight)
            cloud.history.add(whose, end_s, values)
    for endpoint, measured in queue_metrics(cloud).items():
        for missed_s in _missed(since_s, end_s):
            cloud.history.add(endpoint_dimensions(endpoint), missed_s, measured)
        cloud.history.add(endpoint_dimensions(endpoint), end_s, measured)


def _sample(cloud: Cloud, place: CopyPlace, seen: list[Invocation]) -> Iterator[tuple[Dimensions, Values]]:
    copies = cloud.running.copies(place)
    in_flight = max((copy.take_peak() for copy in copies), default=0)
    values = metric_values(place, seen, copies=len(copies), in_flight=in_flight)
    yield dimensions_of(dimensions(place)), values
    if not place.variant and (variant := _variant_of(cloud, place)):
        yield variant, {name: each for name, each in values.items() if name not in _of_copies(place)}


def _missed(since_s: float, end_s: float) -> list[float]:
    """Return when the samples between two moments would have ended."""
    first_s = max(since_s, end_s - KEPT_S) + SAMPLE_S
    return [first_s + at * SAMPLE_S for at in range(round((end_s - first_s) / SAMPLE_S))]


def _variant_of(cloud: Cloud, place: CopyPlace) -> Dimensions | None:
    """Return the dimensions of the variant that hosts a component: its invocations count there too."""
    record = cloud.store.find(Kind.INFERENCE_COMPONENT, place.owner)
    if record is None:
        return None
    names = {"EndpointName": text(record.request, "EndpointName"), "VariantName": text(record.request, "VariantName")}
    return frozenset(names.items())


def _of_copies(place: CopyPlace) -> tuple[str, ...]:
    return (concurrency_metric(place), "InvocationsPerCopy")
