"""The load from which more stops paying: its range by the measured levels, and the level that narrows it down."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial_base.units import whole_or_tenths
from seatrial_load.documents.progress import NextLevel, Step
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.knee.detectors import saturation_of, throughputs
from seatrial_load.measure.saturation import FILLED, GROWN, WIDE, half_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.search.view import View

KNOWN = 1.1  # ends that differ by this factor or less
FARTHEST = 8.0  # most that one level may lie outside of what was measured, as a factor: load above the knee costs time
NEARLY_ALL = 0.93  # of the highest throughput: a level with as much is expected to be full
FLAT = 1.3  # twice the load with less than this factor of throughput: the next level is half-way, not above
BESIDE = 1.1  # a level within this factor of a load stands for it
NARROW = 1.25  # throughput falls between two loads that differ by this factor or less: known well enough
UNSEEN = 4  # two levels that differ by more hide a peak of throughput
LEAST, MOST = 8, 2  # the latency of the batch is drawn from an eighth of the filling load to twice as much


@dataclass(frozen=True, slots=True)
class Pays:
    """The range in which more load stops paying.

    Attributes:
        low: It pays up to here, whatever is measured above.
        high: It doesn't from here on.
        shown: The highest load that must be measured to know the target, if the SLO is met there: the gate, where that
            gives no less than the knee.
        settled: Whether more load would bring no more throughput.
        filling: Requests in flight that would fill the endpoint if none waited; None where nothing depends on them.
        fall: The measured loads between which throughput falls; None where it doesn't, or nothing depends on it.
    """

    low: float
    high: float
    shown: int
    settled: bool
    filling: float | None
    fall: tuple[float, float] | None

    @property
    def is_known(self) -> bool:
        """Whether the two are near enough."""
        return self.high <= self.low * KNOWN


def load_that_pays(view: View) -> Pays | None:
    """Return the range of the load from which more stops paying; None where no level has a throughput.

    It is that of `saturation`, at most the plan's batch limit, at least what copies are planned for
    (`leading_knee`). A level with errors above the others is as good as one without more throughput.
    """
    full = saturation_of(view.valid)
    if full is None:
        return None
    gate, limit = view.request.gate_concurrency, view.request.prior.batch_limit or view.top
    falls = full.falls_from is not None and full.falls_from < max(gate, FILLED * full.filling)
    utilization = view.request.target_utilization
    floor = full.planned(gate, utilization) / utilization  # the knee whose share is what copies are planned for
    refused = view.valid[-1].succeeded < view.valid[-1].requests
    at_most = full.load if refused else min(full.at_most, view.top)
    counts = max(floor, full.load / KNOWN) < min(limit, full.load * KNOWN)
    low = max(min(full.load, limit), floor)
    return Pays(
        low=low,
        high=max(min(at_most, limit), floor),
        shown=gate if low == floor else math.ceil(low),
        settled=full.settled,
        filling=full.filling if counts else None,
        fall=full.falls_between if falls else None,
    )


def stops_paying(pays: Pays) -> str:
    """Return where more load stops paying, in words."""
    return f"more load stops paying at {whole_or_tenths(min(pays.low, pays.shown))} per copy"


def settling(view: View, pays: Pays) -> Step:
    """Choose the level that narrows down most where more load stops paying; stop where none does."""
    lattice = doublings(view.bottom, view.top)
    highest = view.valid[-1].concurrency
    if (unseen := _unseen(view, pays, lattice)) is not None:
        return NextLevel(concurrency=unseen, because="throughput may be higher below the gate")
    if not pays.is_known and highest < lattice[-1]:
        return _higher(view, lattice, highest, pays)
    so_far = stops_paying(pays)
    if pays.fall is not None and pays.fall[1] > max(pays.fall[0] * NARROW, pays.fall[0] + 1):
        because = f"{so_far}: throughput falls between {pays.fall[0]:g} and {pays.fall[1]:g}"
        return NextLevel(concurrency=round(math.sqrt(pays.fall[0] * pays.fall[1])), because=because)
    if pays.filling is not None:
        wanted = [load for load in _steps(view, pays.filling, lattice) if pays.filling / LEAST <= load]
        missing = [load for load in wanted if not any(load / BESIDE <= at <= load * BESIDE for at in view.measured)]
        if missing:
            return NextLevel(concurrency=missing[-1], because=f"{so_far}; a level below steadies it")
    return Stop(reason=StopReason.GOAL_KNOWN, because=so_far)


def _steps(view: View, filling: float, lattice: Sequence[int]) -> list[int]:
    """Return the levels that steady the fit: twice as many, and higher ones, where throughput is known badly."""
    if half_interval(throughputs(view.valid)) <= WIDE:
        return [load for load in lattice if load <= filling * MOST]
    between = [round(math.sqrt(low * high)) for low, high in pairwise(lattice)]
    return sorted(load for load in {*lattice, *between} if load < view.valid[-1].concurrency)


def _unseen(view: View, pays: Pays, lattice: Sequence[int]) -> int | None:
    """Return a load between two levels so far apart that a peak of throughput may hide there; None without any.

    That is so above the lowest level, and where the upper one of two has hardly more. Above the load that pays no
    peak matters.
    """
    lowest = view.valid[0]
    for below, above in pairwise(view.valid):
        is_wide = above.concurrency > below.concurrency * UNSEEN and above.concurrency <= pays.low
        grown = (above.output_tok_s or 0.0) >= GROWN * (below.output_tok_s or 0.0)
        between = [load for load in lattice if below.concurrency < load < above.concurrency]
        if is_wide and between and (below is lowest or not grown):
            middle = math.log(below.concurrency * above.concurrency) / 2
            return min(between, key=lambda load: abs(math.log(load) - middle))
    return None


def doublings(bottom: int, top: int) -> list[int]:
    """Return the levels of the doubling sweep of a range, its top included."""
    loads = [bottom]
    while loads[-1] * 2 <= top:
        loads.append(loads[-1] * 2)
    return loads if loads[-1] == top else [*loads, top]


def _higher(view: View, lattice: Sequence[int], highest: int, pays: Pays) -> NextLevel:
    if (half := _halfway(view)) is not None:
        return NextLevel(concurrency=half, because=f"throughput may have stopped growing below {highest} per copy")
    following = lattice[bisect_right(lattice, highest)]
    if pays.settled:
        because = f"throughput has stopped growing; more load pays up to {whole_or_tenths(pays.high)} per copy at most"
        return NextLevel(concurrency=min(following, math.ceil(max(pays.high, highest * KNOWN))), because=because)
    expected = view.forecast.full(view.bottom, view.top, NEARLY_ALL) if view.forecast.predicted else None
    if expected is None or expected <= following:
        return NextLevel(concurrency=following, because=f"throughput may grow above {highest} per copy")
    reach = max(bisect_right(lattice, highest * FARTHEST) - 1, 0)
    wanted = lattice[min(bisect_left(lattice, expected), reach)]
    because = f"throughput is expected to saturate at {expected:.0f} per copy"
    return NextLevel(concurrency=max(wanted, following), because=because)


def _halfway(view: View) -> int | None:
    """Return half of the highest load, where throughput grew little on the way to it and nothing near was measured.

    It is above the level before: half of 3 would be 1 again.
    """
    if len(view.valid) < 2:  # noqa: PLR2004 (one level has grown from nothing)
        return None
    before, last = view.valid[-2], view.valid[-1]
    ratio, half = last.concurrency / before.concurrency, max(last.concurrency // 2, before.concurrency + 1)
    if ratio <= 2 * BESIDE or not before.output_tok_s or not last.output_tok_s:
        return None
    growth = (last.output_tok_s / before.output_tok_s) ** (1 / math.log2(ratio))
    return half if growth < FLAT else None
