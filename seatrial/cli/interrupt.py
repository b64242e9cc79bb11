"""Ctrl-C: a command that measures or copies ends within seconds, whatever it waits for, and leaves no scratch files."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PATIENCE_S = 2.0
"""So long may an interrupted command clean up by itself."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_scratch: set[Path] = set()


def end_when_interrupted() -> None:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt, and end the process where that does not get through in time.

    Python runs a signal's handler between two of its own steps. A look-up of a name, or threads that are waited for,
    hold it up for a minute: another thread sees the signal at once and ends the process after `PATIENCE_S`.
    """
    for number in _SIGNALS:  # a job in the background is started with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard,), daemon=True).start()


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Make a folder that is gone afterwards, also when the process is ended.

    Args:
        prefix: Beginning of its name.
    """
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _scratch.add(folder)
        try:
            yield folder
        finally:
            _scratch.discard(folder)


def _watch(heard: int) -> None:
    while number := os.read(heard, 1):
        if number[0] in _SIGNALS:
            threading.Event().wait(PATIENCE_S)
            _end()


def _end() -> None:
    for folder in tuple(_scratch):
        shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)
