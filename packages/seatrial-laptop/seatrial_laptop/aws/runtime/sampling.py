"""Samples of every place's last ten virtual seconds, kept for alarms and target tracking."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from seatrial_laptop.aws.control_plane.containers import known_role
from seatrial_laptop.aws.control_plane.records import Kind, is_asynchronous
from seatrial_laptop.aws.json_document import text_member
from seatrial_laptop.aws.rights import may_log
from seatrial_laptop.aws.runtime.artifacts import OWN, ServiceFailed
from seatrial_laptop.aws.runtime.container_history import read_copies
from seatrial_laptop.aws.runtime.telemetry import (
    KEPT_S,
    MOST_LINES,
    NAMESPACE,
    PUBLISH_S,
    SAMPLE_S,
    Dimensions,
    concurrency_metric,
    copy_dimensions,
    endpoint_dimensions,
    log_group,
    metric_data,
    metric_dimensions,
    metric_values,
)
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDatumTypeDef
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import InputLogEventTypeDef

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.runtime.artifacts import Services
    from seatrial_laptop.aws.runtime.running_copies import CopyPlace
    from seatrial_laptop.aws.runtime.telemetry import Invocation, Values


def take_samples(cloud: Cloud, end_s: float, *, since_s: float) -> None:
    """Keep a sample of every place that has copies or had requests, which ends at a virtual moment.

    When more than ten virtual seconds have passed since the last one, those in between have the same requests in
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
    in_flight = cloud.running.take_peak(place)
    values = metric_values(place, seen, copies=len(copies), in_flight=in_flight)
    yield metric_dimensions(copy_dimensions(place)), values
    if not place.variant and (variant := _variant_of(cloud, place)):
        of_copies = (concurrency_metric(place), "InvocationsPerCopy")
        yield variant, {name: series for name, series in values.items() if name not in of_copies}


def _missed(since_s: float, end_s: float) -> list[float]:
    """Return when the samples between two moments would have ended."""
    # Older samples than the history keeps would be forgotten at once.
    first_s = max(since_s, end_s - KEPT_S) + SAMPLE_S
    return [first_s + at * SAMPLE_S for at in range(round((end_s - first_s) / SAMPLE_S))]


def _variant_of(cloud: Cloud, place: CopyPlace) -> Dimensions | None:
    """Return the dimensions of the variant that hosts a component: its invocations count there too."""
    record = cloud.store.find(Kind.INFERENCE_COMPONENT, place.owner)
    if record is None:
        return None
    names = {
        "EndpointName": text_member(record.request, "EndpointName"),
        "VariantName": text_member(record.request, "VariantName"),
    }
    return frozenset(names.items())


def queue_metrics(cloud: Cloud) -> dict[str, dict[str, Sequence[float]]]:
    """Return the metrics of the queue of every asynchronous endpoint, by its name."""
    endpoints = [each for each in cloud.store.all(Kind.ENDPOINT) if is_asynchronous(cloud.store, each)]
    return {endpoint.name: _queue(cloud, endpoint.name) for endpoint in endpoints}


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


@dataclass(slots=True)
class Publisher:
    """Publishes metrics, logs and captured data to the services of this same process; threads may share it."""

    cloud: Cloud
    metrics: CloudWatchClient
    logs: CloudWatchLogsClient
    services: Services = OWN
    _read: dict[Path, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self) -> None:
        """Publish what came since the last time."""
        seen = self.cloud.telemetry.take()
        for place in {*self.cloud.running.places(), *seen}:
            copies = len(self.cloud.running.copies(place))
            self._put(metric_data(place, seen.get(place, ()), copies=copies))
        for endpoint, measured in queue_metrics(self.cloud).items():
            whose: list[DimensionTypeDef] = [{"Name": "EndpointName", "Value": endpoint}]
            self._put(
                [
                    {"MetricName": name, "Dimensions": whose, "Values": list(values), "Counts": [1.0] * len(values)}
                    for name, values in measured.items()
                ]
            )
        read_copies(self.cloud)
        self.publish_logs()
        self.cloud.capture.write(self.services)

    def publish_logs(self, of: CopyPlace | None = None) -> None:
        """Publish the lines that came since the last time, of every place or of one; none comes twice."""
        with self._lock:
            for place, log in self.cloud.running.logs():
                if of in (None, place):
                    self._publish_log(place, log)

    def _put(self, data: Sequence[MetricDatumTypeDef]) -> None:
        """Publish metrics of now, by AWS's date."""
        now = datetime.fromtimestamp(self.cloud.clock.aws_date_s(), UTC)
        self.metrics.put_metric_data(Namespace=NAMESPACE, MetricData=[{**each, "Timestamp": now} for each in data])

    def _publish_log(self, place: CopyPlace, log: Path) -> None:
        group, stream = log_group(place), f"{place.variant or 'AllTraffic'}/{log.stem}"
        role = known_role(self.cloud.store, place)
        if role and not may_log(role, group, stream):
            return
        with log.open("rb") as lines:
            lines.seek(self._read.get(log, 0))
            whole = lines.read().rpartition(b"\n")[0]
        self._read[log] = self._read.get(log, 0) + len(whole) + bool(whole)
        last_lines = [line for line in whole.decode(errors="replace").splitlines() if line.strip()][-MOST_LINES:]
        if last_lines:
            now_ms = int(time.time() * 1000)
            events: list[InputLogEventTypeDef] = [{"timestamp": now_ms, "message": line} for line in last_lines]
            # Where their stream is not there, or was deleted, it is made.
            try:
                self.logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
            except ClientError as error:
                if error.response["Error"]["Code"] != "ResourceNotFoundException":
                    raise
                steps: tuple[Callable[[], object], ...] = (
                    lambda: self.logs.create_log_group(logGroupName=group),
                    lambda: self.logs.create_log_stream(logGroupName=group, logStreamName=stream),
                )
                for make in steps:
                    try:
                        make()
                    except ClientError as error:
                        if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                            raise
                self.logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def start_publishing(cloud: Cloud) -> None:
    """Publish every ten seconds, until the process ends, and the last lines of what is deleted before it is gone."""
    metrics = boto3.client("cloudwatch", region_name=REGION)
    logs = boto3.client("logs", region_name=REGION)
    publisher = Publisher(cloud, metrics, logs)
    cloud.running.tell_ended(lambda place: _tried(lambda: publisher.publish_logs(place)))

    def work() -> None:
        while True:
            time.sleep(PUBLISH_S)
            _tried(publisher.publish)

    threading.Thread(target=work, name="telemetry", daemon=True).start()


def _tried(publish: Callable[[], None]) -> None:
    try:
        publish()
    except (BotoCoreError, ClientError, OSError, ServiceFailed) as error:
        sys.stderr.write(f"metrics and logs were not published: {error}\n")
