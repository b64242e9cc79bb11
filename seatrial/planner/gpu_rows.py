"""Rows of `python -m benchmarks.gpu`, a JSON line for each level: conditions by the columns of `seatrial predict`."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

from seatrial.planner.calibration import read_points
from seatrial.planner.tables.rows import read_rows
from seatrial.specs.architecture import read_architecture
from seatrial_base.catalog.engines import release_of
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.text import json_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seatrial.documents.calibration import MeasuredPoint
    from seatrial.documents.plan import Plan
    from seatrial.planner.tables.rows import CsvRow
    from seatrial.specs.load import LoadedSpec

_COLUMNS: Final = (
    *("model", "instance_type", "tp_degree", "input_tokens", "output_tokens", "concurrency", "rate_per_s", "start"),
    *("engine", "engine_version", "precision", "prefix_hit_rate", "output_tok_s", "ms_per_token"),
)
SIMULATED: Final = "(simulated)"
_NEEDED: Final = frozenset({"model", "instance_type", "input_tokens", "output_tokens", "cut", "failed", "output_tok_s"})
_NUMBERS: Final = ("failed", "output_tok_s", "ttft_ms_mean", "tpot_ms_mean", "ms_per_token_p90")


def read_gpu_rows(text: str, where: str) -> list[dict[str, Any]]:
    """Read JSON lines.

    Raises:
        SpecError: SEA407, a line is no row, or there is none.
    """
    try:
        rows = [json_document(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise SpecError.of("SEA407", f"a line is no JSON: {error}", where=where) from error
    known = [row for row in rows if isinstance(row, dict) and row.keys() >= _NEEDED]
    numbers = (row.get(name) for row in known for name in _NUMBERS)
    if len(known) < max(1, len(rows)) or not all(isinstance(number, int | float | None) for number in numbers):
        raise SpecError.of("SEA407", "a line is no row of `benchmarks.gpu`", where=where)
    return known


def as_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as a CSV of deployments and of measured points."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore")
    writer.writeheader()
    writer.writerows({**row, "ms_per_token": row.get("ms_per_token_p90")} for row in rows)
    return text.getvalue()


def gpu_points(text: str, where: str, loaded: LoadedSpec, plan: Plan) -> tuple[tuple[MeasuredPoint, ...], int]:
    """Return the points of the rows that were measured as the plan deploys, and how many were not.

    Raises:
        SpecError: SEA407 where a row can't be read; SEA408 where none is of this deployment, with all in which the
            nearest one differs.
    """
    rows = read_gpu_rows(text, where)
    if any(SIMULATED in str(row["instance_type"]) for row in rows):
        raise SpecError.of("SEA408", "the rows are of a simulated server, and calibrate nothing", where=where)
    read = read_rows(as_table(rows).encode(), where)[1]
    differs = [_differences(row, one, loaded, plan, where) for row, one in zip(rows, read, strict=True)]
    same = [row for row, differences in zip(rows, differs, strict=True) if not differences]
    if not same:
        nearest = min(differs, key=len)
        raise SpecError(nearest)
    return read_points(as_table(same), where), len(rows) - len(same)


def _differences(row: Mapping[str, Any], read: CsvRow, loaded: LoadedSpec, plan: Plan, where: str) -> Sequence[Finding]:
    spec, workload, instance = read.spec, loaded.endpoint.workload, find_instance(plan.instance_type.value)
    if spec is None or instance is None:
        return read.problems
    engines = ((spec.engine.family, spec.engine_version), (plan.engine.value, plan.engine_version.value))
    most, releases = plan.max_num_seqs.value, [".".join(map(str, release_of(*each) or each)) for each in engines]
    pairs = {
        "model": (spec.architecture.id, read_architecture(loaded).id),
        "instance_type": (spec.instance.accelerator, instance.accelerator),
        "tp_degree": (spec.degree, plan.tensor_parallel_degree.value),
        "precision": (spec.quantization or "16-bit", plan.quantization or "16-bit"),
        "engine_version": tuple(releases),
        "input_tokens": (spec.input_tokens, workload.input_tokens),
        "output_tokens": (spec.output_tokens, workload.output_tokens),
        "prefix_hit_rate": (round(spec.prefix_hit_rate, 2), round(workload.prefix_hit_rate, 2)),
        "start": (spec.start, loaded.endpoint.trial.start),
        "changed_options": (row.get("changed_options") or [], []),
        "cut": (row["cut"], ""),
        "failed": (row["failed"], 0),
        "concurrency": (max(spec.concurrency, most), most),
    }
    differs = {
        name: f"measured with {was}, the plan has {now or 'none'}" for name, (was, now) in pairs.items() if was != now
    }
    return [Finding("SEA408", Place.at(where, name), message) for name, message in differs.items()]
