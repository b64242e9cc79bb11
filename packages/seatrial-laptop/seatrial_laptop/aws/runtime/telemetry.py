"""What SageMaker tells CloudWatch: metrics of invocations in `AWS/SageMaker`, and what containers write to their logs.

Metrics are published every ten seconds, also of places that nobody asked: their alarms have data. Latencies are
microseconds, as on AWS.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from seatrial_laptop.aws.control_plane.endpoint_settings import is_asynchronous
from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.runtime.own_services import OWN, ServiceFailed
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.runtime.own_services import Services
    from seatrial_laptop.aws.runtime.running_copies import CopyPlace


NAMESPACE: Final = "AWS/SageMaker"
PUBLISH_S: Final = 10.0
MOST_LINES: Final = 1_000
"""Lines of one log that are sent at a time."""
MOST_VALUES: Final = 150
"""Values of one datum at most, as PutMetricData allows."""
_MICROSECONDS: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One invocation that reached a copy, or would have if its component had one.

    Attributes:
        status: What the container answered; 0 when it broke the connection or was too slow.
        model_s: Seconds until the container had answered.
        overhead_s: Seconds that the service took beside it.
        in_flight: Requests in flight on the copy when this one began, itself included.
        first_chunk_s: Seconds until the first chunk of a streamed answer; None without one.
        no_capacity: Whether it was refused because there is no copy; it counts as nothing else then.
    """

    status: int
    model_s: float
    overhead_s: float
    in_flight: int
    first_chunk_s: float | None = None
    no_capacity: bool = False


