"""Reads the table of `seatrial predict`: a deployment under a load each row, and every problem of every row at once."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.errors import Problem, SpecError
from seatrial.predict.cells import COUNTS, WORDS, Cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.instances import Instance

REQUIRED = ("model", "instance_type", "tp_degree", "input_tokens", "output_tokens", "concurrency")


@dataclass(frozen=True, slots=True)
class Asked:
    """What one row asks: a deployment and its load.

    Attributes:
        architecture: The model.
        instance: The instance type.
        degree: Accelerators of one copy.
        instance_count: Instances behind the endpoint.
        copies_per_instance: Copies that share an instance.
        input_tokens: Prompt length of a request.
        output_tokens: Generated length of a request.
        concurrency: Requests in flight on the endpoint.
        max_num_seqs: Sequences that the engine batches at most; 0 for its default.
        batching: `dynamic` waits for a batch and keeps it until its longest request ends.
        batch_size: Requests of a dynamic batch at most.
        max_batch_delay_ms: How long the first request of a dynamic batch waits for others.
        quantization: Quantization of the weights.
    """

    architecture: Architecture
    instance: Instance
    degree: int
    instance_count: int
    copies_per_instance: int
    input_tokens: int
    output_tokens: int
    concurrency: int
    max_num_seqs: int
    batching: Literal["continuous", "dynamic"]
    batch_size: int
    max_batch_delay_ms: int
    quantization: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its cells as they were written, and what they ask."""

    cells: Mapping[str, str]
    asked: Asked


def read_rows(content: bytes, where: str) -> tuple[tuple[str, ...], list[Row]]:
    """Read a CSV table; return its columns and its rows, both in their order.

    Args:
        content: UTF-8 text with a head, with or without a byte order mark.
        where: Name of the file, for messages.

    Raises:
        SpecError: SEA220 to SEA224, every problem with its line and column.
    """
    records = _records(content, where)
    if not records:
        raise SpecError.of(
            "SEA220", "the table is empty", hint=f"it needs the columns {', '.join(REQUIRED)}", where=where
        )
    (line, head), *body = records
    columns = tuple(name.strip() for name in head)
    problems = _head_problems(columns, f"{where}:{line}")
    rows: list[Row] = []
    for number, values in body:
        row = _read(columns, values, f"{where}:{number}", problems)
        if row is not None:
            rows.append(row)
    if problems:
        raise SpecError(problems)
    return columns, rows


def _records(content: bytes, where: str) -> list[tuple[int, list[str]]]:
    """Return the records of a CSV text, blank ones left out, each with the line on which it starts."""
    records, line = [], 1
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        for values in reader:
            if any(value.strip() for value in values):
                records.append((line, values))
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise SpecError.of(
            "SEA220", f"the table is not UTF-8: {error.reason} at byte {error.start}", where=where
        ) from None
    except csv.Error as error:
        raise SpecError.of("SEA220", f"the table is not CSV: {error}", where=f"{where}:{line}") from None
    return records


def _head_problems(columns: tuple[str, ...], where: str) -> list[Problem]:
    missing = [
        Problem(where, name, "SEA221", "the column is missing", f"the table needs {', '.join(REQUIRED)}")
        for name in REQUIRED
        if name not in columns
    ]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    return missing + [Problem(where, name, "SEA221", "the column is written twice") for name in twice]


def _read(columns: tuple[str, ...], values: list[str], where: str, problems: list[Problem]) -> Row | None:
    """Read one record; add what is wrong with it to the problems."""
    if len(values) != len(columns):
        message = f"the row has {len(values)} fields, the head {len(columns)}"
        problems.append(Problem(where, "", "SEA222", message, "quote a field that holds a comma"))
        return None
    cells = dict(zip(columns, values, strict=True))
    read = Cells(cells, where)
    counts = {name: read.count(name) for name in COUNTS}
    words = {name: read.word(name) for name in WORDS}
    architecture, instance = read.architecture(), read.instance()
    read.check_degree(instance, counts["tp_degree"], counts["copies_per_instance"])
    problems += read.problems
    if read.problems or architecture is None or instance is None or not all(name in columns for name in REQUIRED):
        return None
    asked = Asked(
        architecture=architecture,
        instance=instance,
        degree=counts.pop("tp_degree"),
        batching="dynamic" if words["batching"] == "dynamic" else "continuous",
        quantization=words["quantization"] or None,
        **counts,
    )
    return Row(cells, asked)
