"""What containers and accelerators tell CloudWatch: queue, KV cache, preemptions, utilization.

Facts: SageMaker developer guide, "OpenTelemetry metrics reference" (labels, the DCGM exporter's metrics), "Amazon
SageMaker AI detailed observability" (a collector reads `/metrics` of vLLM and SGLang as often as the endpoint's
`MetricPublishFrequencyInSeconds` says); vLLM's and SGLang's documentation, "Production metrics" (names and meanings). A
range query answers each step with the newest sample before it, so a value is as old as that frequency, at most.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from seatrial_load.aws.cloudwatch import metric_query
from seatrial_load.aws.promql import MetricSeries, selector
from seatrial_load.documents.container_metrics import ContainerLoad

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seatrial_load.aws.cloudwatch import CloudWatch, MetricDataResult
    from seatrial_load.aws.promql import PromQl
    from seatrial_load.documents.request import TrialTarget


STEP_S: Final = 10.0
"""The shortest time between two publications."""
COMPONENT_LABEL: Final = "aws.sagemaker.inference_component.name"
ENDPOINT_LABEL: Final = "aws.sagemaker.endpoint.name"
VARIANT_LABEL: Final = "aws.sagemaker.variant.name"
SIMULATED_LABEL: Final = "seatrial.simulated_by"
"""A label of the embedded AWS alone: what measured in place of an engine and its accelerators."""
RUNNING: Final = ("vllm:num_requests_running", "sglang:num_running_reqs")
WAITING: Final = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")
KV_CACHE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
"""Shares, 0 to 1, in spite of the name; the second is that of vLLM's older releases."""
PREEMPTIONS: Final = (
    "vllm:num_preemptions_total",
    "sglang:num_retracted_requests_total",
    "sglang:num_retracted_reqs_total",
)
"""Counters, since the engine started; SGLang's name changed."""
GPU: Final = ("DCGM_FI_DEV_GPU_UTIL",)
"""Percent."""
GPU_USED: Final = ("DCGM_FI_DEV_FB_USED",)
GPU_FREE: Final = ("DCGM_FI_DEV_FB_FREE",)
"""MiB."""
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
        ask: Answers queries.
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
GPU_METRICS: Final = {"gpu": "GPUUtilizationNormalized", "memory": "GPUMemoryUtilizationNormalized"}
"""Percent of a copy's accelerators, published each minute of every component (SageMaker developer guide)."""
GPU_PERIOD_S: Final = 60


def with_component_gpus(
    series: ContainerSeries, cloudwatch: CloudWatch, component: str, *, from_s: float, to_s: float
) -> ContainerSeries:
    """Return the series with a component's accelerators, which SageMaker publishes without detailed observability.

    Args:
        series: What the containers told.
        cloudwatch: Asked for metrics.
        component: The inference component.
        from_s: In seconds since the epoch.
        to_s: Likewise.
    """
    dimensions = [{"Name": "InferenceComponentName", "Value": component}]
    answer = cloudwatch.get_metric_data(
        MetricDataQueries=[
            metric_query(key, name, "Average", dimensions, period_s=GPU_PERIOD_S, namespace=COMPONENTS)
            for key, name in GPU_METRICS.items()
        ],
        StartTime=datetime.fromtimestamp(from_s - GPU_PERIOD_S, UTC),
        EndTime=datetime.fromtimestamp(to_s + GPU_PERIOD_S, UTC),
    )
    found = {result["Id"]: _minutes(result) for result in answer["MetricDataResults"]}
    gpu, memory = found.get("gpu", ()), found.get("memory", ())
    free = tuple((at, PERCENT - value) for at, value in memory)
    return replace(series, gpu=_one(gpu), gpu_used=_one(memory), gpu_free=_one(free))


def _minutes(result: MetricDataResult) -> tuple[tuple[float, float], ...]:
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
