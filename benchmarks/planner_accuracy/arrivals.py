"""How well latencies at a rate are predicted: against measured rows, and against Vidur's queues.

    python -m benchmarks.planner_accuracy.arrivals [--write]    # --write: arrivals.csv, and the tables into README.md

The measured rows are those of `measured_rates.csv`; nothing of the performance model was fitted on them. What
the requests spend outside the engine there, in the cluster of that load tester, is unknown: it is what makes the
median TTFT of the first row right, which then is not judged. Vidur answered in its own environment (`peer_vidur.py`).
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass, fields
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.compare import markdown
from benchmarks.planner_accuracy.questions import FOLDER
from benchmarks.planner_accuracy.queue_cases import FIRST_MEASURED, REQUESTS, UTILIZATIONS, QueueCase, queue_cases
from benchmarks.planner_accuracy.queues import QueueFigures, figures_of, read_queues
from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import fit_memory
from seatrial.planner.predict.request_simulation import simulate_open
from seatrial.planner.predict.simulation import open_level, saturation_per_s
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_load.documents.arrivals import Constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import OpenLevel

ROWS = FOLDER / "measured_rates.csv"
ERRORS = FOLDER / "arrivals.csv"
PAGE = FOLDER / "README.md"
COMMAND = "python -m benchmarks.planner_accuracy.arrivals --write"
MOST_UTILIZATION = 0.8
"""Beyond, a percentile depends on the last percent of the saturation more than on anything else."""
_SIMULATED = 1_000


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """One level of an open loop that was measured; latencies in milliseconds."""

    model: str
    instance_type: str
    tp_degree: int
    engine_version: str
    workload: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    max_num_seqs: int
    batched_tokens: int
    requests_per_second: float
    ttft_p50_ms: float
    ttft_p95_ms: float
    e2e_p50_ms: float
    e2e_p95_ms: float


@dataclass(frozen=True, slots=True)
class JudgedRate:
    """A measured level, and what was predicted of it."""

    measured: MeasuredRate
    predicted: OpenLevel
    utilization: float

    @property
    def errors(self) -> tuple[float, ...]:
        """Predicted over measured, less 1: TTFT p50 and p95, end to end p50 and p95."""
        ttft, e2e, row = self.predicted.ttft_ms, self.predicted.e2e_latency_ms, self.measured
        pairs = (
            (ttft.p50, row.ttft_p50_ms),
            (ttft.p95, row.ttft_p95_ms),
            (e2e.p50, row.e2e_p50_ms),
            (e2e.p95, row.e2e_p95_ms),
        )
        return tuple(predicted / measured - 1 for predicted, measured in pairs)


def main() -> None:
    """Print the tables, or with `--write` put them and the errors where they are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write arrivals.csv and the tables of README.md")
    if parser.parse_args().write:
        write_errors()
        PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(f"{rates_table()}\n\n{queues_table(queue_cases())}")


def current(page: str) -> str:
    """Return the page with both tables written anew between their marks."""
    for name, table in (("rates", rates_table()), ("queues", queues_table(queue_cases()))):
        begin, end = f"<!-- begin {name}: {COMMAND} -->", f"<!-- end {name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return page


def write_errors() -> None:
    """Write every judged level with its errors."""
    with ERRORS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ("ttft_p50", "ttft_p95", "e2e_p50", "e2e_p95")
        told = ("model", "instance_type", "tp_degree", "workload", "requests_per_second")
        writer.writerow((*told, "utilization", *(f"{name}_error" for name in names)))
        for judged in judge(read_rates()):
            row = [getattr(judged.measured, name) for name in told]
            writer.writerow((*row, round(judged.utilization, 3), *(round(error, 4) for error in judged.errors)))


def read_rates() -> tuple[MeasuredRate, ...]:
    """Return the measured levels."""
    by_name = {"str": str, "int": int, "float": float}
    kinds = {field.name: by_name[str(field.type)] for field in fields(MeasuredRate)}
    with ROWS.open(encoding="utf-8", newline="") as file:
        return tuple(
            MeasuredRate(**{name: kind(row[name]) for name, kind in kinds.items()}) for row in csv.DictReader(file)
        )


