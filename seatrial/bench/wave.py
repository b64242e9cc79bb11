"""What one run of the client sends, and when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.bench.holding import LEAST, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One run of the client. Its k-th request has the index first_index + k x stride.

    Attributes:
        streams: Requests kept in flight; in an open loop, the most that may be.
        requests: Requests to send in all.
        timeout_s: An attempt not answered in full by then is given up.
        deadline_s: The whole wave is given up at this time of the clock.
        first_index: The first request's number, as the writer of requests knows it.
        stride: From one request's number to the next one's.
        start_s: Nothing is sent before this time of the clock; None starts as soon as all connections are open.
        due_s: Seconds after the start at which each request must leave, ascending, whatever is in flight; None is the
            closed loop. A request that finds every stream busy leaves late.
        stall_timeout_s: An answer that has begun and then is silent for so long has failed; None waits for the timeout.
        max_retries: How often a request is repeated that was throttled, or whose model wasn't ready.
        measured_from: Requests with a lower index aren't measured: `enough` and `least_requests` don't count them.
        least_requests: `enough` isn't asked before so many measured requests ended well.
        enough: Asked now and then, with the end-to-end seconds of the measured requests that ended well so far, in
            order of ending; a reason that isn't empty ends the sending. Well is HTTP 200 and complete: what the answer
            says is read later. It gets at most 2 % of the time, and is asked between reads, so it should be quick.
        stop: Asked ten times a second; a reason that isn't empty gives the whole wave up at once, in flight or not.
        limits: What a server may make the client keep; several processes share it.
        tell: Told every five seconds how many requests ended so far, those of all processes that are known.
    """

    streams: int
    requests: int
    timeout_s: float
    deadline_s: float
    first_index: int = 0
    stride: int = 1
    start_s: float | None = None
    due_s: Sequence[float] | None = None
    stall_timeout_s: float | None = None
    max_retries: int = 0
    measured_from: int = 0
    least_requests: int = 0
    enough: Callable[[Sequence[float]], str] | None = None
    stop: Callable[[], str] | None = None
    tell: Callable[[int], None] | None = None
    limits: Limits = LEAST

    def share(self, worker: int, workers: int) -> Wave:
        """Return one worker's share: every `workers`-th request, and its part of the streams."""
        return replace(
            self,
            streams=len(range(worker, self.streams, workers)),
            requests=len(range(worker, self.requests, workers)),
            first_index=self.first_index + worker * self.stride,
            stride=self.stride * workers,
            limits=self.limits.share(workers),
            due_s=None if self.due_s is None else tuple(self.due_s[worker::workers]),
        )
