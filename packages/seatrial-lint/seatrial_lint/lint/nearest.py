"""The known name that is written most like another."""

from __future__ import annotations

import difflib
import heapq
from collections import Counter, defaultdict
from functools import cache

_COMPARED = 5  # names that are compared letter by letter


def nearest_of(name: str, names: tuple[str, ...]) -> str:
    """Return the name that is written most like another; empty when none is near."""
    return nearest_in(name, names, 0.6)


@cache
def nearest_in(name: str, names: tuple[str, ...], cutoff: float) -> str:
    """Compare with the few names that share most pairs of letters, because comparing with all is slow."""
    shared = Counter(at for pair in _pairs(name[:80]) for at in _having(names).get(pair, ()))
    shares = ((count / (len(names[at]) + len(name)), -at) for at, count in shared.items())
    alike = [names[-at] for _, at in heapq.nlargest(_COMPARED, shares)]
    found = difflib.get_close_matches(name[:80], alike, n=1, cutoff=cutoff)
    return found[0] if found else ""


@cache
def _having(names: tuple[str, ...]) -> dict[str, list[int]]:
    """Return for each pair of letters the places of the names that have it."""
    places: dict[str, list[int]] = defaultdict(list)
    for at, name in enumerate(names):
        for pair in _pairs(name):
            places[pair].append(at)
    return dict(places)


def _pairs(name: str) -> frozenset[str]:
    return frozenset(name[at : at + 2] for at in range(len(name) - 1))
