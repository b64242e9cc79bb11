"""What lies between client and container: what SageMaker adds, and boto3's reading of the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Fact, Section
from seatrial.report.values import Cell, missing, number, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.evidence import CrossCheck
    from seatrial.bench.result import TrialResult

NO_DATAPOINT = "CloudWatch had no datapoint"


def service_section(result: TrialResult) -> Section:
    """Return the cross-check of the parser and the service's share of the latency; empty when neither was made."""
    check, overhead = result.cross_check, result.overhead
    checked = () if check is None else (f"Parser: {sentence(check.because)}",)
    added = () if overhead is None else (f"SageMaker: {sentence(overhead.because)}",)
    return Section(
        anchor="service",
        heading="Service overhead and cross-check",
        paragraphs=(*checked, *added),
        facts=tuple(_facts(result)),
        detail=True,
    )


def _facts(result: TrialResult) -> Iterator[Fact]:
    if result.cross_check is not None:
        yield Fact("boto3 reads the same", agreement(result.cross_check))
    if result.overhead is not None:
        overhead = result.overhead
        mean = number(overhead.client_mean_ms, "no request succeeded", unit="ms")
        yield Fact("End to end at the client", mean, "mean")
        model = number(overhead.model_latency_mean_ms, NO_DATAPOINT, unit="ms")
        yield Fact("ModelLatency", model, "mean, CloudWatch")
        service = number(overhead.overhead_latency_mean_ms, NO_DATAPOINT, unit="ms")
        yield Fact("OverheadLatency", service, "mean, CloudWatch")
        added = number(overhead.overhead_ms, "both means are needed", unit="ms")
        yield Fact("Service and network", added, "client - ModelLatency")


def agreement(check: CrossCheck) -> Cell:
    """Say whether both parsers agree."""
    if check.agreed is None:
        return missing(check.because)
    return Cell("✓ yes", tone="good") if check.agreed else Cell("✗ no", tone="bad")
