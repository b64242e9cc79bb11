"""The capacity of this client here: measured in about a second, against a server that costs next to nothing."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
import warnings
from bisect import bisect_left
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from seatrial_load.client.connection import Address, dialer, socket_addresses
from seatrial_load.client.event_loop import Watch, Wave, run_wave
from seatrial_load.decode.response import record_of
from seatrial_load.documents.result import ClientCalibration
from seatrial_load.health.client_health import evidence_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.client.event_loop import WaveResult


HOST = "127.0.0.1"
REQUEST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_TOKEN = b'data: {"choices":[{"index":0,"text":" word","finish_reason":null}]}\n\n'
_LAST = b'data: {"choices":[{"index":0,"text":" word","finish_reason":"length"}]}\n\n'
_END = b"0\r\n\r\n"
_BACKLOG = 4_096
_RECEIVE_BYTES = 65_536


@contextmanager
def null_server(*, tokens: int, gap_s: float) -> Iterator[int]:
    """Serve in a forked process until the block ends, however it ends; yield the port.

    The process also ends when this one is gone, since it watches a pipe whose other end only this one holds.

    Args:
        tokens: Tokens of an answer, at least 2 and few enough that an answer fits into a socket's buffer (100).
        gap_s: From a request to the first token, and from token to token.
    """
    listener = socket.create_server((HOST, 0), backlog=_BACKLOG)
    alive, life = os.pipe()
    pid = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # Python 3.12 warns of threads: the child needs none of them
            pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                os.close(life)
                _Server(listener, alive, tokens=tokens, gap_s=gap_s).serve()
            finally:
                os._exit(0)
        port: int = listener.getsockname()[1]
        listener.close()
        yield port
    finally:
        os.close(life)
        os.close(alive)
        listener.close()
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class _Server:
    def __init__(self, listener: socket.socket, alive: int, *, tokens: int, gap_s: float) -> None:
        self._listener = listener
        self._alive = alive
        self._gap_s = gap_s
        first = _HEAD + _chunk(_TOKEN)
        self._writes = [first, *[_chunk(_TOKEN)] * (tokens - 2), _chunk(_LAST) + _END]
        self._watch: Watch[socket.socket | None] = Watch()
        self._due: deque[tuple[float, socket.socket, int]] = deque()

    def serve(self) -> None:
        """Serve until the pipe's other end is closed. With one gap for all, requests are due in their order."""
        self._listener.setblocking(False)  # noqa: FBT003 (the standard library's signature)
        self._watch.set(self._listener.fileno(), selectors.EVENT_READ, self._listener)
        self._watch.set(self._alive, selectors.EVENT_READ, None)
        while True:
            patience_s = max(0.0, self._due[0][0] - time.perf_counter()) if self._due else 1.0
            for descriptor, _ in self._watch.poll(patience_s):
                owner = self._watch.owners[descriptor]
                if owner is None:
                    return
                self._accept() if owner is self._listener else self._read(owner)
            now_s = time.perf_counter()
            while self._due and self._due[0][0] <= now_s:
                due_s, connection, number = self._due.popleft()
                with suppress(OSError):
                    connection.send(self._writes[number])
                    if number + 1 < len(self._writes):
                        self._due.append((due_s + self._gap_s, connection, number + 1))

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                connection, _ = self._listener.accept()
                connection.setblocking(False)  # noqa: FBT003 (likewise)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._watch.set(connection.fileno(), selectors.EVENT_READ, connection)

    def _read(self, connection: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            data = connection.recv(_RECEIVE_BYTES)
        if not data:
            self._watch.forget(connection.fileno())
            connection.close()
        elif data.endswith(b"\r\n\r\n"):
            self._due.append((time.perf_counter() + self._gap_s, connection, 0))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAMS = 64
TOKENS = 50
GAP_S = 0.004
ROUNDS = 5
TIMEOUT_S = 10.0


def calibrate_client(
    *, streams: int = STREAMS, tokens: int = TOKENS, gap_s: float = GAP_S, rounds: int = ROUNDS
) -> ClientCalibration:
    """Measure one process of the client. A measurement that fails is a calibration without numbers, with the reason.

    Args:
        rounds: Answers of each connection; by default, all take streams x tokens x gap x rounds = 1 s.
    """
    offered_per_s = streams / gap_s
    try:
        with null_server(tokens=tokens, gap_s=gap_s) as port:
            wave = Wave(
                streams=streams,
                requests=streams * rounds,
                timeout_s=TIMEOUT_S,
                deadline_s=time.perf_counter() + TIMEOUT_S,
            )
            address = Address(tls=False, host=HOST, port=port, path="/")
            result = run_wave(wave, lambda _index: REQUEST, dialer(address, socket_addresses(address)))
    except OSError as impossible:
        return _nothing(streams, offered_per_s, f"the client's speed could not be measured: {impossible}")
    return _calibration(wave, result, tokens, offered_per_s)


def _calibration(wave: Wave, result: WaveResult, tokens: int, offered_per_s: float) -> ClientCalibration:
    records = [record_of(exchange, stream=True) for exchange in result.exchanges]
    failed = [record for record in records if not record.succeeded]
    if result.cut or failed or any(len(record.token_times_s) != tokens for record in records):
        why = failed[0].detail if failed else "some answers timed out"
        return _nothing(wave.streams, offered_per_s, f"the client's speed could not be measured: {why}")
    times_s = sorted(at_s for record in records for at_s in record.token_times_s)
    cpu_s_per_1k = result.usage.cpu_s / len(times_s) * 1_000
    first_s, seconds = times_s[0], times_s[-1] - times_s[0]
    inside = bisect_left(times_s, first_s + 0.75 * seconds) - bisect_left(times_s, first_s + 0.25 * seconds)
    return ClientCalibration(
        streams=wave.streams,
        parts_per_s=inside / (seconds / 2) if seconds > 0 else None,
        offered_parts_per_s=offered_per_s,
        cpu_s_per_1k_parts=cpu_s_per_1k,
        receive_lag_p99_ms=evidence_of(wave, result).receive_lag_p99_ms,
        because=(
            f"one process decoded {len(times_s):,} token events from a local test server over {wave.streams} "
            f"connections"
            f" (plain HTTP), {cpu_s_per_1k:.3f} CPU seconds per 1,000"
        ),
    )


def _nothing(streams: int, offered_per_s: float, because: str) -> ClientCalibration:
    return ClientCalibration(
        streams=streams,
        parts_per_s=None,
        offered_parts_per_s=offered_per_s,
        cpu_s_per_1k_parts=None,
        receive_lag_p99_ms=None,
        because=because,
    )
