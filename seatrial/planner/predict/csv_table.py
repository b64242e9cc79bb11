"""The table that `seatrial predict` writes: the columns that came, and what is predicted of each row."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.planner.predict import csv_optimization
from seatrial.planner.predict.csv_predictions import predict_csv_row
from seatrial.planner.predict.csv_rows import COUNTS, as_number
from seatrial_base.table import without_formula

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.predict.csv_predictions import Form, RowPrediction
    from seatrial.planner.predict.csv_rows import CsvRow, Load
    from seatrial.planner.predict.steady import SteadyLevel
    from seatrial_base.findings import Finding


Cell = str | float | int | None

PREDICTED = (
    "predicted_throughput_tok_s",
    "predicted_latency_ms_per_token",
    "predicted_limit",
    "predicted_throughput_low_tok_s",
    "predicted_throughput_high_tok_s",
    "predicted_latency_low_ms_per_token",
    "predicted_latency_high_ms_per_token",
    "uncertainty",
)
STEADY = (
    "predicted_ttft_mean_ms",
    "predicted_tpot_mean_ms",
    "predicted_e2e_mean_ms",
    "predicted_e2e_p50_ms",
    "predicted_e2e_p90_ms",
)
OPTIMIZATION = "predicted_optimization"
NOTE = "predicted_note"
ERROR = "predicted_error"
_DIGITS = 6  # significant ones; the band says how many mean something


@dataclass(frozen=True, slots=True)
class CsvTable:
    """Columns in their order, and the cells of each row; a number that is not there is `None`.

    Attributes:
        columns: Those that came, then those of the prediction.
        rows: Cells by column.
        unanswered: Rows that could not be predicted; their `predicted_error` says why.
    """

    columns: tuple[str, ...]
    rows: tuple[dict[str, Cell], ...]
    unanswered: int


def answered(columns: Sequence[str], rows: Sequence[CsvRow], form: Form, load: Load = "published") -> CsvTable:
    """Predict every row that can be read; columns of an earlier prediction are written anew."""
    optimized = (OPTIMIZATION,) if any(name in columns for name in csv_optimization.COLUMNS) else ()
    noted = (NOTE,) if any(row.asked and row.asked.guessed for row in rows) else ()
    predicted = (*PREDICTED, *(STEADY if load == "steady" else ()), *optimized, *noted, ERROR)
    kept = (*columns, *(name for name in predicted if name not in columns))
    stale = dict.fromkeys(name for name in (*PREDICTED, *STEADY, OPTIMIZATION, NOTE, ERROR) if name in kept)
    written = tuple({**row.cells, **stale, **_cells(row, form, load)} for row in rows)
    return CsvTable(kept, written, sum(row.asked is None for row in rows))


def _cells(row: CsvRow, form: Form, load: Load) -> dict[str, Cell]:
    if row.asked is None:
        return {ERROR: "; ".join(_told(problem) for problem in row.problems)}
    found = predict_csv_row(row.asked, form, load)
    cells = _predicted(found) | (_steady(found.steady) if found.steady else {})
    told = {OPTIMIZATION: row.optimization, NOTE: "; ".join(row.asked.guessed)}
    return cells | {name: text for name, text in told.items() if text}


def _told(problem: Finding) -> str:
    field = f"{problem.field}: " if problem.field else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.rule}: {field}{problem.message}{hint}"


def predictions_csv(table: CsvTable) -> str:
    """Write a table as CSV with a head; a number that is not there is an empty cell, and no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(without_formula, table.columns))
    writer.writerows([_guarded(row[name]) for name in table.columns] for row in table.rows)
    return text.getvalue()


def _guarded(cell: Cell) -> Cell:
    """Return a cell as it came; one that a spreadsheet would compute begins with a quote, a number stays one."""
    return without_formula(cell) if isinstance(cell, str) and as_number(cell) is None else cell


def as_json(table: CsvTable) -> str:
    """Write a table as a JSON array of objects; counts and predictions are numbers, all else text as it came."""
    rows = [{name: _typed(name, row[name]) for name in table.columns} for row in table.rows]
    return f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n"


def _typed(name: str, cell: Cell) -> Cell:
    """Return a count as a number, an empty one as `None`, and what is no number as it was written."""
    if name not in COUNTS or not isinstance(cell, str):
        return cell
    try:
        number = float(cell) if cell.strip() else None
    except ValueError:
        return cell
    if number is None or not math.isfinite(number):
        return None if number is None else cell
    return int(number) if number.is_integer() else number


def _predicted(found: RowPrediction) -> dict[str, Cell]:
    throughput, latency = found.output_tok_s, found.ms_per_token
    low, high = 1 / (1 + found.band.throughput), 1 + found.band.throughput
    quick, slow = 1 / (1 + found.band.latency), 1 + found.band.latency
    values = (
        _rounded(throughput),
        _rounded(latency),
        found.limit,
        _rounded(throughput, low),
        _rounded(throughput, high),
        _rounded(latency, quick),
        _rounded(latency, slow),
        found.band.kind,
    )
    return dict(zip(PREDICTED, values, strict=True))


def _steady(level: SteadyLevel) -> dict[str, Cell]:
    values = (level.ttft_ms, level.tpot_ms, level.e2e_ms, level.e2e_p50_ms, level.e2e_p90_ms)
    return dict(zip(STEADY, map(_rounded, values), strict=True))


def _rounded(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else float(f"{value * factor:.{_DIGITS}g}")
