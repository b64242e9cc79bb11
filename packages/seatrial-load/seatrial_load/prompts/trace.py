"""Recorded traffic, to be replayed: when requests came, and how long they and their answers were.

The prompts are made up, of the recorded lengths; blocks that were equal in the recording are equal here. Formats and
their sources: see `trace_rows`.
"""

from __future__ import annotations

import json
import math
from array import array
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from seatrial_load.prompts.line_problems import LineProblems, why_not_json
from seatrial_load.prompts.synthetic import word_count, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TextIO


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


RULE: Final = "SEA510"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A recording, in order of time; 24 bytes of memory a request without its blocks.

    Attributes:
        due_s: When each request came, from the first one on.
        tokens_in: Length of each prompt.
        tokens_out: Length of each answer.
        blocks: The blocks of each prompt; empty when the recording doesn't tell.
        skipped: Recorded requests without a prompt or an answer: failures of the service that was recorded.
    """

    due_s: array[float]
    tokens_in: array[int]
    tokens_out: array[int]
    blocks: tuple[tuple[int, ...], ...]
    skipped: int

    def __len__(self) -> int:
        return len(self.due_s)

    @property
    def tokens_in_mean(self) -> float:
        """Mean length of a prompt."""
        return sum(self.tokens_in) / len(self)

    @property
    def tokens_out_mean(self) -> float:
        """Mean length of an answer."""
        return sum(self.tokens_out) / len(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePrompts:
    """Made-up prompts of the recorded lengths.

    Attributes:
        trace: The recording.
        seed: Another seed gives prompts that share nothing with these.
        words_per_token: As in `SyntheticPrompts`.
        first: The number of the request that takes the trace's first row: so many were sent before the replay. After
            the last row comes the first again.
    """

    trace: Trace
    seed: str
    words_per_token: float = 1.0
    first: int = 0

    def content(self, index: int) -> str:
        """Write the prompt of the request with this number: the recorded blocks, then words of its own."""
        row = self._row(index)
        total = word_count(self.trace.tokens_in[row], self.words_per_token)
        drawn: list[str] = []
        for block in self.trace.blocks[row] if self.trace.blocks else ():
            drawn += words(f"{self.seed}:block {block}", word_count(BLOCK_TOKENS, self.words_per_token))
        own = words(f"{self.seed}:{index}", total - len(drawn)) if len(drawn) < total else []
        return " ".join(drawn[:total] + own)

    def output_tokens(self, index: int) -> int:
        """Return the recorded length of the answer."""
        return self.trace.tokens_out[self._row(index)]

    def input_tokens(self, index: int) -> int:
        """Return the recorded length of the prompt."""
        return self.trace.tokens_in[self._row(index)]

    def _row(self, index: int) -> int:
        return (index - self.first) % len(self.trace)


def read_trace(path: Path) -> Trace:
    """Read a trace; a name that ends in `.csv` is CSV, any other JSON lines.

    Raises:
        BenchError: SEA510, with every bad line.
    """
    problems = LineProblems(str(path), RULE)
    reading = _Reading()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reading.take((csv_rows if path.suffix.lower() == ".csv" else jsonl_rows)(file, problems))
    except OSError as unread:
        problems.note(0, f"can't be read: {unread.strerror}")
    except UnicodeDecodeError as binary:
        problems.note(0, f"not UTF-8: {binary.reason}")
    else:
        if not reading.at_s and not problems:
            problems.note(0, "no request has a prompt and an answer")
    problems.raise_if_any()
    return reading.trace()


class _Reading:
    def __init__(self) -> None:
        self.at_s = array("d")
        self.skipped = 0
        self._tokens_in, self._tokens_out = array("Q"), array("Q")
        self._blocks: list[tuple[int, ...]] = []

    def take(self, rows: Iterable[TraceRow]) -> None:
        for row in rows:
            if row.tokens_in and row.tokens_out:
                self.at_s.append(row.at_s)
                self._tokens_in.append(row.tokens_in)
                self._tokens_out.append(row.tokens_out)
                self._blocks.append(row.blocks)
            else:
                self.skipped += 1

    def trace(self) -> Trace:
        """Return what was read in order of time: a log is often written when answers end."""
        order = sorted(range(len(self.at_s)), key=self.at_s.__getitem__)
        start_s = self.at_s[order[0]]
        return Trace(
            due_s=array("d", [self.at_s[row] - start_s for row in order]),
            tokens_in=array("Q", [self._tokens_in[row] for row in order]),
            tokens_out=array("Q", [self._tokens_out[row] for row in order]),
            blocks=tuple(self._blocks[row] for row in order) if any(self._blocks) else (),
            skipped=self.skipped,
        )
