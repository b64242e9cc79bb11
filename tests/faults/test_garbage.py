"""Bytes that make no sense, and sense that comes byte by byte."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.client.connection import address_of, dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.decode.event_stream import FrameDecoder
from seatrial_load.decode.response import record_of
from seatrial_load.decode.timed_answer import TimedAnswerReader
from tests.faults.cloud import COMPONENT, ENDPOINT
from tests.faults.order import Order, five_percent
from tests.faults.trials import LOAD, miss_of, verdict_of

if TYPE_CHECKING:
    from tests.faults.proxy import Proxy
    from tests.faults.trials import Trials


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("corrupt_frame", "an event frame fails its checksum (after 2 token events)"),
        ("random_frame", "an event frame fails its checksum (after 2 token events)"),
    ],
)
def test_a_garbage_frame_fails_its_request(trials: Trials, fault: str, said: str) -> None:
    result = trials.run(five_percent(fault))
    level = result.levels[-1]
    assert (trials.hit, level.succeeded, dict(level.errors)) == (2, 38, {"protocol": 2})
    assert level.first_errors == (f"protocol: {said}",)
    assert level.output_tokens_mean == 8.0
    assert miss_of(result) == "error_rate 5.00 % exceeds 1.00 % at concurrency 4 per copy"


@pytest.mark.parametrize("fault", ["random_bytes", "random_bytes_and_close"])
def test_bytes_that_are_not_even_http_are_told_as_such_however_the_request_ends(trials: Trials, fault: str) -> None:
    request = trials.request(load=replace(LOAD, request_timeout_s=1.0))
    level = trials.run(five_percent(fault), request=request).levels[-1]
    assert (trials.hit, level.succeeded, dict(level.errors)) == (2, 38, {"protocol": 2})
    (said,) = level.first_errors
    assert said.startswith("protocol: not a chunk size: ")


def test_an_answer_that_comes_byte_by_byte_counts_like_any_other(trials: Trials) -> None:
    request = trials.request(load=replace(LOAD, requests_per_concurrency=3))
    result = trials.run(Order(fault="drip"), request=request)
    level = result.levels[-1]
    assert (trials.hit, level.succeeded, dict(level.errors)) == (12, 12, {})
    assert level.output_tokens_mean == 8.0
    assert level.itl_ms is not None
    assert level.itl_ms.count == 12 * 7
    assert verdict_of(result).status == "pass"


def test_an_answer_that_comes_byte_by_byte_has_the_same_text(proxy: Proxy, trials: Trials) -> None:
    whole = text_of_one(trials)
    proxy.obey(Order(fault="drip"))
    assert text_of_one(trials) == whole
    assert whole
    assert proxy.obey().hit == 1


def text_of_one(trials: Trials) -> str:
    """Send one request, always the same, and return the text of its answer."""
    address = address_of(trials.target(), stream=True)
    body = b'{"inputs": "Where does the boat go?", "parameters": {"max_new_tokens": 8}, "stream": true}'
    path = f"/endpoints/{ENDPOINT}/invocations-response-stream"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.authority}\r\nContent-Type: application/json\r\n"
        f"X-Amzn-SageMaker-Inference-Component: {COMPONENT}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    wave = Wave(streams=1, requests=1, timeout_s=10.0, deadline_s=float("inf"))
    (exchange,) = run_wave(
        wave, lambda _index: head.encode() + body, dialer(address, socket_addresses(address))
    ).exchanges
    record = record_of(exchange, stream=True)
    assert (record.error, record.detail) == (None, "")
    frames, reader = FrameDecoder(), TimedAnswerReader()
    for at_s, part in exchange.inbox.body:
        for frame in frames.feed(part):
            reader.feed(at_s, frame.payload)
    return "".join(event.text for event in reader.completion().events)
