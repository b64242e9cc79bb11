"""What containers and accelerators tell CloudWatch, by its PromQL API: queue, KV cache, preemptions, utilization.

Facts of the metrics: SageMaker developer guide, "OpenTelemetry metrics reference" (labels, the DCGM exporter's
metrics), "Amazon SageMaker AI detailed observability" (a collector reads `/metrics` of vLLM and SGLang as often as the
endpoint's `MetricPublishFrequencyInSeconds` says); vLLM's and SGLang's documentation, "Production metrics" (names and
meanings). A range query answers each step with the newest sample before it, so a value is as old as that frequency, at
most.

Facts of the API (Amazon CloudWatch user guide, "QueryMetrics" and "PromQL querying"; SageMaker developer guide,
"Connect to your observability tool"): `POST /api/v1/query_range` at `https://monitoring.REGION.amazonaws.com`, signed
for the service `monitoring`, with the form fields `query`, `start`, `end`, `step`; the response is Prometheus' own. A
query selects a metric by its name; names with dots are quoted. Needs `cloudwatch:GetMetricData` and
`cloudwatch:ListMetrics`.
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
from seatrial_load.aws.cloudwatch import metric_query
from seatrial_load.aws.credentials import credential_source, trusted_authorities
from seatrial_load.aws.sigv4 import Signer
from seatrial_load.documents.container_metrics import ContainerLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataResultTypeDef

    from seatrial_load.aws.credentials import CredentialSource
    from seatrial_load.documents.request import TrialTarget


SERVICE: Final = "monitoring"
PATH: Final = "/api/v1/query_range"
TIMEOUT_S: Final = 10.0
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One time series of an answer.

    Attributes:
        labels: By name; `__name__` is the metric's.
        samples: Time in seconds since the epoch and value, oldest first.
    """

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


class PromQl(Protocol):
    """Whoever answers a query over a stretch of time."""

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        """Return the series that a query selects, a sample for each step that has one.

        Raises:
            OSError: There is no connection.
            ValueError: The query was refused, or the answer is none.
        """


def selector(metric: str, labels: Mapping[str, str]) -> str:
    """Return the query of one metric: `{"vllm:num_requests_waiting","aws.sagemaker.endpoint.name"="chat"}`."""
    named = (f"{json.dumps(name)}={json.dumps(value)}" for name, value in labels.items())
    return f"{{{','.join((json.dumps(metric), *named))}}}"


@dataclass(frozen=True, slots=True)
class CloudWatchPromQl:
    """CloudWatch's PromQL API in one region."""

    url: str
    region: str
    credentials: CredentialSource
    now: Callable[[], datetime]

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        """Ask, as `PromQl` says."""
        form = {"query": query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:g}"}
        status, answer = self._post(urlencode(form).encode())
        if status != HTTPStatus.OK:
            raise ValueError(f"HTTP {status}: {answer.decode(errors='replace')[:400]}")
        return tuple(_series(json.loads(answer)))

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
            answer = connection.getresponse()
            return answer.status, answer.read()
        except HTTPException as broken:
            raise OSError(f"CloudWatch's answer is no HTTP: {broken!r}") from broken
        finally:
            connection.close()


def own_cloudwatch(environ: Mapping[str, str] = os.environ) -> str:
    """Return the address in place of AWS's that boto3 is told for CloudWatch; empty without one."""
    return environ.get("AWS_ENDPOINT_URL_CLOUDWATCH") or environ.get("AWS_ENDPOINT_URL") or ""


