"""Percentiles of a queue, and the file of them that a peer writes."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.planner_accuracy.questions import FOLDER
from seatrial_load.measure.interval import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VIDUR = FOLDER / "vidur_queues.csv"
_MS = 1_000


class QueueFigures(NamedTuple):
    """Latencies of the requests of one rate, in milliseconds."""

    ttft_mean_ms: float
    ttft_p50_ms: float
    ttft_p95_ms: float
    ttft_p99_ms: float
    e2e_mean_ms: float
    e2e_p95_ms: float


def figures_of(took_s: Sequence[tuple[float, float]]) -> QueueFigures:
    """Return the percentiles of the times to first and last token, in seconds."""
    ttft, e2e = (sorted(seconds * _MS for seconds in column) for column in zip(*took_s, strict=True))
    p50, p95, p99 = (percentile(ttft, percent) for percent in (50, 95, 99))
    return QueueFigures(sum(ttft) / len(ttft), p50, p95, p99, sum(e2e) / len(e2e), percentile(e2e, 95))


def write_queues(found: Mapping[tuple[str, float], QueueFigures]) -> None:
    """Write the figures by case and share of saturation."""
    with VIDUR.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "utilization", *QueueFigures._fields))
        for (case, utilization), figures in found.items():
            writer.writerow((case, utilization, *(round(each, 2) for each in figures)))


def read_queues() -> dict[tuple[str, float], QueueFigures]:
    """Return what `write_queues` wrote."""
    with VIDUR.open(encoding="utf-8", newline="") as file:
        return {
            (row["case"], float(row["utilization"])): QueueFigures(*(float(row[name]) for name in QueueFigures._fields))
            for row in csv.DictReader(file)
        }
