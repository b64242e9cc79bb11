"""AWS's date for the Lambda functions: `function_modules/sitecustomize.py` reads it, and sleeps by it.

The seconds that were skipped lie in a file that every function maps: they change only while no function runs. A
function that sleeps says so, with a key, on a loopback port; meanwhile time may be skipped.
"""

from __future__ import annotations

import mmap
import secrets
import struct
import threading
from contextlib import suppress
from multiprocessing.connection import Listener
from typing import TYPE_CHECKING, Final

from seatrial_laptop.loopback import HOST

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from seatrial_laptop.aws.clock import VirtualClock

CLOCK_VARIABLE: Final = "SEATRIAL_LAPTOP_CLOCK"
"""The variable by which a function finds it: the file, the port and the key."""
SECONDS: Final = struct.Struct("d")
LOOK_S: Final = 1.0
"""Seconds of AWS's date between two looks whether the function that sleeps is still there."""


def serve_function_clock(clock: VirtualClock, folder: Path) -> str:
    """Tell functions AWS's date until the process ends; return the value of `CLOCK_VARIABLE`."""
    path, key = folder / "clock", secrets.token_bytes(32)
    path.write_bytes(bytes(SECONDS.size))
    with path.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), SECONDS.size)
    clock.tell_skipped(lambda skipped_s: SECONDS.pack_into(shared, 0, skipped_s))
    listener = Listener((HOST, 0), authkey=key)
    threading.Thread(target=_accept, args=(clock, listener), name="function-clock", daemon=True).start()
    return f"{path}|{listener.address[1]}|{key.hex()}"


def _accept(clock: VirtualClock, listener: Listener) -> None:
    while True:
        with suppress(OSError, EOFError, ValueError):  # whoever has no key
            connection = listener.accept()
            threading.Thread(target=_sleep, args=(clock, connection), name="function-sleeps", daemon=True).start()


def _sleep(clock: VirtualClock, connection: Connection[object, object]) -> None:
    """Wait as long as a function asks; end when it is gone."""
    with connection, suppress(OSError, EOFError, ValueError, TypeError):
        end_s = clock.aws_date_s() + float(str(connection.recv()))
        with clock.function_sleeps():
            while (left_s := end_s - clock.aws_date_s()) > 0 and not connection.poll():
                clock.wait_aws(min(left_s, LOOK_S))
        connection.send("")
