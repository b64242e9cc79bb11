# ruff: noqa: INP001 (Python finds it by its name alone)
"""First module that Python loads in a Lambda function of the embedded AWS: `time` there is AWS's time.

`time.time` is the real time plus the seconds that were skipped, and `time.sleep` waits as many seconds of it. Monotonic
clocks and `datetime.now` are real. A function on AWS has none of this.
"""

import mmap
import os
import struct
import time

_SECONDS = struct.Struct("d")
_SHORTEST_S = 1.0
"""A shorter sleep is real: it paces work."""

_where = os.environ.get("SEATRIAL_LAPTOP_CLOCK", "").split("|")
if len(_where) == 3:  # noqa: PLR2004 (file, port and key)
    _real_time, _real_sleep = time.time, time.sleep
    with open(_where[0], "rb") as _file:  # noqa: PTH123 (pathlib costs every function's start)
        _shared = mmap.mmap(_file.fileno(), _SECONDS.size, access=mmap.ACCESS_READ)

    def _time() -> float:
        skipped_s: float = _SECONDS.unpack_from(_shared)[0]
        return _real_time() + skipped_s

    def _sleep(seconds: float, /) -> None:
        if seconds < _SHORTEST_S:
            _real_sleep(seconds)
            return
        from multiprocessing.connection import Client  # noqa: PLC0415 (a function that never sleeps starts sooner)

        with Client(("127.0.0.1", int(_where[1])), authkey=bytes.fromhex(_where[2])) as server:
            server.send(seconds)
            server.recv()

    time.time, time.sleep = _time, _sleep  # type: ignore[assignment] # what SupportsIndex is has seconds too
