"""The published cells that every tool is asked about, and the CSV that every tool answers with.

    python -m benchmarks.planner_accuracy.cells > ROWS.csv    # the rows that `seatrial predict` takes

Standard library only: a peer's own environment runs this module too.
"""

from __future__ import annotations

import csv
import sys
from bisect import bisect_left
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "tests" / "planner" / "data" / "llama_2_7b_tgi.csv"
PREDICTIONS = Path(__file__).parent / "predictions"
MODEL = "meta-llama/Llama-2-7b-hf"
MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the published table, without what was measured.

    Attributes:
        instance_type: SageMaker's name.
        tp_degree: Accelerators that the one copy is sharded over.
        input_tokens: Prompt length of a request.
        output_tokens: Generated length of a request.
        concurrency: Requests in flight, closed loop.
    """

    instance_type: str
    tp_degree: int
    input_tokens: int
    output_tokens: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a tool says of a cell; `None` where it says nothing, and then `note` says why.

    Attributes:
        throughput_tok_s: Output tokens per second of the endpoint.
        latency_ms_per_token: End-to-end latency over output tokens.
        note: What was special about the cell.
    """

    throughput_tok_s: float | None
    latency_ms_per_token: float | None
    note: str = ""


Serve: TypeAlias = "Callable[[Cell, int], float | None]"
"""A peer: output tok/s of one copy that serves a cell's requests in a batch of this size; `None`: it does not fit."""


def read_published() -> dict[Cell, Prediction]:
    """Return every cell with what was measured, in the table's order."""
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {
        cell_of(row): Prediction(float(row["throughput_tok_s"]), float(row["latency_ms_per_token"])) for row in rows
    }


def read_predictions(path: Path) -> dict[Cell, Prediction]:
    """Return a tool's answers from the columns that `seatrial predict --format csv` writes; others are ignored."""
    with path.open(encoding="utf-8", newline="") as file:
        return {cell_of(row): _prediction_of(row) for row in csv.DictReader(file)}


def cell_of(row: dict[str, str]) -> Cell:
    """Read the columns that name a cell.

    Raises:
        KeyError: A column is missing.
        ValueError: A number is none.
    """
    counts = {field.name: int(row[field.name]) for field in fields(Cell) if field.name != "instance_type"}
    return Cell(instance_type=row["instance_type"], **counts)


def closed_loop(serve: Serve, cell: Cell) -> Prediction:
    """Ask a peer that knows static batches about a closed loop.

    The batch is the concurrency, or the largest that the peer says fits; the rest queues. By Little's law the mean
    latency is concurrency / throughput x output tokens, whether or not a request queued.
    """
    answer = cache(lambda batch: serve(cell, batch))
    batch = cell.concurrency
    if answer(batch) is None:
        batch = bisect_left(range(1, batch), x=True, key=lambda size: answer(size) is None)
    throughput_tok_s = answer(batch) if batch else None
    if throughput_tok_s is None:
        return Prediction(None, None, "not one request fits, by this tool's account of memory")
    note = (
        ""
        if batch == cell.concurrency
        else f"a batch of {batch} fits, by this tool's account of memory; the rest queues"
    )
    return Prediction(throughput_tok_s, cell.concurrency / throughput_tok_s * MS_PER_S, note)


def write_peer(name: str, serve: Serve) -> None:
    """Ask a peer about every published cell and write `predictions/NAME.csv`."""
    answers = [(cell, closed_loop(serve, cell)) for cell in read_published()]
    path = PREDICTIONS / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, ({**_named(cell), **_columns(answer)} for cell, answer in answers))
    print(f"{path.relative_to(ROOT)}: {sum(answer.throughput_tok_s is not None for _, answer in answers)} cells")


def write_rows(file: TextIO, rows: Iterable[dict[str, str]]) -> None:
    """Write rows of equal keys as CSV, with a head."""
    table = list(rows)
    writer = csv.DictWriter(file, table[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)


def _named(cell: Cell) -> dict[str, str]:
    own = {name: str(value) for name, value in asdict(cell).items()}
    return {
        "model": MODEL,
        "instance_type": own.pop("instance_type"),
        "tp_degree": own.pop("tp_degree"),
        "instance_count": "1",
        **own,
    }


def _columns(answer: Prediction) -> dict[str, str]:
    return {
        "predicted_throughput_tok_s": _number(answer.throughput_tok_s),
        "predicted_latency_ms_per_token": _number(answer.latency_ms_per_token),
        "note": answer.note,
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _prediction_of(row: dict[str, str]) -> Prediction:
    throughput, latency = row["predicted_throughput_tok_s"], row["predicted_latency_ms_per_token"]
    return Prediction(float(throughput) if throughput else None, float(latency) if latency else None)


if __name__ == "__main__":
    write_rows(sys.stdout, map(_named, read_published()))
