"""What Python loads first in a function of the embedded AWS that is to die of SIGKILL as it sends a certain request.

It kills itself: whoever looked for its process would come too early or too late on a busy machine. `killed_functions`
copies this file as `sitecustomize.py` beside the mark of the request; the function's own is loaded from here.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path

import seatrial_laptop

HERE = Path(__file__).parent
MARK, SPARED, UNSENT = HERE / "mark", HERE / "spared", HERE / "unsent"
SHADOWED = Path(seatrial_laptop.__path__[0]) / "function_modules" / "sitecustomize.py"


def die_before_sending(event: str, arguments: tuple[object, ...]) -> None:
    """Note a request that has the mark in its first line or its headers, and die before it is sent."""
    if event != "http.client.send" or not isinstance(sent := arguments[1], bytes):
        return
    head = sent.partition(b"\r\n\r\n")[0]
    if not MARK.exists() or MARK.read_bytes() not in head:
        return
    if SPARED.exists():
        SPARED.unlink()
        return
    with UNSENT.open("ab") as unsent:
        unsent.write(head.splitlines()[0] + b"\n")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "sitecustomize":
    runpy.run_path(f"{SHADOWED}")
    sys.addaudithook(die_before_sending)
