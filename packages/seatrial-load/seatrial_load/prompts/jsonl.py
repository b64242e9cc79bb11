"""Prompts from a file, one JSON object a line; the file stays where it is, only the places of its lines are kept.

    {"prompt": "Why is the sea salt?"}
    {"messages": [{"role": "user", "content": "Why is the sea salt?"}], "output_tokens": 128}
    {"body": {"inputs": "Why is the sea salt?", "parameters": {"max_new_tokens": 128}}}
    {"prompt": "Why is the sea salt?", "input_tokens": 6, "output_tokens": 128, "timestamp": 1500}
    {"turns": [{"text": "Why is the sea salt?"}, {"text": "And lakes?", "delay": 2000, "output_tokens": 64}]}

`input_tokens` and `timestamp` are for `workload.dataset` and `--trace`, which read the same file. `turns` is a
conversation as in AIPerf's `multi_turn` files: the user's text, and how many milliseconds before it.

Every line is checked before anything is sent. Request i takes line i, and after the last line the first one again; of a
file with conversations every turn counts as a line.
"""

from __future__ import annotations

import json
import os
import weakref
from array import array
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seatrial_base.bounds import LONGEST_DELAY_S, MOST_TURNS
from seatrial_base.units import MS_PER_S
from seatrial_load.prompts.dataset import LineProblems, is_chat, why_not_json
from seatrial_load.prompts.synthetic import RawBody

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial_load.payload.json_text import Json
    from seatrial_load.prompts.synthetic import Content


RULE: Final = "SEA509"
KEYS: Final = ("prompt", "messages", "body", "output_tokens", "input_tokens", "timestamp", "turns", "session_id")
_CONTENT_KEYS: Final = ("prompt", "messages", "body", "turns")
_TURN_KEYS: Final = ("text", "prompt", "output_tokens", "input_tokens", "delay")


class JsonlPrompts:
    """The prompts of a file; 24 bytes of memory a line. The file must stay as it is while it is used.

    Attributes:
        delays_s: How long the user thinks before each turn, in seconds; empty where no line has it.
    """

    __slots__ = ("__weakref__", "_descriptor", "_ends", "_openings", "_path", "_starts", "_tokens_out", "delays_s")

    def __init__(self, path: Path, *, tokens_out: int, chat: bool) -> None:
        """Check every line and remember where it is.

        Args:
            tokens_out: Length of an answer where a line has none.

        Raises:
            BenchError: SEA509, with every bad line.
        """
        self._path = str(path)
        self._tokens_out = tokens_out
        self._starts, self._ends = array("Q"), array("Q")
        self._openings = array("Q", [0])
        self.delays_s = array("d")
        problems = LineProblems(self._path, RULE)
        try:
            start = 0
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    end = start + len(line)
                    if line.strip():
                        self._starts.append(start)
                        self._ends.append(end)
                        self._note_turns(line)
                        for field, message in _wrong_line(line, chat=chat):
                            problems.note(number, message, field=field)
                    start = end
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._descriptor)
        except OSError as unread:
            problems.note(0, f"can't be read: {unread.strerror}")
        else:
            if not self._starts and not problems:
                problems.note(0, "the file is empty", hint='write one JSON object per line: {"prompt": "…"}')
        problems.raise_if_any()

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def conversations(self) -> tuple[int, ...]:
        """The turns of each line; empty where no line has several."""
        turns = tuple(after - before for before, after in pairwise(self._openings))
        return turns if max(turns) > 1 else ()

    def content(self, index: int, turn: int = 0) -> Content:  # noqa: ARG002 (its number identifies the turn)
        """Return the content of the line of this request, or the text of its turn."""
        line = self._entry(index)
        body, messages = line.get("body"), line.get("messages")
        if isinstance(body, dict):
            return RawBody(body)
        if isinstance(messages, list):
            return [entry for entry in messages if isinstance(entry, dict)]
        return str(line["prompt"] if "prompt" in line else line["text"])

    def output_tokens(self, index: int) -> int:
        """Return the line's own length of an answer, else the workload's."""
        tokens = self._entry(index).get("output_tokens")
        return tokens if isinstance(tokens, int) else self._tokens_out

    def input_tokens(self, _index: int) -> int | None:
        """Return None: only the endpoint counts these prompts."""
        return None

    def own_tokens(self, _index: int) -> int | None:
        """Return None: what these prompts have in common is unknown."""
        return None

    def _entry(self, index: int) -> Mapping[str, Json]:
        row = index % self._openings[-1]
        place = bisect_right(self._openings, row) - 1
        start, end = self._starts[place], self._ends[place]
        # pread shares no position with the other processes of a load
        line: Mapping[str, Json] = json.loads(os.pread(self._descriptor, end - start, start))
        turns = line.get("turns")
        turn = turns[row - self._openings[place]] if isinstance(turns, list) else line
        return turn if isinstance(turn, dict) else line

    def _note_turns(self, line: bytes) -> None:
        delays_ms: list[object] = [0]
        if b'"turns"' in line:
            with suppress(ValueError, RecursionError, AttributeError, TypeError):
                delays_ms = [turn.get("delay", 0) for turn in json.loads(line)["turns"]] or [0]
        known = [delay_ms / MS_PER_S if isinstance(delay_ms, int | float) else 0.0 for delay_ms in delays_ms]
        self.delays_s.extend(known)
        self._openings.append(self._openings[-1] + len(known))


