"""What has something to read: Linux's epoll itself, elsewhere whatever the standard library chooses."""

from __future__ import annotations

import select
import selectors
import sys
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

OwnerT = TypeVar("OwnerT")


class _Poller(Protocol):
    def register(self, descriptor: int, events: int, /) -> object: ...
    def modify(self, descriptor: int, events: int, /) -> object: ...
    def unregister(self, descriptor: int, /) -> object: ...
    def poll(self, timeout_s: float, /) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class Watch(Generic[OwnerT]):
    """Watches descriptors, each for one owner; `selectors` would build an object for every event of the hot path.

    Attributes:
        owners: Who owns each watched descriptor.
        poll: Waits at most so many seconds; returns the ready descriptors with their events.
    """

    __slots__ = ("_masks", "_poller", "owners", "poll")

    def __init__(self) -> None:
        self.owners: dict[int, OwnerT] = {}
        self._poller, self._masks = _poller()
        self.poll: Callable[[float], list[tuple[int, int]]] = self._poller.poll

    def set(self, descriptor: int, events: int, owner: OwnerT) -> None:
        """Watch a descriptor for `selectors.EVENT_READ`, `EVENT_WRITE` or both, until `forget`."""
        known = descriptor in self.owners
        self.owners[descriptor] = owner
        (self._poller.modify if known else self._poller.register)(descriptor, self._masks[events])

    def forget(self, descriptor: int) -> None:
        """Watch a descriptor no longer; to be called before it is closed."""
        del self.owners[descriptor]
        self._poller.unregister(descriptor)

    def close(self) -> None:
        """Give back the kernel's object."""
        self._poller.close()


class _SelectorPoller:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.register = self._selector.register
        self.modify = self._selector.modify
        self.unregister = self._selector.unregister
        self.close = self._selector.close

    def poll(self, timeout_s: float, /) -> list[tuple[int, int]]:
        return [(key.fd, events) for key, events in self._selector.select(timeout_s)]


def _poller() -> tuple[_Poller, dict[int, int]]:
    if sys.platform == "linux":
        read, write = select.EPOLLIN, select.EPOLLOUT
        return select.epoll(), {
            selectors.EVENT_READ: read,
            selectors.EVENT_WRITE: write,
            selectors.EVENT_READ | selectors.EVENT_WRITE: read | write,
        }
    return _SelectorPoller(), {events: events for events in (1, 2, 3)}
