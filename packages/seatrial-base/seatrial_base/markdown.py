"""Markdown of texts that others wrote: shown as they are, whatever they hold."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from seatrial_base.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

_PUNCTUATION = re.compile(r"[\\`*{}\[\]<>|~#$&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_LINK = re.compile(r"(?i):(?=//)|(?<=www)\.")
_BLOCK = re.compile(r"^[-+=:](?!\w)")
_LIST_NUMBER = re.compile(r"^(\d{1,9})([.)])(?!\S)")
_REFERENCE = re.compile(r"([@#])(?=\w)")
_UNBROKEN = "\\1\N{WORD JOINER}"


def escaped(text: str) -> str:
    """Write a text as one line that Markdown shows and does nothing else with, in a paragraph as in a table's cell.

    It becomes no markup, HTML, link, image or block, and mentions neither a user nor an issue: GitHub looks for
    mentions in the rendered text, so that only a character between `@` and the name prevents one.
    """
    line = _LINK.sub(r"\\\g<0>", _PUNCTUATION.sub(r"\\\g<0>", _one_line(text)))
    line = _LIST_NUMBER.sub(r"\1\\\2", _BLOCK.sub(r"\\\g<0>", line))
    return _REFERENCE.sub(_UNBROKEN, line)


def code(text: str) -> str:
    """Write a text as code on one line, in a paragraph as in a table's cell; backticks don't leave it."""
    line = _one_line(text) or " "
    if "|" in line:  # a backslash before it would be shown, except in a table
        return f"<code>{escaped(line)}</code>"
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def fenced(lines: Iterable[str], language: str = "") -> list[str]:
    """Write lines as a block of code that none of them ends."""
    shown = [printable(line, layout="\t") for line in lines]
    longest = max((len(run) for line in shown for run in re.findall(r"`{3,}", line)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}{language}", *shown, fence]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Write lines of Markdown below a title that unfolds them; backticks in the title set code."""
    parts = html.escape(_REFERENCE.sub(_UNBROKEN, _one_line(title)), quote=False).split("`")
    shown = "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
    return [f"<details><summary>{shown}</summary>", "", *lines, "</details>", ""]


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
