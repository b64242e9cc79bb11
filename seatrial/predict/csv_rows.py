"""Reads the table of `seatrial predict`: a deployment under a load each row, and every problem of every row at once."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from seatrial.catalog import instances, models
from seatrial.catalog.rows import nearest
from seatrial.errors import Problem, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.instances import Instance


# Column, default, least, most: what is absurd is refused, so that a row takes milliseconds and a typing error is told.
COUNTS: dict[str, tuple[int | None, int, int]] = {
    "tp_degree": (None, 1, 64),
    "instance_count": (1, 1, 1_000),
    "input_tokens": (None, 1, 1_000_000),
    "output_tokens": (None, 1, 100_000),
    "concurrency": (None, 1, 4_096),
    "copies_per_instance": (1, 1, 64),
    "max_num_seqs": (0, 1, 100_000),
    "batch_size": (1, 1, 4_096),
    "max_batch_delay_ms": (100, 0, 60_000),
}
WORDS = {"batching": ("continuous", "dynamic"), "quantization": ("", "fp8", "awq", "gptq")}


class Cells:
    """One row's cells on the way to numbers; what is wrong gathers in `problems`."""

    def __init__(self, cells: Mapping[str, str], where: str) -> None:
        self._cells, self._where = cells, where
        self.problems: list[Problem] = []

    def count(self, name: str) -> int:
        """Return a whole number; the default where the cell is left out, and 0 where it is wrong."""
        default, least, most = COUNTS[name]
        text = self._cells.get(name, "").strip()
        if not text and (default is not None or name not in self._cells):
            return default or 0
        if not text:
            return self._wrong(name, "SEA222", "the cell is empty", f"write a whole number from {least:,} to {most:,}")
        try:
            number = float(text)
        except ValueError:
            number = 0.5
        if not number.is_integer():
            return self._wrong(name, "SEA222", f"{_quoted(text)} is not a whole number")
        if not least <= number <= most:
            return self._wrong(name, "SEA222", f"{_quoted(text)} is not between {least:,} and {most:,}")
        return int(number)

    def word(self, name: str) -> str:
        """Return one of the words that a column may hold; the first where the cell is left out or wrong."""
        allowed = WORDS[name]
        text = self._cells.get(name, "").strip().lower()
        if text and text not in allowed:
            self._wrong(name, "SEA222", f"{_quoted(text)} is not one of {', '.join(word for word in allowed if word)}")
        return text if text in allowed else allowed[0]

    def architecture(self) -> Architecture | None:
        """Return the model."""
        name = self._named("model")
        found = _model(name) if name else None
        if name and found is None:
            near = ", ".join(models.nearest(name))
            hint = (
                f"similar in the catalog: {near}"
                if near
                else "write a hub id of the catalog, or a name as `Llama 2 7B`"
            )
            self._wrong("model", "SEA223", f"the architecture of {_quoted(name)} is unknown", hint)
        return found

    def instance(self) -> Instance | None:
        """Return the instance type."""
        name = self._named("instance_type")
        found = instances.find(name) if name else None
        if name and found is None:
            near = ", ".join(nearest(name, (instance.instance_type for instance in instances.every())))
            hint = f"similar in the catalog: {near}" if near else "write a SageMaker instance type, as `ml.g5.2xlarge`"
            self._wrong("instance_type", "SEA223", f"{_quoted(name)} is not in the catalog", hint)
        if found is not None and found.link == "neuron":
            self._wrong("instance_type", "SEA223", f"{found.accelerator} is AWS Neuron, which is not supported")
        elif found is not None and (found.flops_16bit is None or found.memory_bandwidth_bytes_s is None):
            message = f"FLOPS and memory bandwidth of the {found.accelerator} are unknown"
            self._wrong("instance_type", "SEA223", message)
        return found

    def check_degree(self, instance: Instance | None, degree: int, copies: int) -> None:
        """Check that the copies have accelerators enough."""
        if instance is not None and degree * max(1, copies) > instance.accelerator_count:
            what = f"{degree}" if copies <= 1 else f"{copies} copies of {degree}"
            has = f"{instance.instance_type} has {instance.accelerator_count}"
            self._wrong("tp_degree", "SEA224", f"{what} accelerators are needed, but {has}")

    def _named(self, name: str) -> str:
        text = self._cells.get(name, "").strip()
        if not text and name in self._cells:
            self._wrong(name, "SEA222", "the cell is empty")
        return text

    def _wrong(self, name: str, rule: str, message: str, hint: str = "") -> int:
        self.problems.append(Problem(self._where, name, rule, message, hint))
        return 0


@cache
def _model(name: str) -> Architecture | None:
    return models.find_by_name(name)


def _quoted(text: str) -> str:
    shown = text if len(text) <= 40 else f"{text[:39]}…"  # noqa: PLR2004 (a message stays on its line)
    return f"{shown!r}"


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
class CsvRow:
    """One row: its cells as they were written, and what they ask."""

    cells: Mapping[str, str]
    asked: Asked


def read_rows(content: bytes, where: str) -> tuple[tuple[str, ...], list[CsvRow]]:
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
            "SEA220", "the table is empty", hint=f"give a header with {', '.join(REQUIRED)}", where=where
        )
    (line, head), *body = records
    columns = tuple(name.strip() for name in head)
    problems = _head_problems(columns, f"{where}:{line}")
    rows: list[CsvRow] = []
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
    return missing + [Problem(where, name, "SEA221", "duplicate column") for name in twice]


def _read(columns: tuple[str, ...], values: list[str], where: str, problems: list[Problem]) -> CsvRow | None:
    """Read one record; add what is wrong with it to the problems."""
    if len(values) != len(columns):
        message = f"the row has {len(values)} fields, the header {len(columns)}"
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
    return CsvRow(cells, asked)
