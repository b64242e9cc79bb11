"""What the containers told CloudWatch during a trial, by level, and what holds the throughput back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Section
from seatrial.report.values import count_cell, load_name, missing_cell, sentence, share_cell
from seatrial_base.table import CONCURRENCY, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.table import Cell
    from seatrial_load.documents.container_metrics import LevelMetrics
    from seatrial_load.documents.result import TrialResult


NOT_PUBLISHED = "CloudWatch had no value"
NOTHING_TOLD = "Nothing that was published tells what holds the throughput back."


def container_section(result: TrialResult) -> Section:
    """Return queue, KV cache, preemptions and accelerators by level; empty where CloudWatch wasn't asked."""
    told = result.container
    if told is None:
        return Section(anchor="container", heading="Containers", detail=True)
    return Section(
        anchor="container",
        heading="Containers",
        paragraphs=(*_causes(result), f"Source: {sentence(told.because)}"),
        tables=(container_table(told.levels),) if told.levels else (),
        detail=not told.causes,
    )


def _causes(result: TrialResult) -> Iterator[str]:
    told = result.container
    if told is None or not told.levels:
        return
    if not told.causes:
        yield NOTHING_TOLD
    for cause in told.causes:
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
    return Table("What the containers told, by level", columns, tuple(_row(level) for level in levels))


def _row(level: LevelMetrics) -> tuple[Cell, ...]:
    load = level.load
    return (
        load_name(level.concurrency, level.offered_requests_per_s),
        _number(load.running_max),
        _number(load.waiting_max),
        _share(load.kv_cache_share_max),
        _number(load.preemptions),
        _share(load.gpu_share_mean),
        _share(load.gpu_memory_share_max),
    )


def _number(value: float | None) -> Cell:
    return missing_cell(NOT_PUBLISHED) if value is None else count_cell(round(value))


def _share(value: float | None) -> Cell:
    return missing_cell(NOT_PUBLISHED) if value is None else share_cell(value)
