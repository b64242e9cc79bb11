"""What lies between client and container: what SageMaker adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Fact, Section
from seatrial.report.values import number, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.model.result import ServiceOverhead, TrialResult


NO_DATAPOINT = "CloudWatch had no datapoint"


def service_section(result: TrialResult) -> Section:
    """Return the service's share of the latency; empty when it wasn't measured."""
    overhead = result.overhead
    return Section(
        anchor="service",
        heading="Service overhead",
        paragraphs=() if overhead is None else (f"SageMaker: {sentence(overhead.because)}",),
        facts=() if overhead is None else tuple(_facts(overhead)),
        detail=True,
    )


def _facts(overhead: ServiceOverhead) -> Iterator[Fact]:
    mean = number(overhead.client_mean_ms, "no request succeeded", unit="ms")
    yield Fact("End to end at the client", mean, "mean")
    model = number(overhead.model_latency_mean_ms, NO_DATAPOINT, unit="ms")
    yield Fact("ModelLatency", model, "mean, CloudWatch")
    service = number(overhead.overhead_latency_mean_ms, NO_DATAPOINT, unit="ms")
    yield Fact("OverheadLatency", service, "mean, CloudWatch")
    added = number(overhead.overhead_ms, "both means are needed", unit="ms")
    yield Fact("Service and network", added, "client - ModelLatency")
