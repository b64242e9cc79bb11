"""What a test orders of the fault proxy, and what the proxy tells it did: one JSON line each way."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Which requests get which fault; those it spares are passed on untouched.

    Attributes:
        fault: A name of `faults.FAULTS`.
        share: Share of the requests that get it; drawn by the request's number, so a seed always names the same ones.
        seed: Of the draw, and of random bytes.
        skip: So many first requests are spared.
        most: No more than this many get it; None is no such bound.
        after_chunks: So many chunks of the answer arrive untouched.
        ahead_s: How far the service's clock is ahead of this machine's.
        tells_date: Whether its refusals carry the header `Date`.
        token: The session token that has expired.
        pid: The process that dies.
    """

    fault: str = "pass_on"
    share: float = 1.0
    seed: int = 1
    skip: int = 0
    most: int | None = None
    after_chunks: int = 2
    ahead_s: float = 0.0
    tells_date: bool = True
    token: str = ""
    pid: int = 0

    def draws(self, number: int) -> bool:
        """Tell whether the request with this number, from 0, is to get the fault."""
        drawn = random.Random(f"{self.seed}:{number}").random() < self.share  # noqa: S311 (a draw that can be repeated)
        return number >= self.skip and drawn

    def to_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Order:
        return cls(**json.loads(line))


@dataclass(slots=True)
class Tally:
    """What came by since an order.

    Attributes:
        seen: Requests.
        hit: Those of them that got the fault.
    """

    seen: int = 0
    hit: int = 0


HARMLESS = Order()


def five_percent(fault: str) -> Order:
    """Order a fault for 2 of 40 requests, the numbers 13 and 30."""
    return Order(fault=fault, share=0.05, seed=16)


def ten_percent(fault: str) -> Order:
    """Order a fault for 4 of 40 requests, and of 44: the numbers 5, 12, 20 and 37."""
    return Order(fault=fault, share=0.1, seed=22)
