"""Prompts from a file, one JSON object a line; the file stays where it is, only the places of its lines are kept.

    {"prompt": "Why is the sea salt?"}
    {"messages": [{"role": "user", "content": "Why is the sea salt?"}], "output_tokens": 128}
    {"body": {"inputs": "Why is the sea salt?", "parameters": {"max_new_tokens": 128}}}
    {"prompt": "Why is the sea salt?", "input_tokens": 6, "output_tokens": 128, "timestamp": 1500}

`input_tokens` and `timestamp` are read by others of the same file: `workload.dataset` and `--trace`.

Every line is checked before anything is sent. Request i takes line i, and after the last line the first one again.
"""

from __future__ import annotations

import json
import os
import weakref
from array import array
from typing import TYPE_CHECKING, Final

from seatrial_load.prompts.line_problems import LineProblems, is_chat, why_not_json
from seatrial_load.prompts.synthetic import RawBody

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial_load.payload.json_text import Json
    from seatrial_load.prompts.synthetic import Content


RULE: Final = "SEA509"
KEYS: Final = ("prompt", "messages", "body", "output_tokens", "input_tokens", "timestamp")
_CONTENT_KEYS: Final = KEYS[:3]


class JsonlPrompts:
    """The prompts of a file; 8 bytes of memory a line. The file must stay as it is while it is used."""

    __slots__ = ("__weakref__", "_descriptor", "_ends", "_path", "_starts", "_tokens_out")

    def __init__(self, path: Path, *, tokens_out: int, chat: bool) -> None:
        """Check every line and remember where it is.

        Args:
            path: The file.
            tokens_out: Length of an answer where a line doesn't say.
            chat: Whether the schema takes messages.

        Raises:
            BenchError: SEA509, with every bad line.
        """
        self._path = str(path)
        self._tokens_out = tokens_out
        self._starts, self._ends = array("Q"), array("Q")
        problems = LineProblems(self._path, RULE)
        try:
            self._index(path, problems, chat=chat)
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

    def content(self, index: int) -> Content:
        """Return what stands on the line of this request."""
        line = self._line(index)
        body, messages = line.get("body"), line.get("messages")
        if isinstance(body, dict):
            return RawBody(body)
        if isinstance(messages, list):
            return [said for said in messages if isinstance(said, dict)]
        return str(line["prompt"])

    def output_tokens(self, index: int) -> int:
        """Return the line's own length of an answer, else the workload's."""
        told = self._line(index).get("output_tokens")
        return told if isinstance(told, int) else self._tokens_out

    def input_tokens(self, _index: int) -> int | None:
        """Return None: only the endpoint counts these prompts."""
        return None

    def _line(self, index: int) -> Mapping[str, Json]:
        place = index % len(self._starts)
        start, end = self._starts[place], self._ends[place]
        # pread shares no position with the other processes of a load
        document: Mapping[str, Json] = json.loads(os.pread(self._descriptor, end - start, start))
        return document

    def _index(self, path: Path, problems: LineProblems, *, chat: bool) -> None:
        start = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                end = start + len(line)
                if line.strip():
                    self._starts.append(start)
                    self._ends.append(end)
                    for field, message in _wrong_line(line, chat=chat):
                        problems.note(number, message, field=field)
                start = end


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
    yield from _wrong_content(document, chat=chat)
    tokens = document.get("output_tokens", 1)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        yield "output_tokens", f"{json.dumps(tokens)[:60]} is not a whole number from 1"


def _wrong_content(document: Mapping[str, object], *, chat: bool) -> Iterator[tuple[str, str]]:
    present = [key for key in _CONTENT_KEYS if key in document]
    if len(present) != 1:
        yield "", f"needs one of prompt, messages and body, has {' and '.join(present) or 'none'}"
        return
    (key,) = present
    if wrong := _wrong_value(key, document[key], chat=chat):
        yield key, wrong


def _wrong_value(key: str, value: object, *, chat: bool) -> str:
    """Return what is wrong with a prompt, a body or messages; empty when nothing is."""
    match key:
        case "prompt":
            return "" if isinstance(value, str) and value else "not a non-empty string"
        case "body":
            return "" if isinstance(value, dict) and value else "not a non-empty object"
    if not is_chat(value):
        return 'not a list of objects with "role" and "content"'
    return "" if chat else "the workload's schema needs a string, not messages"
