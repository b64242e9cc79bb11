"""The lengths of a file of requests: JSON lines or CSV, with the tokens of each prompt and answer.

    {"input_tokens": 812, "output_tokens": 120}
    {"prompt": "Why is the sea salt?", "input_tokens": 6, "output_tokens": 128, "timestamp": 1500}
    {"timestamp": 0, "input_length": 812, "output_length": 120, "hash_ids": [0, 1]}
    {"turns": [{"input_tokens": 812, "output_tokens": 120}, {"input_tokens": 30, "output_tokens": 90, "delay": 2000}]}

CSV has Mooncake's, BurstGPT's or Azure's columns. A line with `turns` is a conversation: the tokens that each turn
adds, and how many milliseconds its user thinks before. The texts of users are not read, but their lengths, and the
times where they are needed. Of a large file a sample is taken, whose lengths are as those of the file: requests in
order of their tokens, evenly spaced. With times it is the busiest part of the file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeGuard

from seatrial_base.bounds import LONGEST_DELAY_S
from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_base.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TextIO


MAX_LISTED = 100
MOST_BYTES: Final = 256 * MIB  # of one object that fills several lines: it is read whole


class LineProblems:
    """Collects the problems of the lines of a file."""

    __slots__ = ("_path", "_problems", "_rule", "_unlisted")

    def __init__(self, path: str, rule: str) -> None:
        self._path = path
        self._rule = rule
        self._problems: list[Finding] = []
        self._unlisted = 0

    def __bool__(self) -> bool:
        """Return whether there is a problem."""
        return bool(self._problems)

    def note(self, line: int, message: str, *, field: str = "", hint: str = "") -> None:
        """Note one problem of a line; 0 is the file as a whole."""
        if len(self._problems) == MAX_LISTED:
            self._unlisted += 1
            return
        where = f"{self._path}:{line}" if line else self._path
        self._problems.append(Finding(self._rule, Place.at(where, field), message, hint))

    def raise_if_any(self) -> None:
        """Raise the problems.

        Raises:
            BenchError: With every problem, or the first hundred and the number of the others.
        """
        if self._unlisted:
            more = Finding(self._rule, Place.at(self._path), f"and {self._unlisted:,} more problems")
            raise BenchError([*self._problems, more])
        if self._problems:
            raise BenchError(self._problems)


def why_not_json(malformed: ValueError | RecursionError) -> str:
    """Return why a line is no JSON, with the column; the line's number is part of the problem's place."""
    match malformed:
        case json.JSONDecodeError():
            return f"not JSON: {malformed.msg} (column {malformed.colno})"
        case UnicodeDecodeError():
            return f"not UTF-8: {malformed.reason} (byte {malformed.start + 1})"
    return "not readable JSON: nested too deeply, or a number has too many digits"


def is_chat(messages: object) -> TypeGuard[list[dict[str, object]]]:
    """Return whether a value is a list of messages, each with a role and a content."""
    if not isinstance(messages, list) or not messages:
        return False
    return all(isinstance(turn, dict) and isinstance(turn.get("role"), str) and "content" in turn for turn in messages)


RULE: Final = "SEA510"
BLOCK_TOKENS: Final = 512
MAX_TOKENS: Final = 1_000_000_000
COUNT_WORDS: Final = f"a whole number from 0 to {MAX_TOKENS:,}"
_MANY_DIGITS: Final = 10
_Unit: TypeAlias = Literal["ms", "s", "date"]


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """How a recorder names its columns, and the unit of its times."""

    time: str
    input: str
    output: str
    unit: _Unit


TRACE_COLUMNS: Final = (
    TraceColumns("timestamp", "input_length", "output_length", "ms"),
    TraceColumns("Timestamp", "Request tokens", "Response tokens", "s"),
    TraceColumns("TIMESTAMP", "ContextTokens", "GeneratedTokens", "date"),
)


class TraceRow(NamedTuple):
    """One recorded request: its time in seconds (of any zero), its lengths, and its prompt's blocks if recorded."""

    at_s: float
    tokens_in: int
    tokens_out: int
    blocks: tuple[int, ...]


def objects_of(file: TextIO, problems: LineProblems, first: int = 1) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield each line's object; a file whose first line is a bracket alone is one object, or a list of them."""
    for number, line in enumerate(file, start=first):
        if not line.strip():
            continue
        try:
            document: object = json.loads(line.strip())
        except (ValueError, RecursionError) as malformed:
            rest = file.read(MOST_BYTES) if number == 1 and line.strip() in {"{", "["} else ""
            try:
                document = json.loads(line + rest)
            except (ValueError, RecursionError):
                problems.note(number, why_not_json(malformed))
                yield from objects_of(StringIO(rest), problems, number + 1)
                continue
        for one in document if number == 1 and document and isinstance(document, list) else [document]:
            if isinstance(one, dict):
                yield number, one
            else:
                problems.note(number, "not a JSON object")


