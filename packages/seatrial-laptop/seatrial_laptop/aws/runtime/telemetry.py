"""The metrics of `AWS/SageMaker`, in CloudWatch and in virtual time, and the logs of containers.

Metrics are published every ten seconds, also of places without requests: their alarms have data. Latencies are
microseconds, as on AWS. Alarms and target tracking read the history in virtual time.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDatumTypeDef

    from seatrial_laptop.aws.runtime.running_copies import CopyPlace


NAMESPACE: Final = "AWS/SageMaker"
PUBLISH_S: Final = 10.0
MOST_LINES: Final = 1_000
"""Lines of one log that are sent at a time."""
MOST_VALUES: Final = 150
"""Values of one datum at most, as PutMetricData allows."""
_MICROSECONDS: Final = 1e6

SAMPLE_S: Final = 10.0
"""Virtual seconds between two samples."""
KEPT_S: Final = 3 * 3600.0
"""Virtual seconds that samples are kept, as long as CloudWatch keeps those of high resolution."""

Dimensions = frozenset[tuple[str, str]]
"""Names and values; their order means nothing."""
Values = Mapping[str, Sequence[float]]
"""Every value of each metric within one sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One invocation that reached a copy, or would have if its component had one.

    Attributes:
        status: What the container answered; 0 when it broke the connection or was too slow.
        model_s: Seconds until the container had answered.
        overhead_s: Seconds that the service took in addition.
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


def metric_data(place: CopyPlace, seen: Sequence[Invocation], *, copies: int) -> list[MetricDatumTypeDef]:
    """Return the metrics of one place over one period, as PutMetricData takes them."""
    in_flight = max((one.in_flight for one in seen), default=0)
    series = metric_values(place, seen, copies=copies, in_flight=in_flight)
    return [
        _datum(name, values[first : first + MOST_VALUES], place)
        for name, values in series.items()
        for first in range(0, len(values), MOST_VALUES)
    ]


def metric_values(
    place: CopyPlace, invocations: Sequence[Invocation], *, copies: int, in_flight: float
) -> dict[str, Sequence[float]]:
    """Return every value of each metric of one place over one period; `in_flight` is the most, per copy."""
    seen = [invocation for invocation in invocations if not invocation.no_capacity]
    series: dict[str, Sequence[float]] = {concurrency_metric(place): [float(in_flight)]}
    if seen:
        errors = range(HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR)
        counts_refused = [float(one.status in errors) for one in seen]
        broken = [float(one.status == 0 or one.status >= HTTPStatus.INTERNAL_SERVER_ERROR) for one in seen]
        failed = [max(pair) for pair in zip(counts_refused, broken, strict=True)]
        series |= {
            "Invocations": [1.0] * len(seen),
            "Invocation4XXErrors": counts_refused,
            "Invocation5XXErrors": broken,
            "InvocationModelErrors": failed,
            ("InvocationsPerInstance" if place.variant else "InvocationsPerCopy"): [1 / max(copies, 1)] * len(seen),
            "ModelLatency": [one.model_s * _MICROSECONDS for one in seen],
            "OverheadLatency": [one.overhead_s * _MICROSECONDS for one in seen],
        }
    # Of variants alone (SageMaker developer guide, "Metric name mapping: legacy to OTel"); that mapping lists it under
    # bidirectional streaming, so that it is published for other streams is assumed.
    begun = [one.first_chunk_s * _MICROSECONDS for one in seen if one.first_chunk_s is not None]
    if begun and place.variant:
        series["FirstChunkModelLatency"] = begun
    if refused := len(invocations) - len(seen):
        series["NoCapacityInvocationFailures"] = [1.0] * refused
    return series


def concurrency_metric(place: CopyPlace) -> str:
    """Return the name of the metric of requests in flight."""
    return f"ConcurrentRequestsPer{'Model' if place.variant else 'Copy'}"


def _datum(name: str, values: Sequence[float], place: CopyPlace) -> MetricDatumTypeDef:
    # Percentiles can't be computed from a sum and two extremes: every value is published, with its count.
    counted = Counter(values)
    datum: MetricDatumTypeDef = {
        "MetricName": name,
        "Unit": "Microseconds" if name.endswith("Latency") else "Count",
        "Dimensions": copy_dimensions(place),
        "Values": list(counted),
        "Counts": [float(count) for count in counted.values()],
    }
    if name.startswith("Concurrent"):
        datum["StorageResolution"] = 1
    return datum


def copy_dimensions(place: CopyPlace) -> list[DimensionTypeDef]:
    """Return the dimensions of a place's metrics, those of target tracking."""
    if not place.variant:
        return [{"Name": "InferenceComponentName", "Value": place.owner}]
    return [{"Name": "EndpointName", "Value": place.owner}, {"Name": "VariantName", "Value": place.variant}]


def endpoint_dimensions(endpoint: str) -> frozenset[tuple[str, str]]:
    """Return the dimensions of an endpoint's own metrics, those of its queue."""
    return frozenset({("EndpointName", endpoint)})


@dataclass(frozen=True, slots=True)
class MetricSample:
    """The values of the ten virtual seconds that end at `end_s`."""

    end_s: float
    values: Values


@dataclass(slots=True)
class MetricHistory:
    """The samples of every set of dimensions, oldest first; threads may share it."""

    _samples: defaultdict[Dimensions, deque[MetricSample]] = field(default_factory=lambda: defaultdict(deque))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, dimensions: Dimensions, end_s: float, values: Values) -> None:
        """Keep a sample, and forget those that are too old."""
        with self._lock:
            samples = self._samples[dimensions]
            samples.append(MetricSample(end_s, values))
            while samples[0].end_s <= end_s - KEPT_S:
                samples.popleft()

    def forget(self, dimensions: Dimensions) -> None:
        """Forget the samples of what was deleted; its successor of the same name starts without."""
        with self._lock:
            self._samples.pop(dimensions, None)

    def samples(self, dimensions: Dimensions, *, after_s: float, until_s: float) -> list[MetricSample]:
        """Return the samples that end after one moment and until another, oldest first."""
        with self._lock:
            # Alarms look at the newest of three hours, every ten seconds.
            newest = takewhile(lambda each: each.end_s > after_s, reversed(self._samples.get(dimensions, ())))
            return [each for each in newest if each.end_s <= until_s][::-1]


def metric_dimensions(pairs: Sequence[Mapping[str, object]]) -> Dimensions:
    """Return the dimensions of a list of `Name` and `Value`, as the API writes them."""
    return frozenset((str(pair["Name"]), str(pair["Value"])) for pair in pairs)


def statistic(name: str, values: Sequence[float]) -> float | None:
    """Return a statistic of the values, a percentile (`p95`, `p99.9`) too; None without values.

    Percentiles are interpolated between the two nearest ranks.

    Raises:
        ValueError: There is no such statistic here.
    """
    if not is_statistic(name):
        raise ValueError(f"the embedded AWS has no statistic {name}")
    if not values:
        return None
    if simple := SIMPLE.get(name):
        return simple(values)
    ordered = sorted(values)
    rank = float(name.removeprefix("p")) / 100 * (len(ordered) - 1)
    low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    return low + (high - low) * (rank - math.floor(rank))


def is_statistic(name: str) -> bool:
    """Return whether a statistic is computed here."""
    return name in SIMPLE or PERCENTILE.fullmatch(name) is not None


SIMPLE: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "Sum": math.fsum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: math.fsum(values) / len(values),
    "SampleCount": lambda values: float(len(values)),
}
"""Every statistic that isn't a percentile."""
PERCENTILE: Final = re.compile(r"p(\d{1,2}(\.\d{1,10})?|100)")
