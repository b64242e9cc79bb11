"""The two manners of a trial that spare users: single requests without load, and load up to what users leave."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial_base.units import whole_or_tenths
from seatrial_load.documents.progress import NextLevel, Step
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult, Unmeasured, UsersLoad


VERIFICATION_REQUESTS = 5
"""Single requests of a trial that adds no load, sent one after another."""


def room_per_copy(request: TrialRequest, users: UsersLoad | None) -> int:
    """Return how many requests in flight per copy users leave of the gate; 0 where their load is unknown.

    Formula: floor(gate - the users' concurrent requests per copy), at least 0. An open loop has no such bound, so 0.
    """
    if users is None or users.concurrency_per_copy is None or request.load.arrival != "closed":
        return 0
    return max(0, math.floor(request.gate_concurrency - users.concurrency_per_copy))


def adds_load(request: TrialRequest, users: UsersLoad | None) -> bool:
    """Tell whether the trial loads the endpoint: a verification doesn't, nor one that users leave no room for."""
    return request.manner == "load" or (request.manner == "in_place" and room_per_copy(request, users) > 0)


def next_sparing(request: TrialRequest, progress: TrialProgress) -> Step:
    """Choose the next level beside users, or say why there is none; of a trial whose manner isn't `load`."""
    if not adds_load(request, progress.users):
        return _verified(request, progress)
    if progress.levels and not progress.levels[-1].succeeded:
        at = progress.levels[-1].concurrency
        return Stop(reason=StopReason.NO_SUCCESS, because=f"no request succeeded at concurrency {at} per copy")
    room = room_per_copy(request, progress.users)
    wanted = levels_beside(room)
    if len(progress.levels) < len(wanted):
        level = wanted[len(progress.levels)]
        return NextLevel(concurrency=level, because=f"{level} of the {room} per copy that {_users(progress)} leave")
    because = f"{beside_users(progress.levels, progress.users)}; no knee was sought"
    return Stop(reason=StopReason.NO_KNEE_SOUGHT, because=because)


def levels_beside(room: int) -> tuple[int, ...]:
    """Return the levels up to a room per copy: half of it, then all."""
    half = room // 2
    return (half, room) if half else (room,)


def beside_users(levels: Sequence[LevelResult], users: UsersLoad | None) -> str:
    """Say what was loaded beside how much; the levels hold at least one."""
    highest = max(level.concurrency for level in levels)
    known = None if users is None else users.concurrency_per_copy
    others = "an unknown number" if known is None else f"about {whole_or_tenths(known)}"
    return f"{highest} requests per copy beside {others} of users"


def verification_of(unmeasured: Sequence[Unmeasured]) -> Unmeasured | None:
    """Return what was seen of the single requests; None where none was sent."""
    return next((seen for seen in unmeasured if seen.occasion == "verification"), None)


def _users(progress: TrialProgress) -> str:
    known = None if progress.users is None else progress.users.concurrency_per_copy
    return f"users with {0 if known is None else known:g} per copy"


def _verified(request: TrialRequest, progress: TrialProgress) -> Stop:
    seen = verification_of(progress.unmeasured)
    if seen is None or seen.succeeded < seen.sent:
        told = "no request was sent" if seen is None else f"{seen.succeeded} of {seen.sent} requests succeeded"
    else:
        told = f"verified by {seen.sent} requests"
    return Stop(reason=StopReason.VERIFIED, because=f"{told}; {_no_load(request, progress.users)}")


def _no_load(request: TrialRequest, users: UsersLoad | None) -> str:
    if request.manner == "verify":
        return "no load"
    if request.load.arrival != "closed":
        return f"no load: a {request.load.arrival} loop can't be kept within what users leave of the gate"
    if users is None:
        return "no load: the users' load is unknown"
    if users.concurrency_per_copy is None:
        return f"no load: {users.because}"
    gate = f"concurrency {request.gate_concurrency} per copy"
    return f"no load: users with {users.concurrency_per_copy:g} per copy leave nothing of the gate's {gate}"