def jsonl_rows(file: TextIO, problems: LineProblems) -> Iterator[TraceRow]:
    """Read JSON lines; note the problem of a wrong line instead of returning it."""
    for number, document in objects_of(file, problems):
        yield from _trace_row_of(document, TRACE_COLUMNS[0], number, problems)


def csv_rows(file: TextIO, problems: LineProblems) -> Iterator[TraceRow]:
    """Read CSV with a line of column names; note the problem of a wrong line instead of returning it."""
    import csv  # noqa: PLC0415 (costs 10 ms; only needed where a trace is CSV)

    reader = csv.DictReader(file)
    columns = reader.fieldnames or ()
    names = [(spelling.time, spelling.input, spelling.output) for spelling in TRACE_COLUMNS]
    rows = zip(TRACE_COLUMNS, names, strict=True)
    spelling = next((row for row, known in rows if {*known} <= {*columns}), None)
    if spelling is None:
        required = "; or ".join(map(", ".join, names))
        problems.note(1, f"the columns are {', '.join(columns) or 'none'}", hint=f"required: {required}")
        return
    try:
        for cells in reader:
            yield from _trace_row_of(cells, spelling, reader.line_num, problems)
    except csv.Error as malformed:
        problems.note(reader.line_num, f"not CSV: {malformed}")


def _trace_row_of(
    cells: Mapping[str, object], spelling: TraceColumns, line: int, problems: LineProblems
) -> Iterator[TraceRow]:
    at_s = seconds_of(cells.get(spelling.time), spelling.unit)
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
    for name, right, wanted in (
        (spelling.time, seconds_of(cells.get(spelling.time), spelling.unit), time),
        (spelling.input, whole_count(cells.get(spelling.input)), COUNT_WORDS),
        (spelling.output, whole_count(cells.get(spelling.output)), COUNT_WORDS),
        ("hash_ids", _blocks(cells.get("hash_ids")), "a list of whole numbers"),
    ):
        value = cells.get(name)
        if right is None:
            message = "missing" if value is None else f"{json.dumps(value)[:60]} is not {wanted}"
            problems.note(line, message, field=name)


def seconds_of(value: object, unit: _Unit) -> float | None:
    """Return a time of a recording in seconds; None for what is none."""
    if unit == "date":
        if not isinstance(value, str):
            return None
        try:
            date = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    number = _number(value)
    if number is None:
        return None
    return number / 1000 if unit == "ms" else number


def seconds_of_ms(value: object) -> float | None:
    """Return a time in milliseconds, as Mooncake's traces have it, in seconds; None for what is none."""
    return seconds_of(value, "ms")


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


