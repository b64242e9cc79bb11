"""Runs one pool against a server in a process of its own; prints how its requests ended and its peak memory."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from seatrial_load.client.connection import Address, dialer, socket_addresses
from seatrial_load.client.event_loop import Wave
from seatrial_load.client.worker_pool import PoolOrder, load_with_workers
from seatrial_load.decode.exchange import Limits

REQUEST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flooded:
    """What the client saw.

    Attributes:
        failures: Class and words of every request, in order of ending.
        tokens: Token events of every request.
        peak_mib: The most memory that the process, this one of a pool, ever held.
    """

    failures: list[tuple[str | None, str]]
    tokens: list[int]
    peak_mib: float


def peak_mib() -> float:
    """Return the peak of this program's resident memory; unlike `ru_maxrss` it knows nothing of who started it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main(port: int, streams: int, requests: int, limits: Limits | None) -> None:
    """Load the server on this port."""
    address = Address(tls=False, host="127.0.0.1", port=port, path="/")
    wave = Wave(streams=streams, requests=requests, timeout_s=40.0, deadline_s=time.perf_counter() + 40.0)
    if limits is not None:
        wave = Wave(**{name: getattr(wave, name) for name in Wave.__slots__} | {"limits": limits})
    order = PoolOrder(wave=wave, stream=True)
    result = load_with_workers(
        order, lambda _index: REQUEST, lambda: dialer(address, socket_addresses(address)), workers=1
    )
    seen = Flooded(
        failures=[(record.error, record.detail) for record in result.records],
        tokens=[len(record.token_times_s) for record in result.records],
        peak_mib=peak_mib(),
    )
    json.dump(asdict(seen), sys.stdout)


if __name__ == "__main__":
    wave_bytes = int(sys.argv[4])
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Limits(wave_bytes=wave_bytes) if wave_bytes else None)
