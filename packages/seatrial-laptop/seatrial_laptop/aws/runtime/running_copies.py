"""The copies behind every inference component and every variant."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.runtime.copy_process import (
    CopyFailed,
    CopyProcess,
    await_ready,
    start_copy,
    stop_copy,
    watch_copy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from seatrial_laptop.aws.control_plane.containers import ContainerSpec


DRAIN_S: Final = 30.0
"""How long the requests in flight on a copy may take when it is to stop; real seconds."""
DRAIN_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """Where copies serve: an inference component (no variant), or a variant of an endpoint."""

    owner: str
    variant: str = ""

    @property
    def label(self) -> str:
        """A name for files."""
        return f"{self.owner}-{self.variant}" if self.variant else self.owner


@dataclass(frozen=True, slots=True)
class Preference:
    """Which copy a request prefers: the one of a number, counted around, while it has less than `most` requests."""

    number: int
    most: int


class RunningCopies:
    """Starts, swaps and stops the copies of every place.

    Args:
        state_dir: Where copies keep their files and logs.
        variables: What a process needs to start, beside the container's own environment.
        died: Called with the place and a sentence when a copy ends by itself.
    """

    def __init__(self, state_dir: Path, variables: Mapping[str, str], died: Callable[[CopyPlace, str], None]) -> None:
        self._state_dir = state_dir
        self._variables = variables
        self._died = died
        self._lock = threading.Lock()
        self._copies: dict[CopyPlace, tuple[CopyProcess, ...]] = {}
        self._standby: dict[CopyPlace, tuple[CopyProcess, ...]] = {}
        self._draining: set[CopyProcess] = set()
        self._closed = threading.Event()
        self._logs: dict[Path, CopyPlace] = {}
        self._listeners: list[Callable[[CopyPlace], object]] = []

    def tell_ended(self, listener: Callable[[CopyPlace], object]) -> None:
        """Call somebody with a place whose copies have ended for good, before what they wrote is forgotten."""
        with self._lock:
            self._listeners.append(listener)

    def keep_log(self, place: CopyPlace, log: Path) -> None:
        """Remember what a copy of a place writes, until the place is deleted."""
        with self._lock:
            self._logs[log] = place

    def logs(self) -> list[tuple[CopyPlace, Path]]:
        """Return what every copy wrote, also of those that ended, unless its place was deleted."""
        with self._lock:
            return [(place, log) for log, place in self._logs.items() if log.exists()]

    def copies(self, place: CopyPlace) -> tuple[CopyProcess, ...]:
        """Return the copies that serve a place."""
        with self._lock:
            return self._copies.get(place, ())

    def every_copy(self, place: CopyPlace) -> set[CopyProcess]:
        """Return the copies of a place, those on standby too."""
        with self._lock:
            return {*self._copies.get(place, ()), *self._standby.get(place, ())}

    def places(self) -> list[CopyPlace]:
        """Return every place that has copies."""
        with self._lock:
            return [place for place, copies in self._copies.items() if copies]

    def known_places(self) -> set[CopyPlace]:
        """Return every place that has copies or had some, and was not deleted."""
        with self._lock:
            return {*self._copies, *self._logs.values()}

    def reserve(self, place: CopyPlace, preference: Preference | None = None) -> CopyProcess | None:
        """Return the preferred copy, or the one with the least outstanding requests, or None when there is no copy.

        It has one more request then. A copy that was reserved is not stopped before its request has ended. Call it on
        the event loop only.
        """
        with self._lock:
            copies = self._copies.get(place, ())
            copy = min(copies, key=lambda each: each.outstanding, default=None)
            if preference and copies:
                wanted = copies[preference.number % len(copies)]
                copy = wanted if wanted.outstanding < preference.most else copy
            if copy:
                copy.reserve()
        return copy

    def launch(self, place: CopyPlace, spec: ContainerSpec, count: int) -> tuple[CopyProcess, ...]:
        """Start copies and wait until all are ready; they don't serve yet.

        Raises:
            CopyFailed: One of them didn't come into service; all of them were stopped.
        """
        started: list[CopyProcess] = []
        try:
            for _ in range(count):
                started.append(self._start(place, spec))  # noqa: PERF401 (a failure needs the ones before it)
            for copy in started:
                await_ready(copy, spec.health_timeout_s)
        except CopyFailed:
            stop_copies(started)
            raise
        except OSError as error:
            stop_copies(started)
            raise CopyFailed(f"The container's process could not be started: {error}") from error
        return tuple(started)

    def _start(self, place: CopyPlace, spec: ContainerSpec) -> CopyProcess:
        copy = start_copy(spec, self._variables, name=place.label, state_dir=self._state_dir)
        self.keep_log(place, copy.log)
        return copy

    def put(self, place: CopyPlace, copies: tuple[CopyProcess, ...], *, standby: tuple[CopyProcess, ...] = ()) -> None:
        """Let these copies serve a place, and stop those that did when their requests in flight have ended.

        Copies on standby get no requests and go on running until the next call.
        """
        with self._lock:
            before = {*self._copies.pop(place, ()), *self._standby.pop(place, ())}
            closed = self._closed.is_set()
            if copies and not closed:
                self._copies[place] = copies
            if standby and not closed:
                self._standby[place] = standby
        kept = {*copies, *standby}
        for copy in kept - before:
            watch_copy(copy, lambda dead: self._lose(place, dead))
        self._drain(kept | before if closed else before - kept)

    def delete(self, place: CopyPlace) -> None:
        """Stop the copies of a place that is deleted, let what they wrote be published, and forget it."""
        self.put(place, ())
        for listener in self._listeners:
            listener(place)
        with self._lock:
            self._logs = {log: each for log, each in self._logs.items() if each != place}

    def close(self) -> None:
        """Stop every copy, now and later, whatever they answer."""
        with self._lock:
            self._closed.set()
            held = (*self._copies.values(), *self._standby.values())
            every = [copy for copies in held for copy in copies] + list(self._draining)
            self._copies.clear()
            self._standby.clear()
        stop_copies(every)

    def _drain(self, copies: set[CopyProcess]) -> None:
        """Stop copies that get no more requests, each when its last one has ended or after `DRAIN_S`."""
        with self._lock:
            self._draining |= copies
        deadline = time.monotonic() + DRAIN_S
        while any(copy.outstanding for copy in copies) and time.monotonic() < deadline:
            if self._closed.wait(DRAIN_POLL_S):
                break
        stop_copies(copies)
        with self._lock:
            self._draining -= copies

    def _lose(self, place: CopyPlace, dead: CopyProcess) -> None:
        with self._lock:
            left = tuple(copy for copy in self._copies.get(place, ()) if copy is not dead)
            self._copies[place] = left
            self._standby[place] = tuple(copy for copy in self._standby.get(place, ()) if copy is not dead)
        dead.ended()
        sentence = f"A copy's container ended with status {dead.process.returncode}. Its last lines:"
        self._died(place, f"{sentence}\n{dead.last_lines()}")


def stop_copies(copies: Iterable[CopyProcess]) -> None:
    """Stop copies, all at once."""
    every = list(copies)
    if every:
        with ThreadPoolExecutor(max_workers=len(every)) as pool:
            list(pool.map(stop_copy, every))


@dataclass(slots=True)
class TrafficSplit:
    """What was given to whom so far; the event loop gives, other threads only forget."""

    _credit: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    _sampled: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    def pick(self, endpoint: str, weights: Mapping[str, float]) -> str:
        """Return the variant whose turn it is; without any weight all have the same."""
        shares = weights if any(weights.values()) else dict.fromkeys(weights, 1.0)
        for name, weight in shares.items():
            self._credit[endpoint, name] += weight
        chosen = max(shares, key=lambda name: self._credit[endpoint, name] if shares[name] else float("-inf"))
        self._credit[endpoint, chosen] -= sum(shares.values())
        return chosen

    def samples(self, endpoint: str, purpose: str, share: float) -> bool:
        """Return whether this request is one of the share (0 to 1) that is sampled for a purpose."""
        key = (endpoint, purpose)
        self._sampled[key] += min(max(share, 0.0), 1.0)
        if self._sampled[key] < 1.0 - 1e-9:
            return False
        self._sampled[key] -= 1.0
        return True

    def forget(self, endpoint: str) -> None:
        """Start anew: the endpoint was deleted, or its weights were changed."""
        for counts in (self._credit, self._sampled):
            for key in [key for key in list(counts) if key[0] == endpoint]:
                counts.pop(key, None)
