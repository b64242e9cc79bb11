"""Texts that others wrote: printable, in Markdown as they are, unchanged by a deployment; JSON of bounded depth."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PUNCTUATION = re.compile(r"[\\`*{}\[\]<>|~#$&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_LINK = re.compile(r"(?i):(?=//)|(?<=www)\.")
_BLOCK = re.compile(r"^[-+=:](?!\w)")
_LIST_NUMBER = re.compile(r"^(\d{1,9})([.)])(?!\S)")
_REFERENCE = re.compile(r"([@#])(?=\w)")
_UNBROKEN = "\\1\N{WORD JOINER}"
_DYNAMIC_REFERENCE = re.compile(r"\{\{\s*resolve\s*:", re.IGNORECASE)
_CDK_TOKEN = re.compile(r"[$#]\{\s*token\s*\[", re.IGNORECASE)
# Lists and objects within each other. Ours have about ten, and functions that follow them call themselves.
MOST_DEPTH: Final = 100
_TOO_DEEP: Final = f"nested more than {MOST_DEPTH} deep"


def printable(text: str, *, layout: str = "\n") -> str:
    r"""Replace every character that isn't shown as itself by U+FFFD, other spaces by a plain one.

    Replaced are the control characters C0 and C1, with them escape sequences; direction marks such as U+202E;
    characters of no width such as U+200B; line and paragraph separators; lone surrogates; what Unicode has not
    assigned.

    `layout`: the characters that stay though they aren't shown: line breaks, on a terminal tabs too.
    """
    if all(map(str.isprintable, text.split("\n") if "\n" in layout else (text,))):
        return text
    return "".join(character if character in layout else _shown(character) for character in text)


def unprintable(text: str, *, layout: str = "") -> str:
    """Name the first character of a text that isn't shown as itself; empty when there is none."""
    first = next((one for one in text if not (one.isprintable() or one in layout)), None)
    if first is None:
        return ""
    kinds = {"Cc": "a control character", "Cs": "half of a surrogate pair", "Co": "a character of private use"}
    kind = kinds.get(unicodedata.category(first), "a character that Unicode has not assigned")
    return f"U+{ord(first):04X} ({unicodedata.name(first, kind)})"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if unicodedata.category(character) == "Zs" else REPLACEMENT


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


def replaced_text(text: str) -> str:
    """Name what a text would be replaced by when it is deployed; empty where it stays as it is.

    CloudFormation resolves `{{resolve:SERVICE:KEY}}` with the rights of whoever deploys (user guide, dynamic
    references); the CDK resolves `${Token[…]}` and `#{Token[…]}` (aws-cdk-lib, `core/lib/private/encoding`). Other
    spellings, which neither resolves today, are named too.
    """
    if _DYNAMIC_REFERENCE.search(text):
        return "a dynamic reference of CloudFormation, {{resolve:…}}"
    return "a token of the CDK, ${Token[…]}" if _CDK_TOKEN.search(text) else ""


def json_document(
    text: str | bytes,
    *,
    parse_constant: Callable[[str], object] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> object:
    """Parse JSON as `json.loads`, to the same depth on every Python.

    Python 3.11 parses about 1,000 levels, 3.13 about 10,000 and 3.14 some ten thousand more, each with words of its
    own beyond; a function that follows the document by calling itself ends at 1,000 on each.

    Raises:
        ValueError: It is no JSON, or nested more than 100 deep.
    """
    try:
        document: object = json.loads(text, parse_constant=parse_constant, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [document]
    for _ in range(MOST_DEPTH + 1):
        nested = [each for each in level if isinstance(each, dict | list)]
        if not nested:
            return document
        level = list(chain.from_iterable(each.values() if isinstance(each, dict) else each for each in nested))
    raise ValueError(_TOO_DEEP)
