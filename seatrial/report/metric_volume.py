"""How many metrics an endpoint publishes beside the usual ones, how much data that is, and what it costs.

Facts: AWS's list price of custom metrics, US East (N. Virginia), first 10,000: $0.30 each and month, as public guides
to CloudWatch's pricing quote it (2026-11-26); CloudWatch user guide, "OTel metrics pricing and storage" (OpenTelemetry
metrics are billed by GB of name, labels, time and value, storage included); SageMaker developer guide, metrics of
endpoints and of inference components. AWS's price of a GB is not known here, and AWS does not say whether enhanced
metrics are billed as custom ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.instances import find_instance
from seatrial_base.units import GB, S_PER_HOUR, usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial.specs.hosting import MetricsSpec


USD_PER_METRIC_AND_MONTH: Final = 0.30
HOURS_PER_MONTH: Final = 730
USUAL_S: Final = 60
SERIES: Final = 100
"""AWS tells of more than a hundred detailed metrics of an endpoint; each label's value makes another series."""
POINT_BYTES: Final = 400
"""A data point of `vllm:num_requests_waiting` with nine labels of usual length has 386 bytes."""
PER_INSTANCE: Final = 3
"""CPU, memory and disk."""
PER_ACCELERATOR: Final = 2
"""Utilization and memory."""
PER_COPY: Final = 12
"""CPU, memory, accelerators and their memory; invocations, 4XX, 5XX, model errors, three latencies, concurrency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricVolume:
    """What an endpoint of planned size publishes in a month.

    Attributes:
        enhanced: Metrics by instance, copy and accelerator; 0 where they are off.
        enhanced_usd: What these cost in a month, if they are billed as custom metrics.
        detailed_gb: GB of every hundred series of OpenTelemetry metrics; 0 where they are off.
        every_s: How often they are published.
    """

    enhanced: int
    enhanced_usd: float
    detailed_gb: float
    every_s: int

    @property
    def lines(self) -> Iterator[str]:
        """The same in words, for the plan's screen."""
        if self.enhanced:
            yield f"enhanced metrics: {self.enhanced}, {usd(self.enhanced_usd)}/month if billed as custom ones"
        if self.detailed_gb:
            often = f"every {self.every_s} s"
            yield f"detailed metrics {often}: {self.detailed_gb:.1f} GB/month for each {SERIES} series, billed by GB"


def metric_volume(metrics: MetricsSpec, plan: Plan) -> MetricVolume:
    """Return what an endpoint publishes beside the usual metrics.

    Formulas: metrics = instances x (3 + 2 x accelerators) + copies x 12; GB = 100 series x 400 bytes x seconds of a
    month / frequency / 1e9.

    Args:
        metrics: What is asked for.
        plan: Its size.
    """
    known = find_instance(plan.instance_type.value)
    accelerators = 0 if known is None else known.accelerator_count
    instances, copies = plan.instance_count.value, plan.copy_count.value
    enhanced = instances * (PER_INSTANCE + PER_ACCELERATOR * accelerators) + copies * PER_COPY
    every_s = metrics.frequency_s or USUAL_S
    points = SERIES * HOURS_PER_MONTH * S_PER_HOUR / every_s
    is_enhanced, is_detailed = bool(metrics.enhanced), metrics.detailed is not False
    return MetricVolume(
        enhanced=enhanced if is_enhanced else 0,
        enhanced_usd=enhanced * USD_PER_METRIC_AND_MONTH if is_enhanced else 0.0,
        detailed_gb=points * POINT_BYTES / GB if is_detailed else 0.0,
        every_s=every_s,
    )
