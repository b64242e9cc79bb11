"""Reads `NAME=value` lines, and remembers where each name stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial_lint.lint.source import SourceEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")
_EXPORT = "export "
_SHORTEST_QUOTED = 2


def read_env(text: str) -> Iterator[SourceEntry]:
    """Yield the variables of an environment file in their order; quotes around a value don't belong to it."""
    for number, line in enumerate(_LINE.finditer(text), 1):
        name, equals, value = line[1].partition("=")
        written = name.strip().removeprefix(_EXPORT).strip()
        if not equals or not written or written[0] == "#":
            continue
        key_at = line.start() + name.rindex(written)
        value_at = line.start() + len(name) + 1 + len(value) - len(value.lstrip())
        spans = (key_at, key_at + len(written)), (value_at, value_at + len(value.strip()))
        yield SourceEntry(written, _unquoted(value.strip()), number, "env", *spans, (line.start(), line.end()))


def _unquoted(value: str) -> str:
    quoted = len(value) >= _SHORTEST_QUOTED and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
