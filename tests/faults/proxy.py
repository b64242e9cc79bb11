"""The fault proxy as a test sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.faults.order import HARMLESS, Order, Tally

if TYPE_CHECKING:
    import subprocess


class Proxy:
    """Gives orders to the proxy's process, and reads its tallies."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._line())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def obey(self, order: Order = HARMLESS) -> Tally:
        """Give an order, and return the tally of the one before."""
        assert self._process.stdin is not None
        self._process.stdin.write(order.to_line())
        self._process.stdin.flush()
        return Tally(**json.loads(self._line()))

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()
