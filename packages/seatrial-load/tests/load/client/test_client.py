from __future__ import annotations

import json
import selectors
import socket
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session

from seatrial_load.client.connection import OPEN, Address, dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.decode.response import record_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial_load.client.connection import Connection
    from seatrial_load.decode.response import RequestRecord

    Send = Callable[..., list[RequestRecord]]

TOKENS = 4


def http_request(manner: str, size: int = 0) -> bytes:
    body = json.dumps({"inputs": "x" * size, "parameters": {"max_new_tokens": TOKENS}}).encode()
    return f"POST /endpoints/{manner}/invocations HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def address(url: str) -> Address:
    return Address(tls=False, host="127.0.0.1", port=int(url.rpartition(":")[2]), path="")


@pytest.fixture
def dials() -> list[float]:
    return []


@pytest.fixture
def send(runtime_url: str, dials: list[float]) -> Send:
    where = address(runtime_url)
    connect = dialer(where, socket_addresses(where))

    def dial() -> Connection:
        dials.append(time.perf_counter())
        return connect()

    def run(
        manner: str, *, streams: int = 1, requests: int = 1, timeout_s: float = 5.0, size: int = 0
    ) -> list[RequestRecord]:
        wave = Wave(streams=streams, requests=requests, timeout_s=timeout_s, deadline_s=time.perf_counter() + 10)
        result = run_wave(wave, lambda _index: http_request(manner, size), dial)
        assert not result.cut
        return [record_of(exchange, stream=manner != "whole") for exchange in result.exchanges]

    return run


def test_a_stream_of_tokens(send: Send) -> None:
    (record,) = send("stream")
    assert (record.error, record.status, record.output_tokens, record.input_tokens) == (None, 200, TOKENS, 7)
    assert record.engine == "fake runtime of the tests"
    assert record.first_token_s is not None
    assert record.last_token_s is not None
    assert record.sent_s < record.first_token_s < record.last_token_s <= record.ended_s


def test_concurrency_is_closed_loop_over_kept_connections(send: Send, dials: list[float]) -> None:
    records = send("stream", streams=8, requests=40)
    assert [record.error for record in records] == [None] * 40
    assert len(dials) == 8
    starts = sorted((record.sent_s, 1) for record in records)
    ends = [(record.ended_s, -1) for record in records]
    in_flight = high = 0
    for _, step in sorted([*starts, *ends]):
        in_flight += step
        high = max(high, in_flight)
    assert high == 8


def test_every_connection_is_dialled_before_the_first_request_leaves(send: Send, dials: list[float]) -> None:
    records = send("stream", streams=8, requests=16)
    assert max(dials) < min(record.sent_s for record in records)


def test_no_more_streams_than_requests(send: Send, dials: list[float]) -> None:
    assert len(send("stream", streams=8, requests=3)) == 3
    assert len(dials) == 3


@pytest.mark.parametrize(
    ("manner", "error", "status", "detail"),
    [
        ("throttled", "throttled", 429, "HTTP 429 ThrottlingException: Rate exceeded"),
        ("model-error", "model_error", 424, "HTTP 424 ModelError: CUDA out of memory"),
        (
            "early-close",
            "connection",
            200,
            "the connection was closed in the middle of the response (after 3 token events)",
        ),
        (
            "exception-frame",
            "model_error",
            200,
            'ModelStreamError: {"ErrorCode":"StreamBroken"} (after 1 token events)',
        ),
        ("garbage", "protocol", None, "not an HTTP/1 response: b'SSH-2.0-OpenSSH_9.7\\r\\n'"),
    ],
)
def test_a_failed_request_is_data(send: Send, manner: str, error: str, status: int | None, detail: str) -> None:
    records = send(manner, streams=2, requests=4)
    assert {(record.error, record.status, record.detail) for record in records} == {(error, status, detail)}
    assert len(records) == 4


def test_a_stall_is_a_timeout_of_ours(send: Send) -> None:
    (record,) = send("stall", timeout_s=0.3)
    assert (record.error, record.detail) == ("timeout", "no complete answer within 0.3 s (after 1 token events)")
    assert record.ended_s - record.sent_s >= 0.3


def test_a_stall_does_not_hold_up_the_other_streams(send: Send, runtime_url: str) -> None:
    where = address(runtime_url)
    wave = Wave(streams=2, requests=6, timeout_s=2.0, deadline_s=time.perf_counter() + 60)
    manners = ["stall", *["stream"] * 5]
    result = run_wave(wave, lambda index: http_request(manners[index]), dialer(where, socket_addresses(where)))
    errors = [record_of(exchange, stream=True).error for exchange in result.exchanges]
    assert errors == [None] * 5 + ["timeout"]


def test_a_kept_connection_closed_in_silence_is_opened_again_once(send: Send, dials: list[float]) -> None:
    records = send("silent-close", requests=3)
    assert [record.error for record in records] == [None] * 3
    assert len(dials) == 3


def test_an_announced_close_costs_a_new_connection_not_an_error(send: Send, dials: list[float]) -> None:
    records = send("announced-close", requests=3)
    assert [record.error for record in records] == [None] * 3
    assert len(dials) == 3


def test_a_body_without_length_ends_with_the_connection(send: Send) -> None:
    (record,) = send("until-close")
    assert (record.error, record.output_tokens) == (None, TOKENS)


def test_a_whole_answer(send: Send) -> None:
    (record,) = send("whole")
    assert (record.error, record.output_tokens, record.first_token_s) == (None, TOKENS, None)


