"""Acts every so often while a block runs."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def repeat_meanwhile(interval_s: float, act: Callable[[], object]) -> Iterator[None]:
    """Act every so often in a thread while the block runs: a call of AWS inside it would hold up what it does.

    `act` tells what it finds by attributes that the block reads; what it raises ends the thread.
    """
    ended = Event()

    def repeat() -> None:
        while not ended.wait(interval_s):
            act()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
