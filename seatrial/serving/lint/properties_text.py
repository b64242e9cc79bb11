"""Reads `serving.properties` as `java.util.Properties` does, and remembers where each key stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial.serving.lint.source import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_JOINT = r"\\(?:\r\n|\r|\n)[ \t\f]*"  # a line that goes on: the next one's leading blanks don't count
_KEY = re.compile(rf"(?:{_JOINT}|\\.|[^\\=: \t\f])*", re.DOTALL)
_GAP = re.compile(rf"(?:[ \t\f]|{_JOINT})*(?:[=:](?:[ \t\f]|{_JOINT})*)?")
_CONTINUED = re.compile(_JOINT)
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def read_properties(text: str) -> tuple[Entry, ...]:
    """Return the keys of a properties file in their order, repeated ones too."""
    return tuple(_entries(text))


def _entries(text: str) -> Iterator[Entry]:
    line = 1
    for start, end in _logical_lines(text):
        body = _body(text[start:end])
        stripped = body.lstrip(" \t\f")
        if (
            _CONTINUED.sub("", stripped) not in ("", "\\") and stripped[0] not in "#!"
        ):  # Java passes over what is empty once joined
            yield _entry(text, (start, end), start + len(body) - len(stripped), line)
        line += _count_lines(text[start:end])


def _entry(text: str, whole: tuple[int, int], start: int, line: int) -> Entry:
    body = _body(text[start : whole[1]])
    end = start + len(body) - _dangling(body)
    key_end = _matched(_KEY, text, start, end)
    value_start = _matched(_GAP, text, key_end, end)
    key, value = text[start:key_end], text[value_start:end]
    return Entry(_unescape(key), _unescape(value), line, "properties", (start, key_end), (value_start, end), whole)


def _matched(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    found = pattern.match(text, start, end)
    return found.end() if found else start


def _logical_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each logical line: a backslash at the end of a line goes on with the next one."""
    start = at = 0
    while at < len(text):
        found = _LINE.match(text, at)
        line, is_first, at = at, at == start, found.end() if found else len(text)
        if not _goes_on(_body(text[line:at]), is_first=is_first) or at >= len(text):
            yield start, at
            start = at


def _body(line: str) -> str:
    """Return a line without its end."""
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line.removesuffix("\r")


def _goes_on(body: str, *, is_first: bool) -> bool:
    is_comment = is_first and body.lstrip(" \t\f")[:1] in ("#", "!")
    return not is_comment and _dangling(body) == 1


def _dangling(body: str) -> int:
    """Return 1 when a text ends in a backslash that escapes nothing, else 0."""
    return (len(body) - len(body.rstrip("\\"))) % 2


def _unescape(text: str) -> str:
    joined = _CONTINUED.sub("", text) if "\\" in text else text
    plain = _ESCAPED.sub(_escaped, joined) if "\\" in joined else joined
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in joined else plain


def _escaped(found: re.Match[str]) -> str:
    char = found[1]
    return chr(int(char[1:], 16)) if len(char) > 1 else _NAMED.get(char, char)


def _count_lines(text: str) -> int:
    return len(re.findall(r"\r\n|\r|\n", text))
