"""Where an endpoint is saturated: the load at which its highest throughput would be reached at its unloaded pace.

Operational analysis (Lazowska, Zahorjan, Graham and Sevcik, Quantitative System Performance, 1984, 5.2): throughput is
at most what it is unloaded times the requests in flight, and at most its highest value. The two bounds meet at

    N* = C_1 x X_max / X(C_1)

with C_1 the lowest load: the highest throughput over that of one request in flight. By Little's law N* is the number of
requests in flight that fill the endpoint if none waits. It takes a ratio of two throughputs and no slope, and doesn't
depend on where the levels between lie: of simulated endpoints whose levels vary by 2 %, ten trials differ by at most
13 %; by the breakpoint of two lines they differ by up to 100 % (benchmarks/search/stability.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.measure.distribution import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.measure.crossing import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The load that saturates an endpoint.

    Attributes:
        load: Requests in flight per copy; at most the highest measured load.
        lowest: The throughput at the lowest load.
        highest: The highest throughput.
        is_reached: Whether throughput fell behind the load at all, so that the load isn't just the highest measured.
        interval: 95 % interval of the load; None without intervals of throughput.
    """

    load: float
    lowest: Reading
    highest: Reading
    is_reached: bool
    interval: Interval | None


def saturation(throughputs: Sequence[Reading]) -> Saturation | None:
    """Find the load that saturates; None without any throughput.

    Args:
        throughputs: Throughput by load, ascending, each load once.
    """
    positive = [one for one in throughputs if one.value > 0]
    if not positive:
        return None
    lowest, highest = positive[0], max(positive, key=lambda one: one.value)
    most = positive[-1].load
    load = lowest.load * highest.value / lowest.value
    return Saturation(
        load=min(load, most),
        lowest=lowest,
        highest=highest,
        is_reached=load < most,
        interval=_interval(lowest, highest, most),
    )


def _interval(lowest: Reading, highest: Reading, most: float) -> Interval | None:
    low, high = lowest.interval, highest.interval
    if low is None or high is None or not low.low or low.high is None or high.low is None or high.high is None:
        return None
    ends = (lowest.load * high.low / low.high, lowest.load * high.high / low.low)
    return Interval(low=min(ends[0], most), high=min(ends[1], most))
