"""The queues of asynchronous endpoints: requests that wait, and those in progress."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncJob:
    """One asynchronous request.

    Attributes:
        inference_id: The caller's, or one made for it.
        input_location: The object with the body; empty when the request carried it.
        body: The body that the request carried; None when it is in S3.
        headers: What the container gets with the body.
        failure_location: Where the reason of a failure is written; empty for nowhere.
        received_s: When it came, in seconds since the epoch.
        queued_s: When it came, in virtual seconds.
        ttl_s: Virtual seconds after which it is no longer begun.
        timeout_s: Real seconds that the container may take.
    """

    endpoint: str
    inference_id: str
    input_location: str
    body: bytes | None
    headers: Mapping[str, str]
    output_location: str
    failure_location: str
    received_s: float
    queued_s: float
    ttl_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """The content of a queue at a moment.

    Attributes:
        size: Requests that wait or are being done.
        waiting: Requests that wait.
        oldest_s: When the oldest request that waits came, in virtual seconds; None when none waits.
    """

    size: int
    waiting: int
    oldest_s: float | None


@dataclass(slots=True)
class AsyncQueues:
    """The queue of every asynchronous endpoint; threads may share it."""

    _waiting: defaultdict[str, deque[AsyncJob]] = field(default_factory=lambda: defaultdict(deque))
    _busy: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _workers: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, job: AsyncJob) -> bool:
        """Queue a request; return whether its endpoint needs a worker, which then counts as begun."""
        with self._lock:
            self._waiting[job.endpoint].append(job)
            needs_worker = job.endpoint not in self._workers
            self._workers.add(job.endpoint)
        return needs_worker

    def first(self, endpoint: str) -> AsyncJob | None:
        """Return the request that waits longest; when none waits, the endpoint's worker has ended."""
        with self._lock:
            if not self._waiting[endpoint]:
                self._workers.discard(endpoint)
                return None
            return self._waiting[endpoint][0]

    def begin(self, job: AsyncJob) -> None:
        """Take a request out of the queue to do it; one that was forgotten meanwhile is done all the same."""
        with self._lock:
            if job in self._waiting[job.endpoint]:
                self._waiting[job.endpoint].remove(job)
            self._busy[job.endpoint] += 1

    def end(self, job: AsyncJob) -> None:
        """Count a request as done."""
        with self._lock:
            self._busy[job.endpoint] -= 1

    def backlog(self, endpoint: str) -> Backlog:
        """Return what a queue holds now."""
        with self._lock:
            waiting = self._waiting[endpoint]
            return Backlog(len(waiting) + self._busy[endpoint], len(waiting), waiting[0].queued_s if waiting else None)

    def close(self, endpoint: str) -> None:
        """Forget what waits: the endpoint is deleted."""
        with self._lock:
            self._waiting[endpoint].clear()
