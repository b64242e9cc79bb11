"""Recorded traffic, to be replayed: when requests came, and how long they and their answers were.

The prompts are made up, of the recorded lengths; blocks that were equal in the recording are equal here. Formats and
their sources: see `trace_rows`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.prompts.dataset import BLOCK_TOKENS, RULE, LineProblems, csv_rows, jsonl_rows
from seatrial_load.prompts.synthetic import word_count, words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seatrial_load.prompts.dataset import TraceRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A recording, in order of time; 24 bytes of memory a request without its blocks.

    Attributes:
        due_s: When each request came, from the first one on.
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
        first: The number of the request that takes the trace's first row: so many were sent before the replay. After
            the last row comes the first again.
    """

    trace: Trace
    seed: str
    words_per_token: float = 1.0
    first: int = 0

    def content(self, index: int, turn: int = 0) -> str:  # noqa: ARG002 (a trace has no conversations)
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

    def own_tokens(self, index: int) -> int:
        """Return the fewest tokens that are of this prompt alone: those outside the recorded blocks."""
        row = self._row(index)
        total = word_count(self.trace.tokens_in[row], self.words_per_token)
        blocks = len(self.trace.blocks[row]) if self.trace.blocks else 0
        return int(
            max(total - blocks * word_count(BLOCK_TOKENS, self.words_per_token), 0) / max(self.words_per_token, 1.0)
        )

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
