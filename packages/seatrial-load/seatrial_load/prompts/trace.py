"""Recorded traffic, to be replayed: the times of requests, and the lengths of them and of their answers.

The prompts are made up, of the recorded lengths; blocks that were equal in the recording are equal here. Formats:
`dataset.TRACE_COLUMNS` of single requests, `agents` of sessions; a single request is a session of one turn. Answers are
not sent back: what a turn adds to its prompt stands for them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.field_facts import made_of
from seatrial_load.prompts.agents import Recording, form_of
from seatrial_load.prompts.dataset import (
    BLOCK_TOKENS,
    MOST_PAIRS,
    RULE,
    LengthRow,
    LineProblems,
    conversing,
    csv_rows,
    jsonl_rows,
    objects_of,
)
from seatrial_load.prompts.synthetic import word_count, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TextIO

    from seatrial_load.prompts.dataset import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A recording, session by session; 24 bytes of memory a single request without its blocks.

    Attributes:
        due_s: When each session began, from the first one on, ascending; empty where the recording doesn't know.
        tokens_in: Of the whole prompt.
        blocks: The recorded ids of each prompt's blocks, after those that it keeps; empty when the recording has none.
        skipped: Requests left out: without a prompt or an answer, failed, or a sub-agent's that no turn starts.
        openings: The place of each session's first turn, and after the last one the number of turns.
        shortened: Gaps of more than an hour, which are replayed as one.
        gaps_s: How long after the end of what it waits for a turn leaves. This and what follows is empty of single
            requests.
        waits: How many places before it the turns are that it waits for, that of its own agent first; none opens the
            session.
        goes_on: Whether the first of these is of the same agent.
        history: Number of the words that its prompt goes on with after these, which others of that number have too;
            below 0, it has words of its own.
        kept: How many blocks of the first of these its prompt begins with.
        block_tokens: Tokens of a block, by session.
        shared: Whether ids of blocks mean the same in other sessions, by session.
    """

    due_s: array[float]
    tokens_in: array[int]
    tokens_out: array[int]
    blocks: Sequence[Sequence[int]]
    skipped: int
    openings: Sequence[int]
    shortened: int = 0
    gaps_s: Sequence[float] = ()
    waits: Sequence[tuple[int, ...]] = ()
    goes_on: Sequence[bool] = ()
    history: Sequence[int] = ()
    kept: Sequence[int] = ()
    block_tokens: Sequence[int] = ()
    shared: Sequence[bool] = ()

    def __len__(self) -> int:
        return len(self.tokens_in)

    @property
    def tokens_in_mean(self) -> float:
        """Mean of what a turn adds to its prompt."""
        return sum(map(self.added, range(len(self)))) / len(self)

    @property
    def tokens_out_mean(self) -> float:
        """Mean length of an answer."""
        return sum(self.tokens_out) / len(self)

    @property
    def turns(self) -> tuple[int, ...]:
        """How many turns each session has, those of sub-agents included."""
        return tuple(after - before for before, after in pairwise(self.openings))

    def added(self, row: int) -> int:
        """Return the tokens of a prompt after the blocks that it has in common with the turn that it follows."""
        kept = self.kept[row] * self.block_tokens_of(row) if self.kept else 0
        return max(1, self.tokens_in[row] - kept)

    def session_of(self, row: int) -> int:
        """Return the number of a turn's session."""
        return bisect_right(self.openings, row) - 1

    def block_tokens_of(self, row: int) -> int:
        """Return how many tokens a block of a turn has."""
        return self.block_tokens[self.session_of(row)] if self.block_tokens else BLOCK_TOKENS

    def blocks_of(self, row: int) -> Sequence[int]:
        """Return all recorded ids of a turn's prompt."""
        if not self.kept:
            return self.blocks[row] if self.blocks else ()
        chain = [row]
        while self.kept[chain[-1]]:
            chain.append(chain[-1] - self.waits[chain[-1]][0])
        built = array("q")
        for place in reversed(chain):
            built = built[: self.kept[place]] + array("q", self.blocks[place])
        return built


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePrompts:
    """Made-up prompts of the recorded lengths.

    Attributes:
        first: The number of the request that takes the trace's first row, that is, of those sent before the replay.
            After the last row comes the first again, of sessions with other words: their second replay would else come
            from the cache of the first.
    """

    trace: Trace
    seed: str
    words_per_token: float = 1.0
    first: int = 0

    def content(self, index: int, turn: int = 0) -> str:  # noqa: ARG002 (its number identifies the turn)
        """Write the prompt of the request with this number: the recorded blocks, then words of its own."""
        row, trace = self._row(index), self.trace
        scope = f"{self.seed}:"
        if trace.kept:
            session = trace.session_of(row)
            scope += f"{index - row}:" if trace.shared[session] else f"{index - row}:{session}:"
        total = word_count(trace.tokens_in[row], self.words_per_token)
        of_block = word_count(trace.block_tokens_of(row), self.words_per_token)
        drawn = [word for name in self._names(row) for word in words(f"{scope}{name}", of_block)]
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
        of_block = word_count(self.trace.block_tokens_of(row), self.words_per_token)
        return int(max(total - len(self._names(row)) * of_block, 0) / max(self.words_per_token, 1.0))

    def _names(self, row: int) -> list[str]:
        """Return the names of a prompt's blocks: recorded ids, then places in the history that it goes on with."""
        trace = self.trace
        names = [f"block {block}" for block in trace.blocks_of(row)]
        history = trace.history[row] if trace.history else -1
        whole = trace.tokens_in[row] // trace.block_tokens_of(row) if history >= 0 else 0
        return names + [f"history {history} {place}" for place in range(len(names), whole)]

    def _row(self, index: int) -> int:
        return (index - self.first) % len(self.trace)


