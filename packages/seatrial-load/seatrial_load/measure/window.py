"""When a level's throughput is taken, and how much of a request falls into that time: measured or simulated alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_load.measure.distribution import percentile
from seatrial_load.measure.interval import SLICES

if TYPE_CHECKING:
    from collections.abc import Sequence

Window: TypeAlias = Literal["steady", "whole"]
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


def steady_window(sent_s: Sequence[float], seconds: Sequence[float]) -> MeasuredTime | None:
    """Return the time while all streams of a closed loop are busy; None where it is shorter than a request.

    It opens at the first sending of a measured request and closes when the last request is sent: until then every
    stream has a request in flight, afterwards fewer and fewer have. It is taken only when it is as long as a request,
    lest it show a part of the round in which requests that were sent together go on together: with C streams that takes
    2 x C requests, ramp included.

    Args:
        sent_s: When the measured requests were sent.
        seconds: How long those of them took that succeeded, ascending.
    """
    if not seconds:
        return None
    window = MeasuredTime(kind="steady", opened_s=min(sent_s), closed_s=max(sent_s))
    return window if window.length_s >= ROUND_SHARE * percentile(seconds, 50) > 0 else None


def share_by(sent_s: float, ended_s: float, at_s: float) -> float:
    """Return how much of a request was done by a time, 0 to 1: the share of its time from sending to end that was over.

    Requests, their prompts and their answers count in a window by the share of their time inside. Requests that were
    sent together end together: counted by their ends, a window that opens or closes among such ends would hold up to a
    whole round too many; with tokens counted as they arrive, it would hold more of the beginnings, when none arrives,
    than of the ends. While all streams are busy, this way yields streams x tokens / time of a request wherever the
    window lies.
    """
    if at_s >= ended_s:
        return 1.0
    return (at_s - sent_s) / (ended_s - sent_s) if at_s > sent_s else 0.0


def share_inside(sent_s: float, ended_s: float, time: MeasuredTime) -> float:
    """Return the share of a request's time that lies in a window, 0 to 1."""
    return share_by(sent_s, ended_s, time.closed_s) - share_by(sent_s, ended_s, time.opened_s)
