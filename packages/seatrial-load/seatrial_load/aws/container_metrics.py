"""Metrics of containers and accelerators, by CloudWatch's PromQL API: queue, KV cache, preemptions, utilization.

Facts of the metrics: SageMaker developer guide, "OpenTelemetry metrics reference" (labels, the DCGM exporter's
metrics), "Amazon SageMaker AI detailed observability" (a collector reads `/metrics` of vLLM and SGLang as often as the
endpoint's `MetricPublishFrequencyInSeconds`); vLLM's and SGLang's documentation, "Production metrics" (names and
meanings). A range query returns the newest sample before each step, so a value is as old as that frequency, at most.

Facts of the API (Amazon CloudWatch user guide, "QueryMetrics" and "PromQL querying"; SageMaker developer guide,
"Connect to your observability tool"): `POST /api/v1/query_range` at `https://monitoring.REGION.amazonaws.com`, signed
for the service `monitoring`, with the form fields `query`, `start`, `end`, `step`; the response is Prometheus' own. A
query selects a metric by its name; names with dots are quoted. Needs `cloudwatch:GetMetricData` and
`cloudwatch:ListMetrics`. Histograms are stored without `_bucket` and `le`, also those of fixed bounds ("How CloudWatch
stores histogram metrics"); one example of the SageMaker guide spells them as classic ones all the same.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode, urlsplit

from seatrial_base.errors import BenchError
from seatrial_base.units import counted
from seatrial_load.aws.cloudwatch import metric_query
from seatrial_load.aws.credentials import credential_source, trusted_authorities
from seatrial_load.aws.sigv4 import Signer
from seatrial_load.documents.container_metrics import Cause, ContainerLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef

    from seatrial_load.aws.credentials import CredentialSource
    from seatrial_load.documents.request import Statistic, TrialTarget

SERVICE: Final = "monitoring"
PATH: Final = "/api/v1/query_range"
TIMEOUT_S: Final = 10.0
FORM: Final = "application/x-www-form-urlencoded"
# The shortest time between two publications.
STEP_S: Final = 10.0
COMPONENT_LABEL: Final = "aws.sagemaker.inference_component.name"
ENDPOINT_LABEL: Final = "aws.sagemaker.endpoint.name"
VARIANT_LABEL: Final = "aws.sagemaker.variant.name"
# A label of the embedded AWS alone: what it measured in place of an engine and its accelerators.
SIMULATED_LABEL: Final = "seatrial.simulated_by"
RUNNING: Final = ("vllm:num_requests_running", "sglang:num_running_reqs")
WAITING: Final = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")
# Shares, 0 to 1, in spite of the name; the second is that of vLLM's older releases.
KV_CACHE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
# Counters, since the engine started; SGLang's name changed.
PREEMPTIONS: Final = (
    "vllm:num_preemptions_total",
    "sglang:num_retracted_requests_total",
    "sglang:num_retracted_reqs_total",
)
# Percent.
GPU: Final = ("DCGM_FI_DEV_GPU_UTIL",)
GPU_USED: Final = ("DCGM_FI_DEV_FB_USED",)
# MiB.
GPU_FREE: Final = ("DCGM_FI_DEV_FB_FREE",)
# Histograms of seconds.
FIRST_TOKEN: Final = ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds")
# A rate needs two samples: five minutes as in AWS's examples, and longer for what is published every 300 s at most.
RATE_WINDOWS_S: Final = (300, 1200)
PERCENT: Final = 100.0
COMPONENTS: Final = "/aws/sagemaker/InferenceComponents"
# Percent of a copy's accelerators, published each minute of every component (SageMaker developer guide).
GPU_METRICS: Final = {"gpu": "GPUUtilizationNormalized", "memory": "GPUMemoryUtilizationNormalized"}
GPU_PERIOD_S: Final = 60
# Limits of the causes. vLLM documentation, "Optimization and tuning", preemption: a request loses its KV cache where
# there is no free block. The shares are ours: a cache within a twentieth of full has no capacity for another prompt,
# and accelerators that rest for half of the time while requests wait are not what limits.
KV_FULL_SHARE: Final = 0.95
GPU_BUSY_SHARE: Final = 0.9
GPU_IDLE_SHARE: Final = 0.5
# A queue grows where its second half is this many times as long as its first, and at least one request longer.
GROWTH: Final = 2.0


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One time series of a response.

    Attributes:
        labels: By name; `__name__` is the metric's.
        samples: Time in seconds since the epoch and value, oldest first.
    """

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


