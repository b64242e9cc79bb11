"""Keeps control and direction characters that came over the network out of what people read."""

from __future__ import annotations

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Replace every character that isn't printable, but line breaks, by the replacement character."""
    return "".join(character if character.isprintable() or character == "\n" else REPLACEMENT for character in text)
