from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from seatrial_load.aws.clock_skew import is_skewed, offset_of, probe_clock, shifted
from seatrial_load.decode.exchange import Exchange, Inbox
from seatrial_load.decode.failure import ErrorClass, Failure

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
TOO_LATE = "Signature expired: 20261121T115000Z is now earlier than 20261121T115500Z (20261121T120000Z - 5 min.)"


def exchange(
    status: int, name: str = "", message: str = "", *, date: str = "Sat, 21 Nov 2026 12:10:00 GMT"
) -> Exchange:
    body = json.dumps({"message": message}).encode()
    error = f"x-amzn-ErrorType: {name}\r\n" if name else ""
    dated = f"Date: {date}\r\n" if date else ""
    inbox = Inbox()
    head = f"HTTP/1.1 {status} X\r\n{error}{dated}Content-Length: {len(body)}\r\n\r\n"
    inbox.add(0.0, head.encode() + body)
    return Exchange(sent_s=0.0, ended_s=0.1, inbox=inbox, failure=None)


@pytest.mark.parametrize(
    ("date", "offset_s"),
    [
        ("Sat, 21 Nov 2026 12:00:00 GMT", 0.0),
        ("Sat, 21 Nov 2026 12:10:00 GMT", 600.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", -3600.0),
        ("Sat, 21 Nov 2026 13:00:00 +0100", 0.0),
        ("Sat, 21 Nov 2026 12:00:05 -0000", 5.0),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_offset_is_the_services_clock_minus_ours(date: str, offset_s: float | None) -> None:
    assert offset_of(date, NOW) == offset_s


@pytest.mark.parametrize(
    ("error", "detail", "skewed"),
    [
        ("auth", f"HTTP 403 InvalidSignatureException: {TOO_LATE}", True),
        ("auth", "HTTP 403 InvalidSignatureException: Signature not yet current: 20261121T1210Z is still later", True),
        ("auth", "HTTP 403 RequestTimeTooSkewed: The difference between the times is too large", True),
        ("auth", "HTTP 400 RequestExpired: Request has expired", True),
        ("auth", "HTTP 403 InvalidSignatureException: The request signature we calculated does not match", False),
        ("auth", "HTTP 403 ExpiredTokenException: The security token included in the request is expired", False),
        ("validation", "HTTP 400 ValidationError: signature expired", False),
    ],
)
def test_only_words_of_time_mean_a_wrong_clock(error: ErrorClass, detail: str, *, skewed: bool) -> None:
    assert is_skewed(Failure(error, detail)) is skewed


def test_no_failure_is_no_wrong_clock() -> None:
    assert is_skewed(None) is False


def test_a_right_clock_sends_one_request() -> None:
    sent: list[float] = []
    answered = exchange(200)

    def send(offset_s: float) -> Exchange:
        sent.append(offset_s)
        return answered

    assert probe_clock(send, lambda: NOW).offset_s is None
    assert sent == [0.0]


def test_a_wrong_clock_is_learned_and_the_request_sent_again() -> None:
    sent: list[float] = []

    def send(offset_s: float) -> Exchange:
        sent.append(offset_s)
        return exchange(200) if offset_s else exchange(403, "InvalidSignatureException", TOO_LATE)

    probed = probe_clock(send, lambda: NOW)
    assert (probed.offset_s, sent) == (600.0, [0.0, 600.0])
    assert probed.exchange.inbox.head is not None
    assert probed.exchange.inbox.head.status == 200


@pytest.mark.parametrize(
    "refused",
    [
        exchange(403, "ExpiredTokenException", "The security token included in the request is expired"),
        exchange(403, "InvalidSignatureException", TOO_LATE, date=""),
        exchange(403, "InvalidSignatureException", TOO_LATE, date="soon"),
        exchange(429, "ThrottlingException", "Rate exceeded"),
    ],
)
def test_other_refusals_are_left_as_they_are(refused: Exchange) -> None:
    probed = probe_clock(lambda _offset_s: refused, lambda: NOW)
    assert (probed.exchange, probed.offset_s) == (refused, None)


def test_nothing_that_arrived_is_no_refusal() -> None:
    silent = Exchange(sent_s=0.0, ended_s=0.1, inbox=Inbox(), failure=Failure("connection", "Connection refused"))
    assert probe_clock(lambda _offset_s: silent, lambda: NOW).offset_s is None


def test_a_shifted_clock() -> None:
    assert shifted(lambda: NOW, -90.5)() == NOW - timedelta(seconds=90.5)