@dataclass(frozen=True, slots=True)
class JsonlConversations:
    """The conversations of a file, from a level's first request on.

    Attributes:
        first: The number of the request that takes the first line's first turn.
    """

    lines: JsonlPrompts
    first: int

    def content(self, index: int, turn: int = 0) -> Content:
        """Return the user's text in the turn of this number."""
        return self.lines.content(index - self.first, turn)

    def output_tokens(self, index: int) -> int:
        """Return the length of its answer."""
        return self.lines.output_tokens(index - self.first)

    def input_tokens(self, index: int) -> int | None:
        """Return None: only the endpoint counts these prompts."""
        return self.lines.input_tokens(index)

    def own_tokens(self, index: int) -> int | None:
        """Return None: what these prompts have in common is unknown."""
        return self.lines.own_tokens(index)


def _wrong_line(line: bytes, *, chat: bool) -> Iterator[tuple[str, str]]:
    try:
        document: object = json.loads(line.strip())
    except (ValueError, RecursionError) as malformed:
        yield "", why_not_json(malformed)
        return
    if not isinstance(document, dict):
        yield "", "not a JSON object"
        return
    yield from ((key, f"unknown key; known are {', '.join(KEYS)}") for key in document if key not in KEYS)
    present = [key for key in _CONTENT_KEYS if key in document]
    if len(present) != 1:
        yield "", f"needs one of prompt, messages, body and turns, has {' and '.join(present) or 'none'}"
    elif wrong := _wrong_value(present[0], document[present[0]], chat=chat):
        yield present[0], wrong
    yield from _wrong_count(document)
    turns = document.get("turns")
    for place, turn in enumerate(turns if isinstance(turns, list) else ()):
        yield from ((f"turns[{place}]{field and '.'}{field}", message) for field, message in _wrong_turn(turn))


def _wrong_count(entry: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    tokens = entry.get("output_tokens", 1)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        yield "output_tokens", f"{json.dumps(tokens)[:60]} is not a whole number from 1"


def _wrong_turn(turn: object) -> Iterator[tuple[str, str]]:
    if not isinstance(turn, dict):
        yield "", "not an object"
        return
    yield from ((key, f"unknown key; known are {', '.join(_TURN_KEYS)}") for key in turn if key not in _TURN_KEYS)
    texts = [turn[key] for key in ("text", "prompt") if key in turn]
    if len(texts) != 1 or not isinstance(texts[0], str) or not texts[0]:
        yield "text", "not a non-empty string"
    delay_ms = turn.get("delay", 0)
    known = isinstance(delay_ms, int | float) and not isinstance(delay_ms, bool)
    if not known or not 0 <= delay_ms <= LONGEST_DELAY_S * MS_PER_S:
        yield "delay", f"{json.dumps(delay_ms)[:60]} is not a number of ms from 0 to {LONGEST_DELAY_S * 1000:,}"
    yield from _wrong_count(turn)


def _wrong_value(key: str, value: object, *, chat: bool) -> str:
    match key:
        case "prompt":
            return "" if isinstance(value, str) and value else "not a non-empty string"
        case "body":
            return "" if isinstance(value, dict) and value else "not a non-empty object"
        case "turns":
            most = isinstance(value, list) and 0 < len(value) <= MOST_TURNS
            return "" if most else f"not a list of 1 to {MOST_TURNS:,} turns"
    if not is_chat(value):
        return 'not a list of objects with "role" and "content"'
    return "" if chat else "the workload's schema needs a string, not messages"