class PromQl(Protocol):
    """A source of time series."""

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        """Return the series that a query selects, a sample for each step that has one.

        Raises:
            OSError: There is no connection.
            ValueError: The query was refused, or the response is malformed.
        """


def selector(metric: str, labels: Mapping[str, str]) -> str:
    """Return the query of one metric: `{"vllm:num_requests_waiting","aws.sagemaker.endpoint.name"="chat"}`."""
    named = (f"{json.dumps(name)}={json.dumps(value)}" for name, value in labels.items())
    return f"{{{','.join((json.dumps(metric), *named))}}}"


def first_token_query(labels: Mapping[str, str], statistic: Statistic) -> str:
    """Return the query of the time to first token over the last minutes, in seconds, all copies together.

    Args:
        statistic: A percentile or the mean.
    """
    rates = (f"sum(rate({selector(name, labels)}[{window}s]))" for name in FIRST_TOKEN for window in RATE_WINDOWS_S)
    if statistic == "mean":
        return " or ".join(f"histogram_avg({rate})" for rate in rates)
    share = float(statistic.removeprefix("p")) / PERCENT
    return " or ".join(f"histogram_quantile({share:g}, {rate})" for rate in rates)


@dataclass(frozen=True, slots=True)
class CloudWatchPromQl:
    """CloudWatch's PromQL API in one region."""

    url: str
    region: str
    credentials: CredentialSource
    now: Callable[[], datetime]

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        """Send a query; see `PromQl`."""
        form = {"query": query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:g}"}
        status, body = self._post(urlencode(form).encode())
        if status != HTTPStatus.OK:
            raise ValueError(f"HTTP {status}: {body.decode(errors='replace')[:400]}")
        return tuple(_series(json.loads(body)))

    def _post(self, body: bytes) -> tuple[int, bytes]:
        place = urlsplit(self.url)
        signer = Signer(self.credentials, self.region, SERVICE)
        headers = {"Host": place.netloc, "Content-Type": FORM}
        signed = signer.signed_headers(PATH, headers, sha256(body).hexdigest(), self.now())
        connection = (
            HTTPSConnection(place.netloc, timeout=TIMEOUT_S, context=trusted_authorities())
            if place.scheme == "https"
            else HTTPConnection(place.netloc, timeout=TIMEOUT_S)
        )
        try:
            connection.request("POST", PATH, body, signed)
            response = connection.getresponse()
            return response.status, response.read()
        except HTTPException as broken:
            raise OSError(f"CloudWatch's response is no HTTP: {broken!r}") from broken
        finally:
            connection.close()


def own_cloudwatch(environ: Mapping[str, str] = os.environ) -> str:
    """Return boto3's address of CloudWatch in place of AWS's; empty without one."""
    return environ.get("AWS_ENDPOINT_URL_CLOUDWATCH") or environ.get("AWS_ENDPOINT_URL") or ""


