"""Which requests run, which wait, which are refused: slots and a token budget, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Overloaded(Exception):  # noqa: N818 (an answer to the client, not a failure)
    """As many requests are in flight as the container admits."""


class Admission:
    """The queue of a container.

    Attributes:
        running: Requests that hold a slot.
        waiting: Requests that wait for one.
    """

    def __init__(self, *, slots: int, batch_total_tokens: int, max_in_flight: int) -> None:
        self._slots = slots
        self._free_tokens = batch_total_tokens
        self._max_in_flight = max_in_flight
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.running = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[None]:
        """Hold a slot and a share of the token budget; waits in order of arrival.

        Raises:
            Overloaded: The container admits no further request.
        """
        if self.running + self.waiting >= self._max_in_flight:
            raise Overloaded
        await self._turn(tokens)
        try:
            yield
        finally:
            self.running -= 1
            self._free_tokens += tokens
            self._start_next()

    async def _turn(self, tokens: int) -> None:
        entry = (tokens, asyncio.get_running_loop().create_future())
        self._queue.append(entry)
        self._start_next()
        try:
            await entry[1]
        except asyncio.CancelledError:
            self._withdraw(entry)
            raise

    def _withdraw(self, entry: tuple[int, asyncio.Future[None]]) -> None:
        if entry in self._queue:
            self._queue.remove(entry)
        else:  # its turn had come in the same moment: give the place back
            self.running -= 1
            self._free_tokens += entry[0]
        self._start_next()

    def _start_next(self) -> None:
        while self._queue and self.running < self._slots and self._queue[0][0] <= self._free_tokens:
            tokens, turn = self._queue.popleft()
            self.running += 1
            self._free_tokens -= tokens
            turn.set_result(None)
