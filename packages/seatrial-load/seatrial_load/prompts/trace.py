"""Recorded traffic, to be replayed: the times of requests, and the lengths of them and of their answers.

The prompts are made up, of the recorded lengths; blocks that were equal in the recording are equal here. Formats:
`dataset.TRACE_COLUMNS`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.prompts.dataset import BLOCK_TOKENS, RULE, LineProblems, csv_rows, jsonl_rows
from seatrial_load.prompts.synthetic import word_count, words

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A recording, in order of time; 24 bytes of memory a request without its blocks.

    Attributes:
        due_s: When each request came, from the first one on.
        blocks: The blocks of each prompt; empty when the recording has none.
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
        first: The number of the request that takes the trace's first row, that is, of those sent before the replay.
            After the last row comes the first again.
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
    at_s, tokens_in, tokens_out = array("d"), array("Q"), array("Q")
    blocks: list[tuple[int, ...]] = []
    skipped = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in (csv_rows if path.suffix.lower() == ".csv" else jsonl_rows)(file, problems):
                if not (row.tokens_in and row.tokens_out):
                    skipped += 1
                    continue
                at_s.append(row.at_s)
                tokens_in.append(row.tokens_in)
                tokens_out.append(row.tokens_out)
                blocks.append(row.blocks)
    except OSError as unread:
        problems.note(0, f"can't be read: {unread.strerror}")
    except UnicodeDecodeError as binary:
        problems.note(0, f"not UTF-8: {binary.reason}")
    else:
        if not at_s and not problems:
            problems.note(0, "no request has a prompt and an answer")
    problems.raise_if_any()
    # A log is often written when answers end, not in the order in which requests came.
    order = sorted(range(len(at_s)), key=at_s.__getitem__)
    return Trace(
        due_s=array("d", [at_s[place] - at_s[order[0]] for place in order]),
        tokens_in=array("Q", [tokens_in[place] for place in order]),
        tokens_out=array("Q", [tokens_out[place] for place in order]),
        blocks=tuple(blocks[place] for place in order) if any(blocks) else (),
        skipped=skipped,
    )
