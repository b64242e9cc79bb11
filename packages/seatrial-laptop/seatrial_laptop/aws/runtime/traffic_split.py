"""Which variant gets a request, and which requests are sampled: exact shares in turn, so that tests are repeatable.

SageMaker draws lots; over many requests the shares are the same.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class TrafficSplit:
    """What was given to whom so far; the event loop gives, other threads only forget."""

    _credit: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    _sampled: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    def pick(self, endpoint: str, weights: Mapping[str, float]) -> str:
        """Return the variant whose turn it is; without any weight all have the same."""
        shares = weights if any(weights.values()) else dict.fromkeys(weights, 1.0)
        for name, weight in shares.items():
            self._credit[endpoint, name] += weight
        chosen = max(shares, key=lambda name: self._credit[endpoint, name] if shares[name] else float("-inf"))
        self._credit[endpoint, chosen] -= sum(shares.values())
        return chosen

    def samples(self, endpoint: str, purpose: str, share: float) -> bool:
        """Return whether this request is one of the share (0 to 1) that is sampled for a purpose."""
        key = (endpoint, purpose)
        self._sampled[key] += min(max(share, 0.0), 1.0)
        if self._sampled[key] < 1.0 - 1e-9:
            return False
        self._sampled[key] -= 1.0
        return True

    def forget(self, endpoint: str) -> None:
        """Start anew: the endpoint was deleted, or its weights were changed."""
        for counts in (self._credit, self._sampled):
            for key in [key for key in list(counts) if key[0] == endpoint]:
                counts.pop(key, None)
