"""The rows of recorded traffic: JSON lines in Mooncake's columns, CSV in Mooncake's, BurstGPT's or Azure's."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from seatrial_load.prompts.line_problems import why_not_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from seatrial_load.prompts.line_problems import LineProblems


RULE: Final = "SEA510"
BLOCK_TOKENS: Final = 512
MAX_TOKENS: Final = 1_000_000_000
_MANY_DIGITS: Final = 10
_Unit: TypeAlias = Literal["ms", "s", "date"]


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """How a recorder names its columns, and the unit of its times."""

    time: str
    input: str
    output: str
    unit: _Unit


SPELLINGS: Final = (
    TraceColumns("timestamp", "input_length", "output_length", "ms"),
    TraceColumns("Timestamp", "Request tokens", "Response tokens", "s"),
    TraceColumns("TIMESTAMP", "ContextTokens", "GeneratedTokens", "date"),
)


class TraceRow(NamedTuple):
    """One recorded request: its time in seconds (of any zero), its lengths, and the blocks of its prompt if told."""

    at_s: float
    tokens_in: int
    tokens_out: int
    blocks: tuple[int, ...]


def jsonl_rows(file: TextIO, problems: LineProblems) -> Iterator[TraceRow]:
    """Read JSON lines; note what is wrong with a line instead of returning it."""
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            document: object = json.loads(line.strip())
        except (ValueError, RecursionError) as malformed:
            problems.note(number, why_not_json(malformed))
            continue
        if isinstance(document, dict):
            yield from _row_of(document, SPELLINGS[0], number, problems)
        else:
            problems.note(number, "not a JSON object")


def csv_rows(file: TextIO, problems: LineProblems) -> Iterator[TraceRow]:
    """Read CSV with a line of column names; note what is wrong with a line instead of returning it."""
    import csv  # noqa: PLC0415 (costs 10 ms; only needed where a trace is CSV)

    reader = csv.DictReader(file)
    spelling = _spelling_of(reader.fieldnames or (), problems)
    if spelling is None:
        return
    try:
        for cells in reader:
            yield from _row_of(cells, spelling, reader.line_num, problems)
    except csv.Error as malformed:
        problems.note(reader.line_num, f"not CSV: {malformed}")


def _spelling_of(columns: Sequence[str], problems: LineProblems) -> TraceColumns | None:
    for spelling in SPELLINGS:
        if {spelling.time, spelling.input, spelling.output} <= set(columns):
            return spelling
    known = "; or ".join(f"{spelling.time}, {spelling.input}, {spelling.output}" for spelling in SPELLINGS)
    problems.note(1, f"the columns are {', '.join(columns) or 'none'}", hint=f"required: {known}")
    return None


def _row_of(
    cells: Mapping[str, object], spelling: TraceColumns, line: int, problems: LineProblems
) -> Iterator[TraceRow]:
    at_s = _seconds(cells.get(spelling.time), spelling.unit)
    tokens_in, tokens_out = whole_count(cells.get(spelling.input)), whole_count(cells.get(spelling.output))
    blocks = _blocks(cells.get("hash_ids"))
    if at_s is None or tokens_in is None or tokens_out is None or blocks is None:
        _note_wrong(cells, spelling, line, problems)
    elif len(blocks) > math.ceil(tokens_in / BLOCK_TOKENS):
        message = f"{len(blocks)} blocks of {BLOCK_TOKENS} tokens are more than {tokens_in} tokens"
        problems.note(line, message, field="hash_ids")
    else:
        yield TraceRow(at_s, tokens_in, tokens_out, blocks)


def _note_wrong(cells: Mapping[str, object], spelling: TraceColumns, line: int, problems: LineProblems) -> None:
    time = "a date and time" if spelling.unit == "date" else f"a number of {spelling.unit}"
    for field, right, wanted in (
        (spelling.time, _seconds(cells.get(spelling.time), spelling.unit), time),
        (spelling.input, whole_count(cells.get(spelling.input)), "a whole number from 0"),
        (spelling.output, whole_count(cells.get(spelling.output)), "a whole number from 0"),
        ("hash_ids", _blocks(cells.get("hash_ids")), "a list of whole numbers"),
    ):
        value = cells.get(field)
        if right is None:
            message = "missing" if value is None else f"{json.dumps(value)[:60]} is not {wanted}"
            problems.note(line, message, field=field)


def _seconds(value: object, unit: _Unit) -> float | None:
    if unit == "date":
        return _of_date(value)
    number = _number(value)
    if number is None:
        return None
    return number / 1000 if unit == "ms" else number


def seconds_of_ms(value: object) -> float | None:
    """Return a time in milliseconds, as Mooncake's traces have it, in seconds; None for what is none."""
    return _seconds(value, "ms")


def _of_date(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        said = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return (said if said.tzinfo else said.replace(tzinfo=UTC)).timestamp()


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def whole_count(value: object) -> int | None:
    """Return a number of tokens, from 0; None for what is none."""
    if isinstance(value, str) and len(value) < _MANY_DIGITS and value.isascii() and value.isdigit():
        return int(value)  # nearly every cell; traces have millions
    number = _number(value)
    if number is None or not 0 <= number <= MAX_TOKENS or number != int(number):
        return None
    return int(number)


def _blocks(value: object) -> tuple[int, ...] | None:
    if value is None:
        return ()
    if not isinstance(value, list):
        return None
    return tuple(value) if all(isinstance(number, int) for number in value) else None