def read_trace(path: Path) -> Trace:
    """Read a trace; a name that ends in `.csv` is CSV, any other JSON, whose first object tells the form.

    Raises:
        BenchError: SEA510, SEA550 (Weka) or SEA551 (OpenTelemetry), with every bad line.
    """
    problems = LineProblems(str(path), RULE)
    at_s, tokens_in, tokens_out = array("d"), array("Q"), array("Q")
    blocks: list[tuple[int, ...]] = []
    skipped = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() != ".csv" and (sessions := _read_sessions(path, file)) is not None:
                return sessions
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
        openings=range(len(order) + 1),
    )


def sessions_dataset(path: Path, *, timed: bool = False) -> Dataset | None:
    """Return the conversations of a recording's agents, as `workload.dataset` has them; None of single requests.

    A turn adds what its prompt has beyond the prompt and the answer before it. A prompt that is no longer than the one
    before it begins another conversation.

    Raises:
        BenchError: SEA510, SEA550 or SEA551, with every bad line; SEA510, the times are wanted, too.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            trace = None if path.suffix.lower() == ".csv" else _read_sessions(path, file)
    except (OSError, UnicodeDecodeError):
        return None  # `read_dataset` tells it
    if trace is None:
        return None
    if timed:
        hint = "write arrivals: closed"
        raise BenchError.of(RULE, "recorded arrivals have no sessions of agents", where=path.as_posix(), hint=hint)
    talks: dict[int, list[LengthRow]] = {}
    talk_of: dict[int, int] = {}
    for row, (prompt, answer) in enumerate(zip(trace.tokens_in, trace.tokens_out, strict=True)):
        before = row - trace.waits[row][0] if trace.goes_on[row] else row
        grows = prompt > trace.tokens_in[before] and len(talks[talk_of[before]]) < MOST_PAIRS
        talk_of[row] = talk_of[before] if grows else row
        held = trace.tokens_in[before] + trace.tokens_out[before] if grows else 0
        turn = LengthRow(max(1, prompt - held), answer, None, trace.gaps_s[row] if grows else 0.0, not grows)
        talks.setdefault(talk_of[row], []).append(turn)
    taken = conversing([turn for turns in talks.values() for turn in turns])
    return replace(taken, conversations_per_session=len(talks) / len(trace.turns))


def _read_sessions(path: Path, file: TextIO) -> Trace | None:
    form = form_of(next((one for _, one in objects_of(file, LineProblems(str(path), RULE))), {}))
    file.seek(0)
    if form is None:
        return None
    rule, read = form
    recording = Recording(problems=LineProblems(str(path), rule))
    read(objects_of(file, recording.problems), recording)
    if not recording.tokens_in and not recording.problems:
        recording.problems.note(0, "no request has a prompt and an answer")
    recording.problems.raise_if_any()
    due_s = array("d", [at_s - recording.due_s[0] for at_s in recording.due_s])
    return made_of(Trace, recording, due_s=due_s)
