"""Prompts from a file, one JSON object a line; the file stays where it is, only the places of its lines are kept.

    {"prompt": "Why is the sea salt?"}
    {"messages": [{"role": "user", "content": "Why is the sea salt?"}], "output_tokens": 128}
    {"body": {"inputs": "Why is the sea salt?", "parameters": {"max_new_tokens": 128}}}

Every line is checked before anything is sent. Request i takes line i, and after the last line the first one again.
"""

from __future__ import annotations

import json
import os
import weakref
from array import array
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.prompts.synthetic import RawBody

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial_load.payload.json_text import Json
    from seatrial_load.prompts.synthetic import Content


MAX_LISTED = 100


class LineProblems:
    """Collects what is wrong with the lines of a file."""

    __slots__ = ("_found", "_path", "_rule", "_unlisted")

    def __init__(self, path: str, rule: str) -> None:
        self._path = path
        self._rule = rule
        self._found: list[Finding] = []
        self._unlisted = 0

    def __bool__(self) -> bool:
        """Tell whether anything is wrong."""
        return bool(self._found)

    def note(self, line: int, message: str, *, field: str = "", hint: str = "") -> None:
        """Note one problem of a line; 0 is the file as a whole."""
        if len(self._found) == MAX_LISTED:
            self._unlisted += 1
            return
        where = f"{self._path}:{line}" if line else self._path
        self._found.append(Finding(self._rule, Place.at(where, field), message, hint))

    def raise_if_any(self) -> None:
        """Raise what was noted.

        Raises:
            BenchError: With every problem, or the first hundred and how many more there are.
        """
        if self._found:
            raise BenchError(self._all())

    def _all(self) -> Iterator[Finding]:
        yield from self._found
        if self._unlisted:
            yield Finding(self._rule, Place.at(self._path), f"and {self._unlisted:,} more problems")


def why_not_json(malformed: ValueError | RecursionError) -> str:
    """Say why a line is no JSON, by its columns: its number is told beside it."""
    match malformed:
        case json.JSONDecodeError():
            return f"not JSON: {malformed.msg} (column {malformed.colno})"
        case UnicodeDecodeError():
            return f"not UTF-8: {malformed.reason} (byte {malformed.start + 1})"
    return "not readable JSON: nested too deeply, or a number has too many digits"


RULE: Final = "SEA509"
KEYS: Final = ("prompt", "messages", "body", "output_tokens")
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
    prompt, messages, body = (document.get(key) for key in _CONTENT_KEYS)
    if present == ["prompt"] and not (isinstance(prompt, str) and prompt):
        yield "prompt", "not a non-empty string"
    if present == ["body"] and not (isinstance(body, dict) and body):
        yield "body", "not a non-empty object"
    if present == ["messages"] and not is_chat(messages):
        yield "messages", 'not a list of objects with "role" and "content"'
    elif present == ["messages"] and not chat:
        yield "messages", "the workload's schema needs a string, not messages"


def is_chat(messages: object) -> bool:
    """Tell whether a value is a list of messages, each with a role and a content."""
    if not isinstance(messages, list) or not messages:
        return False
    return all(isinstance(said, dict) and isinstance(said.get("role"), str) and "content" in said for said in messages)
