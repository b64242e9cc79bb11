"""Metrics of the copies' engines: read from their `/metrics`, kept as series, returned by range queries of PromQL.

Facts: as in `seatrial_load.aws.container_metrics`, whose labels are used; Prometheus' text format and HTTP API. A
query selects one metric by its name, and labels by equality; CloudWatch knows all of PromQL.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.control_plane.records import Kind, metrics_config
from seatrial_laptop.aws.json_document import Document, text_member
from seatrial_laptop.aws.runtime.telemetry import KEPT_S
from seatrial_laptop.loopback import HOST
from seatrial_load.aws.container_metrics import COMPONENT_LABEL, ENDPOINT_LABEL, SIMULATED_LABEL, VARIANT_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.runtime.running_copies import CopyPlace

CONTAINER_LABEL: Final = "aws.sagemaker.container.id"
DEFAULT_EVERY_S: Final = 60
LOOK_BACK_S: Final = 300.0
"""How old a sample may be that answers a step (Prometheus documentation, staleness)."""
MOST_STEPS: Final = 11_000
"""Points of a series in one answer (Prometheus documentation, HTTP API)."""
SCRAPE_LIMIT_S: Final = 2.0
LINE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
SELECTOR: Final = re.compile(r'\s*\{\s*"(?P<name>[^"]+)"\s*(?P<labels>(,\s*"[^"]+"\s*=\s*"[^"]*"\s*)*)\}\s*')
PAIR: Final = re.compile(r'"?([^",=\s]+)"?\s*=\s*"([^"]*)"')

Key = tuple[str, frozenset[tuple[str, str]]]


class BadQueryError(ValueError):
    """A query that is not answered here, and why."""


@dataclass(slots=True)
class ContainerHistory:
    """The samples of every series, oldest first, for three hours; threads may share it."""

    _samples: dict[Key, deque[tuple[float, float]]] = field(default_factory=dict)
    _scraped_s: dict[CopyPlace, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_due(self, place: CopyPlace, now_s: float, every_s: float) -> bool:
        """Return whether a place is to be read again, and note that it is."""
        with self._lock:
            if now_s - self._scraped_s.get(place, -every_s) < every_s:
                return False
            self._scraped_s[place] = now_s
            return True

    def add(self, metric: str, labels: Mapping[str, str], at_s: float, value: float) -> None:
        """Keep a sample, and forget those that are too old."""
        with self._lock:
            kept = self._samples.setdefault((metric, frozenset(labels.items())), deque())
            kept.append((at_s, value))
            while kept[0][0] <= at_s - KEPT_S:
                kept.popleft()

    def select(self, metric: str, labels: Mapping[str, str]) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """Return the series of a metric that have these labels, with their samples."""
        wanted = labels.items()
        with self._lock:
            series = [(dict(has), list(kept)) for (name, has), kept in self._samples.items() if name == metric]
        return [(has, kept) for has, kept in series if wanted <= has.items()]


def read_copies(cloud: Cloud) -> None:
    """Read `/metrics` of every copy whose endpoint publishes its containers' metrics, as often as it is configured."""
    now_s = cloud.clock.aws_date_s()
    for place in cloud.running.places():
        endpoint = _endpoint_of(cloud, place)
        if endpoint is None:
            continue
        config = metrics_config(cloud.store, endpoint)
        every_s = float(str(config.get("MetricPublishFrequencyInSeconds", DEFAULT_EVERY_S)))
        is_on = config.get("EnableDetailedObservability", True) is True
        if is_on and cloud.containers.is_due(place, now_s, every_s):
            for copy in cloud.running.copies(place):
                labels = {**place_labels(endpoint.name, place), CONTAINER_LABEL: copy.log.stem}
                for metric, own, value in exposed(copy.port):
                    cloud.containers.add(metric, {**own, **labels}, now_s, value)


def place_labels(endpoint: str, place: CopyPlace) -> dict[str, str]:
    """Return the labels of every series of a place's copies."""
    labels = {VARIANT_LABEL: place.variant} if place.variant else {COMPONENT_LABEL: place.owner}
    return {ENDPOINT_LABEL: endpoint, **labels}


def _endpoint_of(cloud: Cloud, place: CopyPlace) -> Record | None:
    if place.variant:
        return cloud.store.find(Kind.ENDPOINT, place.owner)
    component = cloud.store.find(Kind.INFERENCE_COMPONENT, place.owner)
    return component and cloud.store.find(Kind.ENDPOINT, text_member(component.request, "EndpointName"))


def exposed(port: int) -> list[tuple[str, dict[str, str], float]]:
    """Return the metrics of a container at `/metrics`: name, labels and value."""
    connection = HTTPConnection(HOST, port, timeout=SCRAPE_LIMIT_S)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        engine = answer.headers.get("x-seatrial-engine", "")
    except (OSError, HTTPException):
        # A copy that is being stopped has no metrics; those of the others are read all the same.
        return []
    finally:
        connection.close()
    # What is simulated is marked so, in each series that comes from it.
    simulated = {SIMULATED_LABEL: engine} if engine else {}
    lines = (LINE.fullmatch(line) for line in text.splitlines()) if answer.status == HTTPStatus.OK else ()
    return [
        (line["name"], {**dict(PAIR.findall(line["labels"] or "")), **simulated}, float(line["value"]))
        for line in lines
        if line
    ]


def answer_range(history: ContainerHistory, parameters: Mapping[str, Sequence[str]]) -> Document:
    """Answer a query over a stretch of time, as Prometheus does.

    Raises:
        BadQueryError: A field is missing or no number, or the query selects in another way.
    """
    match = SELECTOR.fullmatch(parameters.get("query", [""])[0])
    if match is None:
        raise BadQueryError('the embedded AWS answers queries like {"METRIC","LABEL"="VALUE"} alone')
    start_s, end_s, step_s = (_number(parameters, name) for name in ("start", "end", "step"))
    if step_s <= 0 or end_s < start_s or (end_s - start_s) / step_s > MOST_STEPS:
        raise BadQueryError("start, end and step give no or too many points")
    name, labels = match["name"], dict(PAIR.findall(match["labels"]))
    rows: list[Document] = []
    for has, kept in history.select(name, labels):
        if values := [*_steps(kept, start_s, end_s, step_s)]:
            rows.append({"metric": {"__name__": name, **has}, "values": values})
    return {"status": "success", "data": {"resultType": "matrix", "result": rows}}


def _steps(kept: Sequence[tuple[float, float]], start_s: float, end_s: float, step_s: float) -> Iterator[list[object]]:
    """Yield time and value of each step that has a sample that is young enough."""
    for number in range(int((end_s - start_s) / step_s) + 1):
        at_s = start_s + number * step_s
        newest = next(((latest_s, value) for latest_s, value in reversed(kept) if latest_s <= at_s), None)
        if newest is not None and at_s - newest[0] < LOOK_BACK_S:
            yield [round(at_s, 3), f"{newest[1]:g}"]


def _number(parameters: Mapping[str, Sequence[str]], name: str) -> float:
    try:
        return float(parameters.get(name, [""])[0])
    except ValueError as wrong:
        raise BadQueryError(f"{name} is no number of seconds") from wrong
