"""Something done again and again beside a measurement, in a thread: a call of S3 inside it would hold up its clock."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def beside(interval_s: float, act: Callable[[], object]) -> Iterator[None]:
    """Act every so often while the block runs, and no more when it is left.

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
