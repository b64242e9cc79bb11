"""Split of requests over components by weight; the client and the router's function share it.

It ships in the router's archive and needs the standard library only.
"""

from __future__ import annotations

import math
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGEST_BITS = 64


def choose_traffic(weights: Mapping[str, float], fraction: float) -> str:
    """Return the component whose share of the traffic contains a fraction.

    Args:
        weights: Weight of each component, 0 or more; at least one is above 0.
        fraction: From 0 to below 1.

    Raises:
        ValueError: No weight is above 0.
    """
    shares = [(name, weight) for name, weight in sorted(weights.items()) if weight > 0]
    if not shares:
        raise ValueError("no weight is above 0")
    left = fraction * math.fsum(weight for _, weight in shares)
    for name, weight in shares:
        if left < weight:
            return name
        left -= weight
    return shares[-1][0]


def fraction_of(session_id: str) -> float:
    """Return the fraction of a session: the same for the same ID, spread evenly over IDs."""
    number = int.from_bytes(sha256(session_id.encode()).digest()[: _DIGEST_BITS // 8])
    return float(number / 2**_DIGEST_BITS)
