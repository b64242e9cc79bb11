"""What is wrong with the lines of a file of prompts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def is_chat(messages: object) -> bool:
    """Tell whether a value is a list of messages, each with a role and a content."""
    if not isinstance(messages, list) or not messages:
        return False
    return all(isinstance(said, dict) and isinstance(said.get("role"), str) and "content" in said for said in messages)