def promql_url(region: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the URL of a region's PromQL API."""
    suffix = ".cn" if region.startswith("cn-") else ""
    return own_cloudwatch(environ) or f"https://{SERVICE}.{region}.amazonaws.com{suffix}"


def cloudwatch_promql(
    region: str, credentials: CredentialSource | None = None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> CloudWatchPromQl | None:
    """Return a region's PromQL API; None where there are no credentials to sign with."""
    try:
        source = credentials or credential_source()
    except BenchError:
        return None
    return CloudWatchPromQl(promql_url(region), region, source, now)


def _series(response: object) -> Iterator[MetricSeries]:
    data = response.get("data") if isinstance(response, dict) else None
    series = data.get("result") if isinstance(data, dict) else None
    if not isinstance(series, list):
        raise ValueError("the response has no `data.result`")  # noqa: TRY004 (what came over the wire is a value)
    for row in series:
        labels, values = (row.get("metric"), row.get("values")) if isinstance(row, dict) else (None, None)
        if not isinstance(labels, dict) or not isinstance(values, list):
            raise ValueError("a series of the response has no `metric` or no `values`")  # noqa: TRY004 (likewise)
        samples = tuple((float(at), float(value)) for at, value in values)
        yield MetricSeries({str(name): str(value) for name, value in labels.items()}, samples)


@dataclass(frozen=True, slots=True)
class ContainerSeries:
    """The series of an endpoint over a period, by metric; empty where none was published."""

    running: tuple[MetricSeries, ...]
    waiting: tuple[MetricSeries, ...]
    kv_cache: tuple[MetricSeries, ...]
    preemptions: tuple[MetricSeries, ...]
    gpu: tuple[MetricSeries, ...]
    gpu_used: tuple[MetricSeries, ...]
    gpu_free: tuple[MetricSeries, ...]

    @property
    def simulated_by(self) -> str:
        """What measured in place of an engine and its accelerators; empty on AWS."""
        kinds = (self.running, self.waiting, self.kv_cache, self.preemptions, self.gpu)
        return next((name for kind in kinds for series in kind if (name := series.labels.get(SIMULATED_LABEL))), "")

    def load(self, from_s: float, to_s: float) -> ContainerLoad:
        """Return the load of the containers between two times, in seconds since the epoch.

        Formulas: requests are added up over copies; the KV cache's share is that of the fullest; preemptions are the
        counters' rises; utilization is averaged over accelerators, their memory used / (used + free), added up.
        """
        waiting, middle_s = _sums(self.waiting, from_s, to_s), (from_s + to_s) / 2
        gpu = _mean(_values(self.gpu, from_s, to_s))
        rest = dict(_sums(self.gpu_free, from_s, to_s))
        shares = [
            taken / (taken + rest[at])
            for at, taken in _sums(self.gpu_used, from_s, to_s)
            if at in rest and taken + rest[at] > 0
        ]
        return ContainerLoad(
            running_max=max((value for _, value in _sums(self.running, from_s, to_s)), default=None),
            waiting_max=max((value for _, value in waiting), default=None),
            waiting_early=_mean([value for at, value in waiting if at <= middle_s]),
            waiting_late=_mean([value for at, value in waiting if at > middle_s]),
            kv_cache_share_max=max(_values(self.kv_cache, from_s, to_s), default=None),
            preemptions=_risen(self.preemptions, from_s, to_s),
            gpu_share_mean=None if gpu is None else gpu / PERCENT,
            gpu_memory_share_max=max(shares, default=None),
        )


def target_labels(target: TrialTarget) -> Mapping[str, str]:
    """Return the labels of a trial's target."""
    if target.inference_component is not None:
        return {COMPONENT_LABEL: target.inference_component}
    variant = {VARIANT_LABEL: target.target_variant} if target.target_variant else {}
    return {ENDPOINT_LABEL: target.endpoint_name, **variant}


def read_container_series(ask: PromQl, labels: Mapping[str, str], *, from_s: float, to_s: float) -> ContainerSeries:
    """Read all metrics of the containers between two times, in seconds since the epoch; `labels` select them.

    Raises:
        OSError: There is no connection.
        ValueError: A query was refused.
    """

    def series_of(names: tuple[str, ...]) -> tuple[MetricSeries, ...]:
        queries = (ask(selector(name, labels), start_s=from_s, end_s=to_s, step_s=STEP_S) for name in names)
        return next(filter(None, queries), ())

    return ContainerSeries(*map(series_of, (RUNNING, WAITING, KV_CACHE, PREEMPTIONS, GPU, GPU_USED, GPU_FREE)))


def with_component_gpus(
    series: ContainerSeries, cloudwatch: CloudWatchClient, component: str, *, from_s: float, to_s: float
) -> ContainerSeries:
    """Return the series with a component's accelerators, which SageMaker publishes without detailed observability."""
    dimensions: list[DimensionTypeDef] = [{"Name": "InferenceComponentName", "Value": component}]
    response = cloudwatch.get_metric_data(
        MetricDataQueries=[
            metric_query(key, name, "Average", dimensions, period_s=GPU_PERIOD_S, namespace=COMPONENTS)
            for key, name in GPU_METRICS.items()
        ],
        StartTime=datetime.fromtimestamp(from_s - GPU_PERIOD_S, UTC),
        EndTime=datetime.fromtimestamp(to_s + GPU_PERIOD_S, UTC),
    )
    # A datapoint is the mean of the minute that begins at its timestamp.
    minutes = {
        result["Id"]: tuple(
            sorted(
                (at.timestamp() + GPU_PERIOD_S, value)
                for at, value in zip(result.get("Timestamps", []), result["Values"], strict=False)
            )
        )
        for result in response["MetricDataResults"]
    }
    gpu, memory = minutes.get("gpu", ()), minutes.get("memory", ())
    free = tuple((at, PERCENT - value) for at, value in memory)
    return replace(series, gpu=_one(gpu), gpu_used=_one(memory), gpu_free=_one(free))


def _one(samples: tuple[tuple[float, float], ...]) -> tuple[MetricSeries, ...]:
    return (MetricSeries({}, samples),) if samples else ()


def _values(series: Iterable[MetricSeries], from_s: float, to_s: float) -> list[float]:
    return [value for row in series for at, value in row.samples if from_s <= at <= to_s]


def _sums(series: Iterable[MetricSeries], from_s: float, to_s: float) -> list[tuple[float, float]]:
    sums: defaultdict[float, float] = defaultdict(float)
    for row in series:
        for at, value in row.samples:
            if from_s <= at <= to_s:
                sums[at] += value
    return sorted(sums.items())


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _risen(series: Iterable[MetricSeries], from_s: float, to_s: float) -> float | None:
    """Return the rise of counters; one that falls began again, and its value since then is its rise."""
    risen, is_known = 0.0, False
    for row in series:
        before = next((value for at, value in reversed(row.samples) if at < from_s), None)
        for at, value in row.samples:
            if not from_s <= at <= to_s:
                continue
            is_known = True
            if before is not None:
                risen += value - before if value >= before else value
            before = value
    return risen if is_known else None


def causes_of(load: ContainerLoad) -> tuple[Cause, ...]:
    """Return the causes that limit the throughput, the gravest first; none where none shows."""
    causes: list[Cause] = []
    waiting = f", up to {counted(round(load.waiting_max), 'request')} in the queue" if load.waiting_max else ""
    mend = "Give the KV cache more room: a lower max_model_len, an fp8 KV cache, more accelerator memory, more copies."
    if load.preemptions:
        lost = counted(round(load.preemptions), "preemption")
        causes.append(
            Cause(
                kind="preempted",
                because=f"{lost}: the KV cache was full, and requests were computed again",
                mend=f"{mend} Or set a lower max_num_seqs.",
            )
        )
    elif load.kv_cache_share_max is not None and load.kv_cache_share_max >= KV_FULL_SHARE:
        causes.append(
            Cause(
                kind="kv_cache_full", because=f"the KV cache is {load.kv_cache_share_max:.0%} full{waiting}", mend=mend
            )
        )
    has_room = not causes
    if has_room and load.waiting_max:
        causes.append(_waiting_cause(load))
    early, late = load.waiting_early, load.waiting_late
    if early is not None and late is not None and late >= early + 1 and late >= GROWTH * early:
        because = f"the queue grows: {early:.1f} requests in the first half of the time, {late:.1f} in the second"
        mend = "Add copies, or let scaling add them sooner: more requests arrive than are answered."
        causes.append(Cause(kind="queue_grows", because=because, mend=mend))
    computes = load.gpu_share_mean
    if has_room and not load.waiting_max and computes is not None and computes >= GPU_BUSY_SHARE:
        causes.append(
            Cause(
                kind="gpu_busy",
                because=f"the accelerators compute {computes:.0%} of the time, and no request waits",
                mend="Choose a faster instance type, a smaller quantization, or more copies.",
            )
        )
    return tuple(causes)


def _waiting_cause(load: ContainerLoad) -> Cause:
    cache = "" if load.kv_cache_share_max is None else f", the KV cache is {load.kv_cache_share_max:.0%} full"
    waiting = counted(round(load.waiting_max or 0), "request")
    if load.gpu_share_mean is not None and load.gpu_share_mean < GPU_IDLE_SHARE:
        return Cause(
            kind="gpu_idle",
            because=f"up to {waiting} in the queue{cache}, and the accelerators compute only "
            f"{load.gpu_share_mean:.0%} of the time",
            mend="Look at the host: CPU, tokenizer, data transfer; then raise max_num_seqs.",
        )
    return Cause(
        kind="batch_full",
        because=f"up to {waiting} in the queue{cache}: the batch is full",
        mend="Raise max_num_seqs, if the latency has room below its SLO; otherwise add copies.",
    )
