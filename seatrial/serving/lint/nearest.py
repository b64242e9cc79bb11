"""The known name that is written most like another."""

from __future__ import annotations

import difflib
import heapq
from functools import cache

_COMPARED = 5  # names that are compared letter by letter


def nearest_of(name: str, names: tuple[str, ...]) -> str:
    """Return the name that is written most like another; empty when none is near."""
    return nearest_in(name, names, 0.6)


@cache
def nearest_in(name: str, names: tuple[str, ...], cutoff: float) -> str:
    """Compare with the few names that share most pairs of letters, because comparing with all is slow."""
    pairs, length = _pairs(name[:80]), len(name)
    shares = [(len(pairs & known) / (size + length), -at) for at, (known, size) in enumerate(_prepared(names))]
    alike = [names[-at] for _, at in heapq.nlargest(_COMPARED, shares)]
    found = difflib.get_close_matches(name[:80], alike, n=1, cutoff=cutoff)
    return found[0] if found else ""


@cache
def _prepared(names: tuple[str, ...]) -> tuple[tuple[frozenset[str], int], ...]:
    return tuple((_pairs(name), len(name)) for name in names)


@cache
def _pairs(name: str) -> frozenset[str]:
    return frozenset(name[at : at + 2] for at in range(len(name) - 1))
