"""The copies that a trial loads: those that are live, not those of the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial_load.model.progress import TrialProgress
    from seatrial_load.model.request import TrialRequest
    from seatrial_load.model.result import LiveProof


def live_request(request: TrialRequest, progress: TrialProgress) -> TrialRequest:
    """Return the request with the number of copies that was proven live; as it is, where none was.

    A level opens its concurrency for every copy, and what a trial costs is the price of all of them. Of a request that
    has the live number already, it is the same.
    """
    live = progress.live.copy_count
    if not progress.live.proven or live is None or live < 1 or live == request.copy_count:
        return request
    return replace(request, copy_count=live)


def beside_plan(live: LiveProof, planned: int | None) -> LiveProof:
    """Return the proof with the plan's number of copies, where another one was live; None is no other one."""
    if planned is None or not live.proven or live.copy_count is None:
        return live
    return replace(live, planned_copy_count=planned, because=f"{live.because}; the plan has {planned}")
