"""What ends the suite when whoever watches its spending is gone, however it went: a pipe that closes with it."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LIFELINE: Final = "SEATRIAL_ACCEPTANCE_LIFELINE"
"""Number of the file that ends with the process which watches the suite."""
LONGEST_END_S: Final = 60.0
"""How long an interrupted suite may take to end its tools."""


@contextmanager
def lifeline() -> Iterator[int]:
    """Return the file to give to the suite: it ends with the block, or with this process."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def end_with(file: int, *, longest_end_s: float = LONGEST_END_S) -> None:
    """Interrupt this process once a file has ended, and kill its group when that does not end it."""

    def follow() -> None:
        while os.read(file, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(longest_end_s)
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=follow, daemon=True).start()
