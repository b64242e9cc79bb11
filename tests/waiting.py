"""Waits for what another process or thread does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")


def until(read: Callable[[], Value | None], what: str, *, look_s: float = 0.02, longest_s: float = 60.0) -> Value:
    """Return what a function reads as soon as it is true.

    Args:
        read: What is read again and again.
        what: What is awaited.
        look_s: Seconds between two looks.
        longest_s: Seconds after which it fails.

    Raises:
        TimeoutError: It was never true.
    """
    deadline_s = time.monotonic() + longest_s
    while not (value := read()):
        if time.monotonic() > deadline_s:
            raise TimeoutError(what)
        time.sleep(look_s)
    return value
