"""How a signal ends the demo: whatever runs is stopped, and the exit code is the one that shells expect, 128 + n."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from types import FrameType

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STANDARD_OUTPUTS: Final = (1, 2)


def end_on_signals() -> None:
    """Let Ctrl-C, a termination and a closed terminal end the demo as an exception, so that it stops what it started.

    A job in the background is started with Ctrl-C ignored: that is undone. `nohup` is not.
    """
    for number in ENDING:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def ignore_signals() -> None:
    """Let nothing interrupt what follows, such as the end of everything that was started."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    if number == signal.SIGHUP:
        _leave_terminal()
    sys.exit(128 + number)


def _leave_terminal() -> None:
    """Write to no terminal any more: it is closed, and each write would fail."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 (a device, not a path)
        for output in STANDARD_OUTPUTS:
            if os.isatty(output):
                os.dup2(nothing.fileno(), output)
