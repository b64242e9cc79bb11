"""The function's log: standard output, credentials masked."""

from __future__ import annotations

import sys

from seatrial_base.printable import printable
from seatrial_base.secrets import redacted


def log(*lines: str) -> None:
    """Write lines into the function's log group."""
    sys.stdout.write("".join(f"{printable(redacted(line))}\n" for line in lines))
