"""How long a trial may take: by its budget in time and by that in money."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.units import S_PER_HOUR
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import Load, TrialRequest
    from seatrial_load.documents.result import LiveProof


def budget_s(request: TrialRequest) -> float:
    """Return how long the trial may measure, whichever budget ends first.

    Formula: budget_usd / (price per hour and copy x copies) x 3600 s; the whole trial is paid for.
    """
    load, price = request.load, request.usd_per_hour_per_copy
    if load.budget_usd is None or price is None:
        return load.budget_s
    return min(load.budget_s, load.budget_usd / (price * request.copy_count) * S_PER_HOUR)


def left_s(request: TrialRequest, progress: TrialProgress) -> float:
    """Return how much longer the trial may measure."""
    return budget_s(request) - progress.elapsed_s


def budget_over(request: TrialRequest) -> Stop:
    """Return that the budget ended: the one that ends first."""
    load, longest_s = request.load, budget_s(request)
    if longest_s < load.budget_s:
        because = f"the budget of {load.budget_usd:g} USD was spent after {longest_s:.0f} s"
    else:
        because = f"the budget of {load.budget_s:g} s ended"
    return Stop(reason=StopReason.BUDGET, because=because)


def live_request(request: TrialRequest, progress: TrialProgress) -> TrialRequest:
    """Return the request with the number of copies that was proven live; as it is, where none was.

    A level opens its concurrency for every copy, what a trial costs is the price of all of them, and rates for so many
    copies become those of the live ones. Of a request that has the live number already, it is the same.
    """
    live = progress.live.copy_count
    if not progress.live.proven or live is None or live < 1 or live == request.copy_count:
        return request
    return replace(request, copy_count=live, load=_for_copies(request.load, live))


def _for_copies(load: Load, copies: int) -> Load:
    if load.rates_for_copies is None:
        return load
    share, gate = copies / load.rates_for_copies, load.gate_rate_per_s
    return replace(
        load,
        rates_per_s=tuple(rate * share for rate in load.rates_per_s),
        rates_for_copies=copies,
        gate_rate_per_s=None if gate is None else gate * share,
    )


def beside_plan(live: LiveProof, planned: int | None) -> LiveProof:
    """Return the proof with the plan's number of copies, where another one was live; None is no other one."""
    if planned is None or not live.proven or live.copy_count is None:
        return live
    return replace(live, planned_copy_count=planned, because=f"{live.because}; the plan has {planned}")
