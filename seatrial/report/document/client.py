"""Client, service and containers: the client's health, SageMaker's share of the latency, the containers' metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.report.document.section import Fact, Section
from seatrial.report.values import count_cell, level_name, load_name, missing_cell, number_cell, sentence, share_cell
from seatrial_base.table import CONCURRENCY, Cell, Column, Table
from seatrial_base.units import digits
from seatrial_load.documents.result import loads_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_load.documents.container_metrics import LevelMetrics
    from seatrial_load.documents.result import ClientCalibration, LevelResult, ServiceOverhead, TrialResult

NOT_WATCHED = "the client was not watched"
NOT_MEASURED = "it was not measured"
READING = (
    "In flight: mean concurrent requests in the window. Lag: longest time from arrival of bytes to their timestamp. "
    "Busy: CPU share of the busiest process. Delayed: share of the window in which that process waited for a core."
)
NO_DATAPOINT = "CloudWatch had no datapoint"
NOT_PUBLISHED = "CloudWatch had no value"
NO_CAUSE = "No published metric shows what holds the throughput back."


def validity_section(result: TrialResult) -> Section:
    """Return the evidence that the numbers are the endpoint's and not the client's; empty without any."""
    if not result.levels and result.client is None:
        return Section(anchor="client", heading="Client health", detail=True)
    watched = any(level.client is not None for level in result.levels)
    return Section(
        anchor="client",
        heading="Client health",
        paragraphs=(
            validity_sentence(result),
            *(
                ("The client was not calibrated.",)
                if result.client is None
                else (f"Self-calibration: {sentence(result.client.because)}",)
            ),
            *((READING,) if watched else ()),
        ),
        facts=() if result.client is None else tuple(_calibration_facts(result.client)),
        tables=(validity_table(result),) if watched else (),
        detail=True,
    )


def validity_sentence(result: TrialResult) -> str:
    """Return in one sentence which levels count."""
    void, levels = void_levels(result), result.levels
    if not levels:
        return "No level was measured in full."
    if void:
        return f"{len(void)} of {len(levels)} levels are void ({loads_words(void)}): the client was the limit."
    if all(level.client is None for level in levels):
        return "The result has no client metrics: levels limited by the client can't be detected."
    return f"The client was not the limit at any of the {len(levels)} levels."


def void_levels(result: TrialResult) -> tuple[LevelResult, ...]:
    """Return the levels that measured the client."""
    return tuple(level for level in result.levels if level.void is not None)


def validity_table(result: TrialResult) -> Table:
    """Return how the client fared at each level; what no level can have, as an open loop's lag, is left out."""
    # A column without a value is kept where its absence means something, and left out where this kind of load can't
    # have it.
    measures = [measure for measure in MEASURES if measure.always or measure.is_known(result)]
    columns = (CONCURRENCY, *(measure.column for measure in measures), Column("outcome", kind="text"))
    rows = tuple(
        (
            level_name(level),
            *(measure.cell(level) for measure in measures),
            (Cell("✓ valid", tone="good") if level.void is None else Cell("○ void", tone="unknown")),
        )
        for level in result.levels
    )
    return Table("The client at each level", columns, rows)


@dataclass(frozen=True, slots=True)
class Measure:
    """One value of the evidence on the client.

    Attributes:
        field: Its field in the evidence.
        always: Whether it has its column though no level has a value.
    """

    field: str
    column: Column
    write: Callable[[float], Cell]
    always: bool = True

    def value(self, level: LevelResult) -> float | None:
        """Return its value; None when there is none."""
        number: float | None = None if level.client is None else getattr(level.client, self.field)
        return number

    def is_known(self, result: TrialResult) -> bool:
        """Return whether some level has a value."""
        return any(self.value(level) is not None for level in result.levels)

    def cell(self, level: LevelResult) -> Cell:
        """Return its value written, or why there is none."""
        value = self.value(level)
        if value is not None:
            return self.write(value)
        return missing_cell(NOT_WATCHED if level.client is None else NOT_MEASURED)


def _whole(value: float) -> Cell:
    return count_cell(round(value))


def _plain(value: float) -> Cell:
    return number_cell(value, NOT_MEASURED)


