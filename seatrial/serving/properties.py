"""The text formats that containers read: Java properties files and lists of environment variables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_BLANKS = " \t\f"
# The end of a key: an unescaped `=` or `:` with blanks around it, or blanks alone.
_KEY_END = re.compile(r"(?<!\\)(?:\\\\)*(?P<end>[ \t\f]*[=:][ \t\f]*|[ \t\f]+)")


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of a file.

    Attributes:
        key: The key, unescaped.
        value: The value, unescaped.
        number: Line of the file on which the entry begins, from 1.
    """

    key: str
    value: str
    number: int


def escape_property(value: str) -> str:
    r"""Write a value as `java.util.Properties` reads it back: `\`, line ends, leading blanks, non-Latin-1 escaped."""
    text = "".join(_ESCAPES.get(char) or _ascii(char) for char in value)
    return f"\\{text}" if text.startswith(" ") else text


def escape_key(key: str) -> str:
    """Write a key as `java.util.Properties` reads it back: what ends a key or starts a comment is escaped."""
    return re.sub(r"([ =:#!])", r"\\\1", "".join(_ESCAPES.get(char) or _ascii(char) for char in key))


def _ascii(char: str) -> str:
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def parse_properties(text: str) -> dict[str, str]:
    """Read a properties file as a mapping; a later key wins."""
    return {line.key: line.value for line in read_properties(text)}


def read_properties(text: str) -> tuple[Line, ...]:
    """Read a properties file as Java does: `=`, `:` or blanks end a key; comments, continuation lines and escapes."""
    return tuple(_line(logical, number) for number, logical in _logical_lines(text))


def _line(logical: str, number: int) -> Line:
    end = _KEY_END.search(logical)
    key, value = (logical[: end.start("end")], logical[end.end("end") :]) if end else (logical, "")
    return Line(_unescape(key), _unescape(value), number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        line = raw.lstrip(_BLANKS)
        if not parts and (not line or line[0] in "#!"):
            continue
        first = first if parts else number
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if continued else line)
        if not continued:
            if any(parts):
                yield first, "".join(parts)
            parts = []
    if any(parts):
        yield first, "".join(parts)


def _unescape(text: str) -> str:
    out, index = [], 0
    while index < len(text):
        char = text[index]
        if char == "\\" and index + 1 < len(text):
            step, value = _escape_at(text, index + 1)
            out.append(value)
            index += step + 1
            continue
        out.append(char)
        index += 1
    joined = "".join(out)
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape_at(text: str, index: int) -> tuple[int, str]:
    char = text[index]
    digits = text[index + 1 : index + 5]
    if char == "u" and len(digits) == 4 and all(d in "0123456789abcdefABCDEF" for d in digits):  # noqa: PLR2004 (\uXXXX)
        return 5, chr(int(digits, 16))
    return 1, _UNESCAPES.get(char, char)


def parse_env(text: str) -> dict[str, str]:
    """Read `NAME=value` lines as a mapping; a later name wins."""
    return {line.key: line.value for line in read_env(text)}


def read_env(text: str) -> tuple[Line, ...]:
    """Read `NAME=value` lines; the value is everything after the first `=`."""
    return tuple(_env_lines(re.split(r"\r\n|\n|\r", text)))


def _env_lines(lines: Iterable[str]) -> Iterator[Line]:
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield Line(name, value, number)


def write_env(env: Mapping[str, str]) -> str:
    """Write environment variables one a line, in their order."""
    return "".join(f"{name}={value}\n" for name, value in env.items())
