"""Seatrial's client: SageMaker's runtime API over TLS, signed; with several workers, the pool."""

from __future__ import annotations

import hashlib
import resource
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.load_client.clients.asking import (
    ACCESS_KEY_ID,
    BODY,
    PATH,
    REGION,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
    Order,
)
from benchmarks.load_client.measure import Answer, Usage, middle_rate, server_url, tell, write
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import Signer
from seatrial_load.client.connection import Address, dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.client.worker_pool import PoolOrder, load_with_workers
from seatrial_load.decode.event_stream import FrameDecoder
from seatrial_load.decode.response import record_of
from seatrial_load.health.client_health import evidence_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.client.connection import Dial
    from seatrial_load.client.event_loop import WriteRequest
    from seatrial_load.decode.exchange import Exchange

SIGNER = Signer(Credentials(ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN), REGION)


def main() -> None:
    """Load, and print what it was like."""
    order = Order.given()
    wave = Wave(streams=order.streams, requests=order.requests, timeout_s=120.0, deadline_s=time.perf_counter() + 120.0)
    url = urlsplit(server_url(tls=True))
    address = Address(tls=True, host="localhost", port=url.port or 443, path=PATH)

    def write_request(_index: int) -> bytes:
        headers = {"Host": address.authority, "Content-Type": "application/json"}
        signed = SIGNER.signed_headers(PATH, headers, hashlib.sha256(BODY).hexdigest(), datetime.now(UTC))
        lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        return f"POST {PATH} HTTP/1.1\r\n{lines}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY

    def dial_factory() -> Dial:
        return dialer(address, socket_addresses(address))

    if order.workers > 1:
        _pool(PoolOrder(wave=wave, stream=True), write_request, dial_factory, order.workers)
    else:
        _alone(wave, write_request, dial_factory())


def _alone(wave: Wave, write_request: WriteRequest, dial: Dial) -> None:
    marks: list[Usage] = []

    def ready() -> float:
        marks.append(Usage.now())
        return time.perf_counter()

    result = run_wave(wave, write_request, dial, ready=ready)
    ended = Usage.now()
    failed = [record.detail for exchange in result.exchanges if (record := record_of(exchange, stream=True)).error]
    if failed:
        raise SystemExit(f"{len(failed)} requests failed: {failed[0]}")
    decoded = Usage.now()
    tokens = wave.requests * 64
    lag_ms = evidence_of(wave, result).receive_lag_p99_ms
    tell(
        [Answer(exchange.sent_s, _pieces(exchange)) for exchange in result.exchanges],
        marks[0],
        ended,
        decode_cpu_s_per_1k=(decoded.cpu_s - ended.cpu_s) / tokens * 1e3,
        receive_lag_p99_ms=lag_ms,
    )


def _pieces(exchange: Exchange) -> list[tuple[float, bytes]]:
    decoder = FrameDecoder()
    return [(at_s, frame.payload) for at_s, part in exchange.inbox.body for frame in decoder.feed(part)]


def _pool(order: PoolOrder, write_request: WriteRequest, dial_factory: Callable[[], Dial], workers: int) -> None:
    result = load_with_workers(order, write_request, dial_factory, workers=workers)
    if result.lost_because or any(record.error for record in result.records):
        raise SystemExit(f"the pool failed: {result.lost_because or result.records[0].detail}")
    times_s = [at_s for record in result.records for at_s in record.token_times_s]
    largest_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    write(
        tokens=len(times_s),
        tok_s=middle_rate(times_s),
        run_delay=result.evidence.run_delay_share,
        receive_lag_p99_ms=result.evidence.receive_lag_p99_ms,
        worker_mib=largest_mib,
    )


main()
