"""When the throughput of a measured level is taken (`seatrial_load.measure.window` says what a window is)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_load.measure.window import MeasuredTime, steady_window
from seatrial_load.measure.window import share_by as share_of_span
from seatrial_load.measure.window import share_inside as share_of_span_inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.model.request import Arrival, PreparedBy


def has_steady_window(arrival: Arrival, protocol: PreparedBy) -> bool:
    """Tell whether throughput is to be taken while all streams are busy.

    An open loop has no such time: it is as busy as what was offered makes it. The published protocol (jumpstart-2024)
    takes the whole level, so its numbers compare with the published ones only if we do, too.
    """
    return arrival == "closed" and protocol == "seatrial"


def split(records: Sequence[RequestRecord], ramp: int) -> tuple[Sequence[RequestRecord], Sequence[RequestRecord]]:
    """Part the first `ramp` requests, in the order of their numbers, from those whose latencies count."""
    ordered = sorted(records, key=lambda record: record.index)
    return ordered[:ramp], ordered[ramp:]


def measured_time(records: Sequence[RequestRecord], *, ramp: int, steady: bool) -> MeasuredTime:
    """Choose the time over which a level's throughput is taken: the steady window, else the whole level.

    The whole level has the ramp in it, with its slow start and end.

    Args:
        records: Every request of the level, at least one.
        ramp: So many first requests aren't measured.
        steady: Whether the load is one that has a steady window (`has_steady_window`).
    """
    _, measured = split(records, ramp)
    seconds = sorted(record.ended_s - record.sent_s for record in measured if record.succeeded)
    window = steady_window([record.sent_s for record in measured], seconds) if steady else None
    return window or MeasuredTime(
        kind="whole",
        opened_s=min(record.sent_s if record.due_s is None else min(record.due_s, record.sent_s) for record in records),
        closed_s=max(record.ended_s for record in records),
    )


def share_by(record: RequestRecord, at_s: float) -> float:
    """Return how much of a request was done by a time, 0 to 1."""
    return share_of_span(record.sent_s, record.ended_s, at_s)


def share_inside(record: RequestRecord, time: MeasuredTime) -> float:
    """Return the share of a request's time that lies in a window, 0 to 1."""
    return share_of_span_inside(record.sent_s, record.ended_s, time)