def promql_url(region: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return where a region's PromQL API is."""
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


def _series(answer: object) -> Iterator[MetricSeries]:
    """Yield the series of an answer."""
    data = answer.get("data") if isinstance(answer, dict) else None
    series = data.get("result") if isinstance(data, dict) else None
    if not isinstance(series, list):
        raise ValueError("the answer has no `data.result`")  # noqa: TRY004 (what came over the wire is a value)
    for row in series:
        labels, values = (row.get("metric"), row.get("values")) if isinstance(row, dict) else (None, None)
        if not isinstance(labels, dict) or not isinstance(values, list):
            raise ValueError("a series of the answer has no `metric` or no `values`")  # noqa: TRY004 (likewise)
        samples = tuple((float(at), float(value)) for at, value in values)
        yield MetricSeries({str(name): str(value) for name, value in labels.items()}, samples)


# The shortest time between two publications.
STEP_S: Final = 10.0
COMPONENT_LABEL: Final = "aws.sagemaker.inference_component.name"
ENDPOINT_LABEL: Final = "aws.sagemaker.endpoint.name"
VARIANT_LABEL: Final = "aws.sagemaker.variant.name"
# A label of the embedded AWS alone: what measured in place of an engine and its accelerators.
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
PERCENT: Final = 100.0


@dataclass(frozen=True, slots=True)
class ContainerSeries:
    """The series of an endpoint over some time, by what they tell; empty where nobody published."""

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
        return next((name for kind in kinds for each in kind if (name := each.labels.get(SIMULATED_LABEL))), "")

    def load(self, from_s: float, to_s: float) -> ContainerLoad:
        """Return what the containers told between two times, in seconds since the epoch.

        Formulas: requests are added up over copies; the KV cache's share is that of the fullest; preemptions are the
        counters' rises; utilization is averaged over accelerators, their memory used / (used + free), added up.
        """
        waiting, middle_s = _sums(self.waiting, from_s, to_s), (from_s + to_s) / 2
        return ContainerLoad(
            running_max=_most(_sums(self.running, from_s, to_s)),
            waiting_max=_most(waiting),
            waiting_early=_mean([value for at, value in waiting if at <= middle_s]),
            waiting_late=_mean([value for at, value in waiting if at > middle_s]),
            kv_cache_share_max=max(_values(self.kv_cache, from_s, to_s), default=None),
            preemptions=_risen(self.preemptions, from_s, to_s),
            gpu_share_mean=_share(_mean(_values(self.gpu, from_s, to_s))),
            gpu_memory_share_max=_used_most(self.gpu_used, self.gpu_free, from_s, to_s),
        )


def target_labels(target: TrialTarget) -> Mapping[str, str]:
    """Return the labels that tell a trial's target from all others."""
    if target.inference_component is not None:
        return {COMPONENT_LABEL: target.inference_component}
    variant = {VARIANT_LABEL: target.target_variant} if target.target_variant else {}
    return {ENDPOINT_LABEL: target.endpoint_name, **variant}


def read_container_series(ask: PromQl, labels: Mapping[str, str], *, from_s: float, to_s: float) -> ContainerSeries:
    """Ask CloudWatch for everything that the containers told between two times.

    Args:
        labels: What tells the endpoint or component from all others.
        from_s: In seconds since the epoch.
        to_s: Likewise.

    Raises:
        OSError: There is no connection.
        ValueError: A query was refused.
    """

    def found(names: tuple[str, ...]) -> tuple[MetricSeries, ...]:
        for name in names:
            if series := ask(selector(name, labels), start_s=from_s, end_s=to_s, step_s=STEP_S):
                return series
        return ()

    return ContainerSeries(
        found(RUNNING), found(WAITING), found(KV_CACHE), found(PREEMPTIONS), found(GPU), found(GPU_USED),
        found(GPU_FREE),
    )  # fmt: skip


COMPONENTS: Final = "/aws/sagemaker/InferenceComponents"
# Percent of a copy's accelerators, published each minute of every component (SageMaker developer guide).
GPU_METRICS: Final = {"gpu": "GPUUtilizationNormalized", "memory": "GPUMemoryUtilizationNormalized"}
GPU_PERIOD_S: Final = 60


def with_component_gpus(
    series: ContainerSeries, cloudwatch: CloudWatchClient, component: str, *, from_s: float, to_s: float
) -> ContainerSeries:
    """Return the series with a component's accelerators, which SageMaker publishes without detailed observability."""
    dimensions: list[DimensionTypeDef] = [{"Name": "InferenceComponentName", "Value": component}]
    answer = cloudwatch.get_metric_data(
        MetricDataQueries=[
            metric_query(key, name, "Average", dimensions, period_s=GPU_PERIOD_S, namespace=COMPONENTS)
            for key, name in GPU_METRICS.items()
        ],
        StartTime=datetime.fromtimestamp(from_s - GPU_PERIOD_S, UTC),
        EndTime=datetime.fromtimestamp(to_s + GPU_PERIOD_S, UTC),
    )
    minutes = {result["Id"]: _minutes(result) for result in answer["MetricDataResults"]}
    gpu, memory = minutes.get("gpu", ()), minutes.get("memory", ())
    free = tuple((at, PERCENT - value) for at, value in memory)
    return replace(series, gpu=_one(gpu), gpu_used=_one(memory), gpu_free=_one(free))


def _minutes(result: MetricDataResultTypeDef) -> tuple[tuple[float, float], ...]:
    """Return the end of each minute, and its mean."""
    pairs = zip(result.get("Timestamps", []), result["Values"], strict=False)
    return tuple(sorted((at.timestamp() + GPU_PERIOD_S, value) for at, value in pairs))


def _one(samples: tuple[tuple[float, float], ...]) -> tuple[MetricSeries, ...]:
    return (MetricSeries({}, samples),) if samples else ()


def _values(series: Iterable[MetricSeries], from_s: float, to_s: float) -> list[float]:
    return [value for each in series for at, value in each.samples if from_s <= at <= to_s]


def _sums(series: Iterable[MetricSeries], from_s: float, to_s: float) -> list[tuple[float, float]]:
    """Return the sum over series by time, oldest first."""
    sums: defaultdict[float, float] = defaultdict(float)
    for each in series:
        for at, value in each.samples:
            if from_s <= at <= to_s:
                sums[at] += value
    return sorted(sums.items())


def _most(sums: Sequence[tuple[float, float]]) -> float | None:
    return max((value for _, value in sums), default=None)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / PERCENT


def _risen(series: Iterable[MetricSeries], from_s: float, to_s: float) -> float | None:
    """Return by how much counters rose; one that falls began anew, and what it shows since then is its rise."""
    risen, is_known = 0.0, False
    for each in series:
        before = next((value for at, value in reversed(each.samples) if at < from_s), None)
        for at, value in each.samples:
            if not from_s <= at <= to_s:
                continue
            is_known = True
            if before is not None:
                risen += value - before if value >= before else value
            before = value
    return risen if is_known else None


def _used_most(used: Iterable[MetricSeries], free: Iterable[MetricSeries], from_s: float, to_s: float) -> float | None:
    rest = dict(_sums(free, from_s, to_s))
    shares = [
        taken / (taken + rest[at]) for at, taken in _sums(used, from_s, to_s) if at in rest and taken + rest[at] > 0
    ]
    return max(shares, default=None)
