"""How counts are written in a plan's sentences."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun: `1 copy`, `2 copies`, `1,024 tokens`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
