"""The budget of a trial: time, money, and what users leave of the endpoint.

Two kinds of trial spare users: one that verifies with single requests, and one that loads up to what users leave.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.units import S_PER_HOUR, whole_or_tenths
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.progress import NextLevel, Step
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult, LiveProof, Unmeasured, UsersLoad


def budget_s(request: TrialRequest) -> float:
    """Return how long the trial may measure, by the budget that ends first.

    Formula: budget_usd / (price per hour and copy x copies) x 3600 s; the whole trial is paid for.
    """
    load, price = request.load, request.usd_per_hour_per_copy
    if load.budget_usd is None or price is None:
        return load.budget_s
    return min(load.budget_s, load.budget_usd / (price * request.copy_count) * S_PER_HOUR)


_OVERLOAD_SHARE, _OVERLOAD_S = 0.25, 60.0


def left_s(request: TrialRequest, progress: TrialProgress) -> float:
    """Return how much longer the trial may measure; its levels leave the proof of overload a quarter, or a minute."""
    time_s = budget_s(request)
    for_levels = request.overload != "off" and progress.stopped is None
    return time_s - progress.elapsed_s - (min(_OVERLOAD_S, _OVERLOAD_SHARE * time_s) if for_levels else 0.0)


def budget_over(request: TrialRequest) -> Stop:
    """Return that the budget ended: the one that ends first."""
    load, longest_s = request.load, budget_s(request)
    if longest_s < load.budget_s:
        because = f"the budget of {load.budget_usd:g} USD was spent after {longest_s:.0f} s"
    else:
        because = f"the budget of {load.budget_s:g} s ended"
    return Stop(reason=StopReason.BUDGET, because=because)


def live_request(request: TrialRequest, progress: TrialProgress) -> TrialRequest:
    """Return the request with what the trial has found out: the field of the limit of tokens, and the live copies.

    A level opens its concurrency for every copy, what a trial costs is the price of all of them, and rates for a number
    of copies become those of the live ones. A request with the live number stays as it is.
    """
    if (key := progress.max_tokens_key) != request.workload.max_tokens_key:
        request = replace(request, workload=replace(request.workload, max_tokens_key=key))
    live = progress.live.copy_count
    if not progress.live.proven or live is None or live < 1 or live == request.copy_count:
        return request
    load = request.load
    if load.rates_for_copies is not None:
        share, gate = live / load.rates_for_copies, load.gate_rate_per_s
        load = replace(
            load,
            rates_per_s=tuple(rate * share for rate in load.rates_per_s),
            rates_for_copies=live,
            gate_rate_per_s=None if gate is None else gate * share,
        )
    return replace(request, copy_count=live, load=load)


def beside_plan(live: LiveProof, planned: int | None) -> LiveProof:
    """Return the proof with the plan's number of copies, where another one was live; None is no other one."""
    if planned is None or not live.proven or live.copy_count is None:
        return live
    return replace(live, planned_copy_count=planned, because=f"{live.because}; the plan has {planned}")


# Single requests of a trial that adds no load, sent one after another.
VERIFICATION_REQUESTS = 5


def room_per_copy(request: TrialRequest, users: UsersLoad | None) -> int:
    """Return how many requests in flight per copy users leave of the gate; 0 where their load is unknown.

    Formula: floor(gate - the users' concurrent requests per copy), at least 0. An open loop has no such bound, so 0.
    """
    if users is None or users.concurrency_per_copy is None or ARRIVALS[request.load.arrival].is_open:
        return 0
    return max(0, math.floor(request.gate_concurrency - users.concurrency_per_copy))


def adds_load(request: TrialRequest, users: UsersLoad | None) -> bool:
    """Return whether the trial loads the endpoint: a verification doesn't, nor one that users leave no capacity for."""
    return request.manner == "load" or (request.manner == "in_place" and room_per_copy(request, users) > 0)


def next_sparing(request: TrialRequest, progress: TrialProgress) -> Step:
    """Choose the next level alongside users, or return why there is none; of a trial whose manner isn't `load`."""
    if not adds_load(request, progress.users):
        seen = verification_of(progress.unmeasured)
        if seen is None or seen.succeeded < seen.sent:
            outcome = "no request was sent" if seen is None else f"{seen.succeeded} of {seen.sent} requests succeeded"
        else:
            outcome = f"verified by {seen.sent} requests"
        return Stop(reason=StopReason.VERIFIED, because=f"{outcome}; {_no_load(request, progress.users)}")
    if progress.levels and not progress.levels[-1].succeeded:
        at = progress.levels[-1].concurrency
        return Stop(reason=StopReason.NO_SUCCESS, because=f"no request succeeded at concurrency {at} per copy")
    room = room_per_copy(request, progress.users)
    wanted = levels_beside(room)
    if len(progress.levels) < len(wanted):
        level, known = wanted[len(progress.levels)], None if progress.users is None else progress.users
        users = f"users with {(known and known.concurrency_per_copy) or 0:g} per copy"
        return NextLevel(concurrency=level, because=f"{level} of the {room} per copy that {users} leave")
    because = f"{beside_users(progress.levels, progress.users)}; no knee was sought"
    return Stop(reason=StopReason.NO_KNEE_SOUGHT, because=because)


def levels_beside(room: int) -> tuple[int, ...]:
    """Return the levels up to a capacity per copy: half of it, then all."""
    half = room // 2
    return (half, room) if half else (room,)


def beside_users(levels: Sequence[LevelResult], users: UsersLoad | None) -> str:
    """Return the load alongside the users' one, in words, of one level or more."""
    highest = max(level.concurrency for level in levels)
    known = None if users is None else users.concurrency_per_copy
    others = "an unknown number" if known is None else f"about {whole_or_tenths(known)}"
    return f"{highest} requests per copy alongside {others} of users"


def verification_of(unmeasured: Sequence[Unmeasured]) -> Unmeasured | None:
    """Return the outcome of the single requests; None where none was sent."""
    return next((seen for seen in unmeasured if seen.occasion == "verification"), None)


def _no_load(request: TrialRequest, users: UsersLoad | None) -> str:
    if request.manner == "verify":
        return "no load"
    if ARRIVALS[request.load.arrival].is_open:
        return f"no load: a {request.load.arrival} loop can't be kept within what users leave of the gate"
    if users is None:
        return "no load: the users' load is unknown"
    if users.concurrency_per_copy is None:
        return f"no load: {users.because}"
    gate = f"concurrency {request.gate_concurrency} per copy"
    return f"no load: users with {users.concurrency_per_copy:g} per copy leave nothing of the gate's {gate}"