def test_a_body_larger_than_the_sockets_buffers(send: Send) -> None:
    records = send("stream", streams=2, requests=2, size=8_000_000)
    assert [record.error for record in records] == [None, None]


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        where = Address(tls=False, host="127.0.0.1", port=unused.getsockname()[1], path="")
        wave = Wave(streams=2, requests=4, timeout_s=1.0, deadline_s=time.perf_counter() + 5)
        result = run_wave(wave, lambda _index: http_request("stream"), dialer(where, socket_addresses(where)))
    records = [record_of(exchange, stream=True) for exchange in result.exchanges]
    assert Counter((record.error, record.detail) for record in records) == {("connection", "Connection refused"): 4}


def test_an_address_that_the_network_refuses_at_once() -> None:
    where = Address(tls=False, host="255.255.255.255", port=9, path="")
    wave = Wave(streams=1, requests=2, timeout_s=5.0, deadline_s=time.perf_counter() + 5)
    result = run_wave(wave, lambda _index: b"request", dialer(where, socket_addresses(where)))
    assert [record_of(exchange, stream=True).error for exchange in result.exchanges] == ["connection"] * 2


def test_the_deadline_cuts_the_wave(runtime_url: str) -> None:
    where = address(runtime_url)
    started_s = time.perf_counter()
    wave = Wave(streams=1, requests=2, timeout_s=60.0, deadline_s=started_s + 0.3)
    result = run_wave(wave, lambda _index: http_request("stall"), dialer(where, socket_addresses(where)))
    assert (result.cut, result.exchanges) == (True, ())
    assert time.perf_counter() - started_s < 60.0, "the deadline, not the time limit of a request"


def over_tls(port: int, ca: str, requests: int) -> list[RequestRecord]:
    where = Address(tls=True, host="localhost", port=port, path="")
    wave = Wave(streams=4, requests=requests, timeout_s=5.0, deadline_s=time.perf_counter() + 10)
    connect = dialer(where, socket_addresses(where), {"AWS_CA_BUNDLE": ca})
    result = run_wave(wave, lambda _index: http_request("stream", size=100_000), connect)
    return [record_of(exchange, stream=True) for exchange in result.exchanges]


def test_over_tls(tls_port: int, certificate: Path) -> None:
    records = over_tls(tls_port, str(certificate), 12)
    assert [(record.error, record.output_tokens) for record in records] == [(None, TOKENS)] * 12


def test_an_authority_that_boto3_trusts_is_trusted(company_port: int, company: Path) -> None:
    url, body = (
        f"https://localhost:{company_port}/endpoints/whole/invocations",
        b'{"parameters": {"max_new_tokens": 1}}',
    )
    asked = AWSRequest("POST", url, data=body).prepare()
    session = URLLib3Session(verify=str(company))  # type: ignore[arg-type]  # of the stubs
    assert session.send(asked).status_code == 200
    records = over_tls(company_port, str(company), 4)
    assert [(record.error, record.detail) for record in records] == [(None, "")] * 4


def test_a_certificate_that_nobody_signed_is_a_failed_connection(tls_port: int) -> None:
    records = over_tls(tls_port, "", 4)
    assert {record.error for record in records} == {"connection"}
    assert all("CERTIFICATE_VERIFY_FAILED" in record.detail for record in records)


class ScriptedConnection:
    """A socket pair whose far end has already answered; time passes only when the client looks at the clock."""

    def __init__(self, answer: bytes) -> None:
        self._near, self._far = socket.socketpair()
        self._far.sendall(answer)

    def fileno(self) -> int:
        return self._near.fileno()

    def open_step(self) -> int:
        return OPEN

    def send(self, data: memoryview) -> int:
        return len(data)

    def receive(self) -> bytes | None:
        return self._near.recv(65536)

    def close(self) -> None:
        self._near.close()
        self._far.close()


def test_times_are_the_injected_clocks() -> None:
    ticks = iter(range(1000))
    body = b'{"generated_text":"x"}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    wave = Wave(streams=1, requests=1, timeout_s=500, deadline_s=900)
    result = run_wave(
        wave, lambda _index: b"request", lambda: ScriptedConnection(answer), clock=lambda: float(next(ticks))
    )
    (exchange,) = result.exchanges
    assert exchange.sent_s == int(exchange.sent_s)
    assert exchange.inbox.last_arrival_s == exchange.ended_s
    assert exchange.sent_s < exchange.ended_s


def test_waiting_is_for_the_event_that_the_connection_asks_for() -> None:
    class SlowConnection(ScriptedConnection):
        steps = iter([selectors.EVENT_WRITE, selectors.EVENT_READ, OPEN])

        def open_step(self) -> int:
            return next(self.steps)

    wave = Wave(streams=1, requests=1, timeout_s=5, deadline_s=time.perf_counter() + 5)
    answer = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    result = run_wave(wave, lambda _index: b"request", lambda: SlowConnection(answer))
    assert record_of(result.exchanges[0], stream=True).status == 503


def test_a_second_close_after_an_interrupted_one_finds_nothing_to_close() -> None:
    """Ctrl-C arrives while a connection is being closed; the clean-up of the wave then closes all of them."""

    class Interrupted(ScriptedConnection):
        def close(self) -> None:
            super().close()
            raise KeyboardInterrupt

    answer = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    wave = Wave(streams=1, requests=1, timeout_s=5, deadline_s=time.perf_counter() + 5)
    with pytest.raises(KeyboardInterrupt):
        run_wave(wave, lambda _index: b"request", lambda: Interrupted(answer))
