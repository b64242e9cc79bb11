"""The text formats that containers read: Java properties files and lists of environment variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def escape_property(value: str) -> str:
    r"""Write a value as `java.util.Properties` reads it back: `\`, line ends, leading blanks, non-Latin-1 escaped."""
    text = "".join(_ESCAPES.get(char) or _ascii(char) for char in value)
    return f"\\{text}" if text.startswith(" ") else text


def _ascii(char: str) -> str:
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def parse_properties(text: str) -> dict[str, str]:
    """Read a properties file: `key=value` lines, comments, continuation lines and escapes; a later key wins."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        key, _, value = line.partition("=")
        values[_unescape(key.strip())] = _unescape(value.lstrip())
    return values


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    for raw in re.split(r"\r\n|\n|\r", text):
        line = pending + raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending = line[:-1]
            continue
        lines.append(line)
        pending = ""
    return [*lines, pending] if pending else lines


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
    """Read `NAME=value` lines; the value is everything after the first `=`."""
    pairs = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def write_env(env: Mapping[str, str]) -> str:
    """Write environment variables one a line, in their order."""
    return "".join(f"{name}={value}\n" for name, value in env.items())
