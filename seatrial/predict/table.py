"""Writes the table of `seatrial predict`: the rows as they were, with what is predicted of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from seatrial.catalog import engines
from seatrial.errors import SpecError
from seatrial.predict.answer import answer
from seatrial.predict.cells import COUNTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.catalog.engines import Engine
    from seatrial.predict.answer import Answer, Form
    from seatrial.predict.rows import Row

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
_DIGITS = 6  # significant ones; the band says how many mean something


@dataclass(frozen=True, slots=True)
class Table:
    """Columns in their order, and the cells of each row; a number that is not there is `None`."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Cell], ...]


def read_engine(text: str) -> tuple[Engine, str]:
    """Read an engine as `tgi-1.1`; return its facts and its version.

    Raises:
        SpecError: SEA223 when there is no such engine.
    """
    family, _, version = text.partition("-")
    for known in get_args(engines.Family):
        if family == known and version[:1].isdigit():
            return engines.find(known, version), version
    hint = f"write family and version, as `tgi-1.1` or `lmi-15`; families: {', '.join(get_args(engines.Family))}"
    raise SpecError.of("SEA223", f"the engine {text!r} is unknown", hint=hint, where="--engine")


def answered(columns: Sequence[str], rows: Iterable[Row], engine: Engine, version: str, form: Form) -> Table:
    """Predict every row; columns of an earlier prediction are written anew."""
    kept = (*columns, *(name for name in PREDICTED if name not in columns))
    predicted = ((row, _cells(answer(row.asked, engine, version, form))) for row in rows)
    return Table(kept, tuple({**row.cells, **cells} for row, cells in predicted))


def as_csv(table: Table) -> str:
    """Write a table as CSV with a head; a number that is not there is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, table.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.rows)
    return text.getvalue()


def as_json(table: Table) -> str:
    """Write a table as a JSON array of objects; counts and predictions are numbers, all else text as it came."""
    rows = [{name: _typed(name, row[name]) for name in table.columns} for row in table.rows]
    return f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n"


def _typed(name: str, cell: Cell) -> Cell:
    if name not in COUNTS or not isinstance(cell, str):
        return cell
    return int(float(cell)) if cell.strip() else None


def _cells(found: Answer) -> dict[str, Cell]:
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
        "measured" if found.band.measured else "assumed",
    )
    return dict(zip(PREDICTED, values, strict=True))


def _rounded(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else float(f"{value * factor:.{_DIGITS}g}")