MEASURES = (
    Measure("workers", Column("workers"), _whole),
    Measure("streams", Column("streams"), _whole),
    Measure("delivered_concurrency", Column("delivered", "in flight"), _plain),
    Measure("idle_ms", Column("idle", "ms"), _plain, always=False),
    Measure("receive_lag_p99_ms", Column("lag p99", "ms"), _plain),
    Measure("send_lag_p99_ms", Column("sent late p99", "ms"), _plain, always=False),
    Measure("full_share", Column("all connections busy"), share_cell, always=False),
    Measure("reads_per_s", Column("reads", "1/s"), _plain, always=False),
    Measure("cpu_share", Column("busy"), share_cell),
    Measure("run_delay_share", Column("delayed"), share_cell),
)


def _calibration_facts(client: ClientCalibration) -> Iterator[Fact]:
    offered = f"of {digits(client.offered_parts_per_s)} offered"
    yield Fact("Token events decoded", number_cell(client.parts_per_s, NOT_MEASURED, unit="per s"), offered)
    yield Fact("CPU for 1,000 token events", number_cell(client.cpu_s_per_1k_parts, NOT_MEASURED, unit="s"))
    yield Fact("Lag p99", number_cell(client.receive_lag_p99_ms, NOT_MEASURED, unit="ms"))
    yield Fact("Streams", count_cell(client.streams))


def service_section(result: TrialResult) -> Section:
    """Return the service's share of the latency; empty when it wasn't measured."""
    overhead = result.overhead
    return Section(
        anchor="service",
        heading="Service overhead",
        paragraphs=() if overhead is None else (f"SageMaker: {sentence(overhead.because)}",),
        facts=() if overhead is None else tuple(_service_facts(overhead)),
        detail=True,
    )


def _service_facts(overhead: ServiceOverhead) -> Iterator[Fact]:
    mean = number_cell(overhead.client_mean_ms, "no request succeeded", unit="ms")
    yield Fact("End to end at the client", mean, "mean")
    model = number_cell(overhead.model_latency_mean_ms, NO_DATAPOINT, unit="ms")
    yield Fact("ModelLatency", model, "mean, CloudWatch")
    service = number_cell(overhead.overhead_latency_mean_ms, NO_DATAPOINT, unit="ms")
    yield Fact("OverheadLatency", service, "mean, CloudWatch")
    added = number_cell(overhead.overhead_ms, "both means are needed", unit="ms")
    yield Fact("Service and network", added, "client - ModelLatency")


def container_section(result: TrialResult) -> Section:
    """Return queue, KV cache, preemptions and accelerators by level; empty where CloudWatch wasn't read."""
    container = result.container
    if container is None:
        return Section(anchor="container", heading="Containers", detail=True)
    return Section(
        anchor="container",
        heading="Containers",
        paragraphs=(*_causes(result), f"Source: {sentence(container.because)}"),
        tables=(container_table(container.levels),) if container.levels else (),
        detail=not container.causes,
    )


def _causes(result: TrialResult) -> Iterator[str]:
    container = result.container
    if container is None or not container.levels:
        return
    if not container.causes:
        yield NO_CAUSE
    for cause in container.causes:
        yield f"What holds the throughput back: {sentence(cause.because)} {cause.mend}"


def container_table(levels: tuple[LevelMetrics, ...]) -> Table:
    """Return one row for each level."""
    columns = (
        CONCURRENCY,
        Column("running", "most"),
        Column("waiting", "most"),
        Column("KV cache", "most"),
        Column("preemptions"),
        Column("accelerators", "mean"),
        Column("accelerator memory", "most"),
    )
    rows = tuple(
        (
            load_name(level.concurrency, level.offered_requests_per_s),
            _number(level.load.running_max),
            _number(level.load.waiting_max),
            _share(level.load.kv_cache_share_max),
            _number(level.load.preemptions),
            _share(level.load.gpu_share_mean),
            _share(level.load.gpu_memory_share_max),
        )
        for level in levels
    )
    return Table("Metrics of the containers, by level", columns, rows)


def _number(value: float | None) -> Cell:
    return missing_cell(NOT_PUBLISHED) if value is None else count_cell(round(value))


def _share(value: float | None) -> Cell:
    return missing_cell(NOT_PUBLISHED) if value is None else share_cell(value)
