"""When a level's throughput is taken, and how much of a request falls into that time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.measure.distribution import percentile
from seatrial.measure.interval import SLICES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.load import Arrival, PreparedBy
    from seatrial.bench.record import RequestRecord
    from seatrial.bench.result import Window

ROUND_SHARE = 0.9  # answers of one round end a little apart, so that a window of one round is often a little shorter


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTime:
    """The time over which throughput is taken, in seconds of the trial's clock.

    Attributes:
        kind: `steady` while all streams were busy; `whole` from the first sending to the last answer.
        opened_s: Its start.
        closed_s: Its end.
    """

    kind: Window
    opened_s: float
    closed_s: float

    @property
    def length_s(self) -> float:
        """How long it is."""
        return self.closed_s - self.opened_s

    def edges_s(self) -> tuple[float, ...]:
        """Return where its equal slices begin and end."""
        return tuple(self.opened_s + self.length_s * number / SLICES for number in range(SLICES + 1))


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
    """Choose the time over which a level's throughput is taken.

    The steady window opens at the first sending of a measured request and closes when the last request is sent: until
    then every stream has a request in flight, afterwards fewer and fewer have. It is taken only when it is as long as a
    request, lest it show a part of the round in which requests that were sent together go on together: with C streams
    that takes 2 x C requests, ramp included. Else the whole level is taken, ramp included, with its slow start and end.

    Args:
        records: Every request of the level, at least one.
        ramp: So many first requests aren't measured.
        steady: Whether the load is one that has a steady window (`has_steady_window`).
    """
    _, measured = split(records, ramp)
    whole = MeasuredTime(
        kind="whole",
        opened_s=min(record.sent_s if record.due_s is None else min(record.due_s, record.sent_s) for record in records),
        closed_s=max(record.ended_s for record in records),
    )
    seconds = sorted(record.ended_s - record.sent_s for record in measured if record.succeeded)
    if not steady or not seconds:
        return whole
    sent_s = [record.sent_s for record in measured]
    window = MeasuredTime(kind="steady", opened_s=min(sent_s), closed_s=max(sent_s))
    return window if window.length_s >= ROUND_SHARE * percentile(seconds, 50) > 0 else whole


def share_by(record: RequestRecord, at_s: float) -> float:
    """Return how much of a request was done by a time, 0 to 1: the share of its time from sending to end that was over.

    Requests, their prompts and their answers count in a window by the share of their time inside. Requests that were
    sent together end together: counted by their ends, a window that opens or closes among such ends would hold up to a
    whole round too many; with tokens counted as they arrive, it would hold more of the beginnings, when none arrives,
    than of the ends. While all streams are busy, this way yields streams x tokens / time of a request wherever the
    window lies.
    """
    if at_s >= record.ended_s:
        return 1.0
    return (at_s - record.sent_s) / (record.ended_s - record.sent_s) if at_s > record.sent_s else 0.0


def share_inside(record: RequestRecord, time: MeasuredTime) -> float:
    """Return the share of a request's time that lies in a window, 0 to 1."""
    return share_by(record, time.closed_s) - share_by(record, time.opened_s)
