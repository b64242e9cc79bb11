"""Rows of a GPU beside what the planner predicts of them: `python -m benchmarks.gpu.compare ROWS.jsonl`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.planner.gpu_rows import as_table, read_gpu_rows
from seatrial.planner.tables.predictions import answered
from seatrial.planner.tables.rows import read_rows
from seatrial_base.files import read_text
from seatrial_base.table import aligned_lines, number_columns, table_of, text_columns
from seatrial_base.terminal import run_command_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

FIGURES = {
    "tok/s": ("output_tok_s", "predicted_throughput_tok_s"),
    "TTFT ms": ("ttft_ms_mean", "predicted_ttft_mean_ms"),
    "TPOT ms": ("tpot_ms_mean", "predicted_tpot_mean_ms"),
}


def is_whole(row: Row) -> bool:
    """Return whether a level was measured to its end without a failure."""
    return not row["cut"] and not row["failed"] and bool(row["output_tok_s"])


def compared_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each row, measured and predicted with ln(predicted / measured), and the means of those that are whole."""
    columns, read = read_rows(as_table(rows).encode(), "rows")
    errors: dict[str, list[float]] = {name: [] for name in FIGURES}
    marks, lines = [], []
    for row, cells in zip(rows, answered(columns, read, "simulation", "steady").rows, strict=True):
        prediction: Row = {"predicted_error": "a burst is not predicted"} if row.get("arrival") else cells
        load = f"{row['concurrency']} {row['start']}" if row.get("concurrency") else f"{row['rate_per_s']}/s"
        line = [f"{row.get('run')}", row["model"], f"{load}, {row['input_tokens']} + {row['output_tokens']}"]
        for name, figure in FIGURES.items():
            pair, error = _pair(row, prediction, *figure)
            line += pair
            errors[name] += [abs(error)] if error is not None and is_whole(row) else []
        marks.append(_mark(row, prediction))
        failed = row["failed"] and f"{row['failed']} requests failed"
        why = row["cut"] or failed or prediction["predicted_error"] or prediction["predicted_limit"]
        lines.append([*line, marks[-1], f"{why:.80}"])
    yield from dict.fromkeys(f"{row['instance_type']}, {row['engine']} {row['engine_version']}" for row in rows)
    numbers = number_columns(*(label for name in FIGURES for label in (name, "predicted", "ln")))
    head = (*text_columns("run", "model", "load"), *numbers, *text_columns("tok/s in band", "limit, or problem"))
    yield from aligned_lines(table_of(head, lines))
    for name, values in ((name, values) for name, values in errors.items() if values):
        yield f"{name}: mean |ln| of {len(values)} levels {math.fsum(values) / len(values):.3f}"
    yield f"inside the band: {marks.count('yes')} of {len(marks) - marks.count('–')}"


def _pair(row: Row, prediction: Row, measured: str, predicted: str) -> tuple[list[str], float | None]:
    """Return a measured figure, its prediction and ln(predicted / measured) as texts, and the last as a number."""
    was, now = row.get(measured), prediction.get(predicted)
    error = math.log(now / was) if was and now else None
    texts = [f"{float(f'{value:.4g}'):,g}" if value else "–" for value in (was, now)]
    return [*texts, "–" if error is None else f"{error:+.2f}"], error


def _mark(row: Row, prediction: Row) -> str:
    """Return whether the measured throughput is inside the band; a dash where nothing can be compared."""
    low, high = (prediction.get(f"predicted_throughput_{end}_tok_s") for end in ("low", "high"))
    if not low or not is_whole(row):
        return "–"
    return "yes" if low <= row["output_tok_s"] <= high else "no"


def main() -> int:
    """Print the comparison of a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.compare", description=__doc__)
    parser.add_argument("rows", type=Path, help="rows.jsonl of `python -m benchmarks.gpu`")
    file = parser.parse_args().rows
    print("\n".join(compared_lines(read_gpu_rows(read_text(file), file.as_posix()))))
    return 0


if __name__ == "__main__":
    run_command_line(main)
