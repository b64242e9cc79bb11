"""Texts that hold what can't be shown: escape sequences, direction marks, look-alike spaces, halves of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.errors import Problem
from seatrial.printable import unprintable
from seatrial.spec.source import dotted, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.spec.source import FieldPath, Source

_PROSE = "\n\t\u00a0\u2009\u202f\u3000\u200c\u200d\u2028\u2029"
"""What may stand in a text of several lines and of any language: breaks, spaces, joiners."""
_HINT = "write the text anew: it was copied with it, or somebody hid it there"


def character_problems(source: Source) -> Iterator[Problem]:
    """Yield each field whose name or value holds such a character, those of every environment's overrides included."""
    for path, name, text in texts(source.data):
        if found := unprintable(text, layout=_PROSE if _is_prose(path, name) else ""):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Problem(where, dotted(path), "SEA118", f"the text holds {found}", _HINT)


def _is_prose(path: FieldPath, name: str) -> bool:
    """Tell whether a text is a description or an option's value; the name of neither is (its own name is empty)."""
    return bool(name) and (path[-1] == "description" or path[-2:-1] == ("extra",))