def judge(rows: Sequence[MeasuredRate]) -> list[JudgedRate]:
    """Predict every level but the first, which tells the time outside the engine."""
    first, *others = rows
    outside_s = (first.ttft_p50_ms - _predict(first, 0.0).ttft_ms.p50) / 1_000
    return [JudgedRate(row, _predict(row, outside_s), row.requests_per_second / _saturation(row)) for row in others]


def _predict(row: MeasuredRate, outside_s: float) -> OpenLevel:
    arrivals = Constant()
    return open_level(_copy_of(row), arrivals, row.requests_per_second, requests=_SIMULATED, round_trip_s=outside_s)


def _saturation(row: MeasuredRate) -> float:
    return saturation_per_s(_copy_of(row))


@cache
def _copy_of(row: MeasuredRate) -> Copy:
    model, instance = find_model(row.model), find_instance(row.instance_type)
    hardware = None if instance is None else hardware_of(instance)
    if model is None or instance is None or hardware is None:
        raise LookupError(f"{row.model} or {row.instance_type} is not in the catalog")
    engine = find_engine("vllm", row.engine_version)
    memory = fit_memory(
        model,
        instance,
        engine,
        degree=row.tp_degree,
        quantization=None,
        tokens=row.input_tokens + row.output_tokens,
        batched_tokens=row.batched_tokens,
    )
    return place_copy(
        model,
        hardware,
        engine,
        memory,
        degree=row.tp_degree,
        quantization=None,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        batched_tokens=row.batched_tokens,
        max_num_seqs=row.max_num_seqs,
        prefix_hit_rate=row.cached_tokens / row.input_tokens,
    )


def rates_table() -> str:
    """Return the errors by model, of levels up to 80 % of saturation and beyond, in Markdown."""
    judged = judge(read_rates())
    groups: dict[tuple[str, str], list[JudgedRate]] = {}
    for each in judged:
        group = "up to 80 %" if each.utilization <= MOST_UTILIZATION else "beyond"
        groups.setdefault((group, each.measured.model), []).append(each)
        groups.setdefault((group, "all"), []).append(each)
    ordered = sorted(groups.items(), key=lambda entry: (entry[0][0] == "beyond", entry[0][1] == "all", entry[0][1]))
    head = ("of saturation", "model", "levels", "TTFT p50", "TTFT p95", "worst TTFT p95", "end to end p50", "p95")
    return markdown(head, 2, [(*key, str(len(levels)), *_means(levels)) for key, levels in ordered])


def _means(levels: Sequence[JudgedRate]) -> tuple[str, ...]:
    columns = [[abs(error) for error in column] for column in zip(*(each.errors for each in levels), strict=True)]
    ttft_p50, ttft_p95, e2e_p50, e2e_p95 = columns
    values = (fmean(ttft_p50), fmean(ttft_p95), max(ttft_p95), fmean(e2e_p50), fmean(e2e_p95))
    return tuple(f"{value * 100:.1f} %" for value in values)


def queues_table(cases: Sequence[QueueCase], utilizations: Sequence[float] = UTILIZATIONS) -> str:
    """Return TTFT p95 of both simulators by case and share of saturation, in Markdown."""
    vidur, rows = read_queues(), list[tuple[str, ...]]()
    for case in cases:
        cells = [
            (_simulated(case, utilization).ttft_p95_ms, vidur[case.name, utilization].ttft_p95_ms)
            for utilization in utilizations
        ]
        rows.append((case.name, *(f"{ours:,.0f} / {theirs:,.0f} ms" for ours, theirs in cells)))
    return markdown(("TTFT p95: Seatrial / Vidur", *(f"{share:.0%}" for share in utilizations)), 1, rows)


def _simulated(case: QueueCase, utilization: float) -> QueueFigures:
    done, _ = simulate_open(case.copy, case.due_s(utilization), REQUESTS - FIRST_MEASURED - 1)
    measured = [each for each in done if FIRST_MEASURED <= each.row < REQUESTS - FIRST_MEASURED]
    return figures_of([(each.first_token_s - each.due_s, each.last_token_s - each.due_s) for each in measured])


if __name__ == "__main__":
    main()
