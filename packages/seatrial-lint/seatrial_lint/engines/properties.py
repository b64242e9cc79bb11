"""The text formats that containers read: Java properties files, and environment variables with their limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
# A line that goes on: the next one's leading blanks don't count.
_JOINT = r"\\(?:\r\n|\r|\n)[ \t\f]*"
_KEY = re.compile(rf"(?:{_JOINT}|\\.|[^\\=: \t\f])*", re.DOTALL)
_GAP = re.compile(rf"(?:[ \t\f]|{_JOINT})*(?:[=:](?:[ \t\f]|{_JOINT})*)?")
_CONTINUED = re.compile(_JOINT)
_ESCAPED = re.compile(r"((?:\\u[0-9A-Fa-f]{4})+)|\\(.)", re.DOTALL)
_NOT_ASCII = re.compile("[^ -~]+")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PropertyLine:
    """One entry of a file.

    Attributes:
        number: Line of the file on which the entry begins, from 1.
        key_span: Characters of the key in the text.
        whole_span: Characters that go when the entry goes, line end included.
    """

    key: str
    value: str
    number: int
    key_span: Span = (0, 0)
    value_span: Span = (0, 0)
    whole_span: Span = (0, 0)


def escape_property(value: str) -> str:
    r"""Write a value as `java.util.Properties` reads it back: `\`, line ends, leading blanks, non-Latin-1 escaped."""
    text = _escape(value)
    return f"\\{text}" if text.startswith(" ") else text


def escape_key(key: str) -> str:
    """Write a key as `java.util.Properties` reads it back: what ends a key or starts a comment is escaped."""
    return re.sub(r"([ =:#!])", r"\\\1", _escape(key))


def _escape(text: str) -> str:
    return _NOT_ASCII.sub(
        # An escape for each UTF-16 unit.
        lambda match: "\\u" + match[0].encode("utf-16-be", "surrogatepass").hex(" ", 2).replace(" ", "\\u"),
        text.translate(_ESCAPES),
    )


def parse_properties(text: str) -> dict[str, str]:
    """Read a properties file as a mapping; a later key wins."""
    return {line.key: line.value for line in read_properties(text)}


def read_properties(text: str) -> tuple[PropertyLine, ...]:
    """Read a properties file as Java does, repeated keys too: `=`, `:` or blanks end a key; continuations, escapes."""
    return tuple(property_lines(text))


def property_lines(text: str) -> Iterator[PropertyLine]:
    """Yield the entries of a properties file one by one, as `read_properties` returns them."""
    line = 1
    for start, end in _logical_lines(text):
        body = _body(text[start:end])
        stripped = body.lstrip(" \t\f")
        if _CONTINUED.sub("", stripped) not in ("", "\\") and stripped[0] not in "#!":
            # Java passes over what is empty once joined.
            key_start, value_end = start + len(body) - len(stripped), start + len(body) - _dangling(body)
            key_end = _matched(_KEY, text, key_start, value_end)
            value_start = _matched(_GAP, text, key_end, value_end)
            key, value = _unescape(text[key_start:key_end]), _unescape(text[value_start:value_end])
            yield PropertyLine(key, value, line, (key_start, key_end), (value_start, value_end), (start, end))
        line += len(re.findall(r"\r\n|\r|\n", text[start:end]))


def _matched(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    match = pattern.match(text, start, end)
    return match.end() if match else start


def _logical_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each logical line: a backslash at the end of a line goes on with the next one."""
    start = at = 0
    while at < len(text):
        match = _LINE.match(text, at)
        line, is_first, at = at, at == start, match.end() if match else len(text)
        body = _body(text[line:at])
        is_comment = is_first and body.lstrip(" \t\f")[:1] in ("#", "!")
        if is_comment or _dangling(body) == 0 or at >= len(text):
            yield start, at
            start = at


def _body(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line.removesuffix("\r")


def _dangling(body: str) -> int:
    """Return 1 when a text ends in a backslash that escapes nothing, else 0."""
    return (len(body) - len(body.rstrip("\\"))) % 2


def _unescape(text: str) -> str:
    joined = _CONTINUED.sub("", text) if "\\" in text else text
    plain = _ESCAPED.sub(_escaped, joined) if "\\" in joined else joined
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in joined else plain


def _escaped(match: re.Match[str]) -> str:
    if units := match[1]:
        return bytes.fromhex(units.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    return _UNESCAPES.get(match[2], match[2])


def read_env_lines(text: str) -> tuple[PropertyLine, ...]:
    """Read `NAME=value` lines; the value is everything after the first `=`."""
    numbered = enumerate(re.split(r"\r\n|\n|\r", text), start=1)
    parts = ((number, *line.partition("=")) for number, line in numbered if line and not line.startswith("#"))
    return tuple(PropertyLine(name, value, number) for number, name, _, value in parts)


def write_env(env: Mapping[str, str]) -> str:
    """Write environment variables one a line, in their order."""
    return "".join(f"{name}={value}\n" for name, value in env.items())


# SageMaker API, CreateModel, Environment map.
MAX_ENTRIES = 100
# Of a name, and of a value (same map).
MAX_CHARS = 1024
# SageMaker developer guide, container environment.
MAX_TOTAL_BYTES = 32 * 1024


def env_problems(env: Mapping[str, str], where: str) -> Iterator[Finding]:
    """Yield every limit on a container's environment that is broken."""
    if len(env) > MAX_ENTRIES:
        yield Finding("SEA302", Place.at(where), f"{len(env)} environment variables exceed {MAX_ENTRIES}")
    for name, value in env.items():
        for what, size in (("name", len(name)), ("value", len(value))):
            if size > MAX_CHARS:
                message = f"the {what} has {size} characters; the limit is {MAX_CHARS}"
                yield Finding("SEA302", Place.at(where, name[:40]), message, "move the option to serving.properties")
    total = sum(len(name.encode()) + len(value.encode()) for name, value in env.items())
    if total > MAX_TOTAL_BYTES:
        yield Finding("SEA302", Place.at(where), f"the environment's {total} bytes exceed {MAX_TOTAL_BYTES}")