# Of a sample: they are part of a trial's request, in some 6 KB.
MOST_PAIRS: Final = 512
SPELLINGS: Final = (("input_tokens", "output_tokens"), ("input_length", "output_length"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The sample of a file of requests; empty without a file.

    Attributes:
        pairs: Prompt and answer of each request, in tokens.
        times_s: When each came, in seconds from the first, ascending; empty where times were not requested.
        turns: How many turns each conversation has, whose turns are `pairs` in order; empty of single requests.
        delays_s: How long the user thought before each of them, in seconds; empty where no line has it.
        conversations_per_session: Those of an agent and its sub-agents.
    """

    pairs: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    times_s: tuple[float, ...] = field(default=(), repr=False)
    turns: tuple[int, ...] = field(default=(), repr=False)
    delays_s: tuple[float, ...] = field(default=(), repr=False)
    conversations_per_session: float = 1.0


class LengthRow(NamedTuple):
    """A request, or a turn: `opening` is whether it is the first of its line."""

    input_tokens: int
    output_tokens: int
    at_s: float | None = None
    delay_s: float = 0.0
    opening: bool = True


def read_dataset(path: Path, *, timed: bool = False) -> Dataset:
    """Read prompt and answer of every request, in tokens; of more than 512, a sample. Failed requests are left out.

    Args:
        path: A name that ends in `.csv` is CSV, any other JSON lines.
        timed: Whether the times are needed, too: every line must have one.

    Raises:
        BenchError: SEA510, with every bad line.
    """
    problems = LineProblems(path.as_posix(), RULE)
    kept: list[LengthRow] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = objects_of(file, problems)
            rows = (row for line, one in lines for row in _rows_of(one, line, problems, timed=timed))
            if path.suffix.lower() == ".csv":
                rows = (LengthRow(row.tokens_in, row.tokens_out, row.at_s) for row in csv_rows(file, problems))
            kept += (row for row in rows if min(row.input_tokens, row.output_tokens) > 0 or not row.opening)
    except OSError as unread:
        problems.note(0, f"can't be read: {unread.strerror}")
    except UnicodeDecodeError as binary:
        problems.note(0, f"not UTF-8: {binary.reason}")
    else:
        if not kept and not problems:
            problems.note(0, "no request has a prompt and an answer")
    problems.raise_if_any()
    if not all(row.opening for row in kept):
        return conversing(kept)
    return _busiest(kept) if timed else Dataset(pairs=sampled([row[:2] for row in kept]))


def conversing(rows: Sequence[LengthRow]) -> Dataset:
    """Return conversations; of more than 512 turns, some that have as many tokens as all of them, evenly spaced."""
    conversations: list[list[LengthRow]] = []
    for row in rows:
        if row.opening:
            conversations.append([])
        conversations[-1].append(row)
    most = max(1, MOST_PAIRS * len(conversations) // len(rows))
    if most < len(conversations):
        ordered = sorted(conversations, key=lambda turns: (sum(sum(turn[:2]) for turn in turns), turns))
        conversations = [ordered[(2 * place + 1) * len(ordered) // (2 * most)] for place in range(most)]
    taken = [turn for turns in conversations for turn in turns]
    return Dataset(
        pairs=tuple(turn[:2] for turn in taken),
        turns=tuple(map(len, conversations)),
        delays_s=tuple(turn.delay_s for turn in taken) if any(turn.delay_s for turn in taken) else (),
    )


def _busiest(rows: Sequence[LengthRow]) -> Dataset:
    """Return the requests in order of time; of more than 512, those 512 that came in the shortest time."""
    ordered = sorted(((row.at_s or 0.0, row[:2]) for row in rows), key=lambda row: row[0])
    last = min(MOST_PAIRS, len(ordered)) - 1
    first = min(range(len(ordered) - last), key=lambda place: ordered[place + last][0] - ordered[place][0])
    taken = ordered[first : first + last + 1]
    return Dataset(
        pairs=tuple(pair for _, pair in taken), times_s=tuple(round(at_s - taken[0][0], 3) for at_s, _ in taken)
    )


def sampled(pairs: Sequence[tuple[int, int]], most: int = MOST_PAIRS) -> tuple[tuple[int, int], ...]:
    """Return at most `most` requests, as long as all of them: evenly spaced in order of their tokens."""
    if len(pairs) <= most:
        return tuple(pairs)
    ordered = sorted(pairs, key=lambda pair: (sum(pair), pair))
    return tuple(ordered[(2 * place + 1) * len(ordered) // (2 * most)] for place in range(most))


def _rows_of(document: dict[str, object], line: int, problems: LineProblems, *, timed: bool) -> Iterator[LengthRow]:
    if "turns" not in document:
        yield from _row_of(document, line, problems, timed=timed)
        return
    turns = document["turns"]
    if timed:
        problems.note(line, "recorded arrivals have no conversations", field="turns", hint="write arrivals: closed")
    elif not isinstance(turns, list) or not 0 < len(turns) <= MOST_PAIRS:
        problems.note(line, f"not a list of 1 to {MOST_PAIRS} turns", field="turns")
    else:
        for place, turn in enumerate(turns):
            yield from _turn_of(turn, line, problems, opening=place == 0)


def _turn_of(turn: object, line: int, problems: LineProblems, *, opening: bool) -> Iterator[LengthRow]:
    if not isinstance(turn, dict):
        problems.note(line, "a turn is not an object", field="turns")
        return
    delay_s = seconds_of_ms(turn.get("delay", 0))
    if delay_s is None or not 0 <= delay_s <= LONGEST_DELAY_S:
        problems.note(line, f"not a number of ms from 0 to {LONGEST_DELAY_S * 1000:,}", field="delay")
        return
    for row in _row_of(turn, line, problems, timed=False):
        if min(row.input_tokens, row.output_tokens) < 1:
            problems.note(line, "a turn has no prompt or no answer", field="turns")
        yield row._replace(delay_s=delay_s, opening=opening)


def _row_of(document: dict[str, object], line: int, problems: LineProblems, *, timed: bool) -> Iterator[LengthRow]:
    names = next((names for names in SPELLINGS if any(name in document for name in names)), SPELLINGS[0])
    counts = [whole_count(document.get(name)) for name in names]
    prompt, answer = counts
    at_s = seconds_of_ms(document.get("timestamp")) if timed else None
    if timed and at_s is None:
        wrong = "missing" if "timestamp" not in document else "not a number of ms"
        problems.note(line, wrong, field="timestamp", hint="recorded arrivals need the time of every request, in ms")
    if prompt is not None and answer is not None:
        yield LengthRow(prompt, answer, at_s)
        return
    for name, count in zip(names, counts, strict=True):
        if count is None:
            value = document.get(name)
            wrong = "missing" if value is None else f"{json.dumps(value)[:60]} is not {COUNT_WORDS}"
            problems.note(
                line, wrong, field=name, hint=f"give {names[0]} and {names[1]}, counted by the model's tokenizer"
            )