@dataclass(slots=True)
class Telemetry:
    """The invocations since the last publication and the last sample; the event loop adds them, threads take them."""

    _seen: defaultdict[CopyPlace, list[Invocation]] = field(default_factory=lambda: defaultdict(list))
    _unsampled: defaultdict[CopyPlace, list[Invocation]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def saw(self, place: CopyPlace, invocation: Invocation) -> None:
        """Keep an invocation until it is published and sampled."""
        with self._lock:
            self._seen[place].append(invocation)
            self._unsampled[place].append(invocation)

    def take(self) -> dict[CopyPlace, list[Invocation]]:
        """Return what was seen since the last publication, and forget it."""
        with self._lock:
            seen, self._seen = self._seen, defaultdict(list)
        return seen

    def take_sample(self) -> dict[CopyPlace, list[Invocation]]:
        """Return what was seen since the last sample, and forget it."""
        with self._lock:
            seen, self._unsampled = self._unsampled, defaultdict(list)
        return seen


def log_group(place: CopyPlace) -> str:
    """Return the log group of a place's containers."""
    kind = "Endpoints" if place.variant else "InferenceComponents"
    return f"/aws/sagemaker/{kind}/{place.owner}"


def log_group_arn(place: CopyPlace) -> str:
    """Return the ARN of the log group of a place's containers."""
    return f"arn:aws:logs:{REGION}:{own_account()}:log-group:{log_group(place)}"


def metric_data(place: CopyPlace, seen: Sequence[Invocation], *, copies: int) -> list[dict[str, object]]:
    """Return the metrics of one place over one period, as PutMetricData takes them."""
    in_flight = max((one.in_flight for one in seen), default=0)
    series = metric_values(place, seen, copies=copies, in_flight=in_flight)
    return [
        _datum(name, values[first : first + MOST_VALUES], place)
        for name, values in series.items()
        for first in range(0, len(values), MOST_VALUES)
    ]


def metric_values(
    place: CopyPlace, told: Sequence[Invocation], *, copies: int, in_flight: int
) -> dict[str, Sequence[float]]:
    """Return every value of each metric of one place over one period; `in_flight` is the most of one copy."""
    seen = [one for one in told if not one.no_capacity]
    series: dict[str, Sequence[float]] = {concurrency_metric(place): [float(in_flight)]}
    if seen:
        series |= _counts(seen, copies, "InvocationsPerInstance" if place.variant else "InvocationsPerCopy")
        series["ModelLatency"] = [one.model_s * _MICROSECONDS for one in seen]
        series["OverheadLatency"] = [one.overhead_s * _MICROSECONDS for one in seen]
    if begun := [one.first_chunk_s * _MICROSECONDS for one in seen if one.first_chunk_s is not None]:
        series["FirstChunkModelLatency"] = begun
    if refused := len(told) - len(seen):
        series["NoCapacityInvocationFailures"] = [1.0] * refused
    return series


def concurrency_metric(place: CopyPlace) -> str:
    """Return the name of the metric of requests in flight."""
    return f"ConcurrentRequestsPer{'Model' if place.variant else 'Copy'}"


def _counts(seen: Sequence[Invocation], copies: int, per: str) -> dict[str, Sequence[float]]:
    errors = range(HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR)
    refused = [float(one.status in errors) for one in seen]
    broken = [float(one.status == 0 or one.status >= HTTPStatus.INTERNAL_SERVER_ERROR) for one in seen]
    failed = [max(pair) for pair in zip(refused, broken, strict=True)]
    return {
        "Invocations": [1.0] * len(seen),
        "Invocation4XXErrors": refused,
        "Invocation5XXErrors": broken,
        "InvocationModelErrors": failed,
        per: [1 / max(copies, 1)] * len(seen),
    }


def _datum(name: str, values: Sequence[float], place: CopyPlace) -> dict[str, object]:
    """Return a datum with every value: percentiles can't be computed from a sum and two extremes."""
    unit = "Microseconds" if name.endswith("Latency") else "Count"
    counted = Counter(values)
    told = {"Values": list(counted), "Counts": [float(count) for count in counted.values()]}
    resolution = {"StorageResolution": 1} if name.startswith("Concurrent") else {}
    return {"MetricName": name, "Unit": unit, "Dimensions": dimensions(place), **told, **resolution}


def dimensions(place: CopyPlace) -> list[dict[str, str]]:
    """Return the dimensions of a place's metrics, those that target tracking asks for."""
    if not place.variant:
        return [{"Name": "InferenceComponentName", "Value": place.owner}]
    return [{"Name": "EndpointName", "Value": place.owner}, {"Name": "VariantName", "Value": place.variant}]


def endpoint_dimensions(endpoint: str) -> frozenset[tuple[str, str]]:
    """Return the dimensions of an endpoint's own metrics, those of its queue."""
    return frozenset({("EndpointName", endpoint)})


def queue_metrics(cloud: Cloud) -> dict[str, dict[str, Sequence[float]]]:
    """Return the metrics of the queue of every asynchronous endpoint, by its name."""
    endpoints = [each for each in cloud.store.all(Kind.ENDPOINT) if is_asynchronous(cloud.store, each)]
    return {each.name: _queue(cloud, each.name) for each in endpoints}


def _queue(cloud: Cloud, endpoint: str) -> dict[str, Sequence[float]]:
    backlog = cloud.queues.backlog(endpoint)
    instances = sum(
        len(cloud.running.copies(place))
        for place in cloud.running.places()
        if place.variant and place.owner == endpoint
    )
    values = {
        "ApproximateBacklogSize": float(backlog.size),
        "ApproximateBacklogSizePerInstance": backlog.size / max(instances, 1),
        "HasBacklogWithoutCapacity": float(bool(backlog.waiting) and not instances),
        "ApproximateAgeOfOldestRequest": cloud.clock.now_s() - backlog.oldest_s
        if backlog.oldest_s is not None
        else 0.0,
    }
    return {name: [value] for name, value in values.items()}


def _queue_data(endpoint: str, measured: dict[str, Sequence[float]]) -> list[dict[str, object]]:
    whose = [{"Name": "EndpointName", "Value": endpoint}]
    return [
        {"MetricName": name, "Dimensions": whose, "Values": list(values), "Counts": [1.0] * len(values)}
        for name, values in measured.items()
    ]


class MetricsClient(Protocol):
    """The call of CloudWatch that is made here."""

    def put_metric_data(self, **request: object) -> object:
        """Publish metrics."""


class LogsClient(Protocol):
    """The calls of CloudWatch Logs that are made here."""

    def create_log_group(self, **request: object) -> object:
        """Make a group."""

    def create_log_stream(self, **request: object) -> object:
        """Make a stream."""

    def put_log_events(self, **request: object) -> object:
        """Write lines to a stream."""


@dataclass(slots=True)
class Publisher:
    """Publishes metrics, logs and captured data to the services of this same process, from a thread of its own."""

    cloud: Cloud
    metrics: MetricsClient
    logs: LogsClient
    services: Services = OWN
    _read: dict[Path, int] = field(default_factory=dict)

    def publish(self) -> None:
        """Publish what came since the last time."""
        seen = self.cloud.telemetry.take()
        for place in {*self.cloud.running.places(), *seen}:
            copies = len(self.cloud.running.copies(place))
            self.metrics.put_metric_data(
                Namespace=NAMESPACE, MetricData=metric_data(place, seen.get(place, ()), copies=copies)
            )
        for endpoint, measured in queue_metrics(self.cloud).items():
            self.metrics.put_metric_data(Namespace=NAMESPACE, MetricData=_queue_data(endpoint, measured))
        for place, log in self.cloud.running.logs():
            self._publish_log(place, log)
        self.cloud.capture.write(self.services)

    def _publish_log(self, place: CopyPlace, log: Path) -> None:
        where = {"logGroupName": log_group(place), "logStreamName": f"{place.variant or 'AllTraffic'}/{log.stem}"}
        if log not in self._read:
            self._make(where)
        with log.open("rb") as lines:
            lines.seek(self._read.get(log, 0))
            whole = lines.read().rpartition(b"\n")[0]
        self._read[log] = self._read.get(log, 0) + len(whole) + bool(whole)
        told = [line for line in whole.decode(errors="replace").splitlines() if line.strip()][-MOST_LINES:]
        if told:
            now_ms = int(time.time() * 1000)
            self.logs.put_log_events(**where, logEvents=[{"timestamp": now_ms, "message": line} for line in told])

    def _make(self, where: dict[str, str]) -> None:
        for make, names in (
            (self.logs.create_log_group, ("logGroupName",)),
            (self.logs.create_log_stream, ("logGroupName", "logStreamName")),
        ):
            try:
                make(**{name: where[name] for name in names})
            except ClientError as error:
                if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                    raise


def start_publishing(cloud: Cloud) -> None:
    """Publish every ten seconds, until the process ends."""
    metrics: MetricsClient = boto3.client("cloudwatch", region_name=REGION)
    logs: LogsClient = boto3.client("logs", region_name=REGION)
    publisher = Publisher(cloud, metrics, logs)

    def work() -> None:
        while True:
            time.sleep(PUBLISH_S)
            try:
                publisher.publish()
            except (BotoCoreError, ClientError, OSError, ServiceFailed) as error:
                sys.stderr.write(f"metrics and logs were not published: {error}\n")

    threading.Thread(target=work, name="telemetry", daemon=True).start()
