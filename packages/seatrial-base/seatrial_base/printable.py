"""Keeps control and direction characters of files, servers and AWS out of what people read."""

from __future__ import annotations

import unicodedata

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, layout: str = "\n") -> str:
    r"""Replace every character that isn't shown as itself by U+FFFD, other spaces by a plain one.

    Replaced are the control characters C0 and C1, with them escape sequences; direction marks such as U+202E;
    characters of no width such as U+200B; line and paragraph separators; lone surrogates; what Unicode has not
    assigned.

    Args:
        text: Any text.
        layout: The characters that stay though they aren't shown: line breaks, on a terminal tabs too.
    """
    if all(map(str.isprintable, text.split("\n") if "\n" in layout else (text,))):
        return text
    return "".join(character if character in layout else _shown(character) for character in text)


def unprintable(text: str, *, layout: str = "") -> str:
    """Name the first character of a text that isn't shown as itself; empty when there is none.

    Args:
        text: Any text.
        layout: The characters that may stand in it all the same.
    """
    found = next((one for one in text if not (one.isprintable() or one in layout)), None)
    return "" if found is None else f"U+{ord(found):04X} ({unicodedata.name(found, _kind(found))})"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if unicodedata.category(character) == "Zs" else REPLACEMENT


def _kind(character: str) -> str:
    kinds = {"Cc": "a control character", "Cs": "half of a surrogate pair", "Co": "a character of private use"}
    return kinds.get(unicodedata.category(character), "a character that Unicode has not assigned")
