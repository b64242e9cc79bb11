"""What a wave does beyond one request after the other: retries, stalls, arrivals in time, and knowing when to stop."""

from __future__ import annotations

import itertools
import socket
import time
from typing import TYPE_CHECKING

import pytest

from seatrial_load.client.connection import OPEN, Address, dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, WaveResult, run_wave
from seatrial_load.decode.response import record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial_load.client.connection import Connection
    from seatrial_load.decode.response import RequestRecord

BODY = b'{"generated_text":"x","details":{"generated_tokens":1}}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
OK_THEN_CLOSE = OK.replace(b"200 OK\r\n", b"200 OK\r\nConnection: close\r\n")


def refusal(status: str, *headers: str, body: bytes = b"{}") -> bytes:
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(body)}"))
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


THROTTLED = refusal("429 Too Many Requests")
NOT_READY = refusal("400 Bad Request", "x-amzn-ErrorType: ModelNotReadyException")


class Answering:
    """A connection whose far end answers each request with the next of its answers."""

    def __init__(self, answers: Iterator[bytes]) -> None:
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)  # noqa: FBT003 (the standard library's signature)
        self._answers = answers

    def fileno(self) -> int:
        return self._near.fileno()

    def open_step(self) -> int:
        return OPEN

    def send(self, data: memoryview) -> int:
        self._far.sendall(next(self._answers))
        return len(data)

    def receive(self) -> bytes | None:
        try:
            return self._near.recv(65536)
        except BlockingIOError:
            return None

    def close(self) -> None:
        self._near.close()
        self._far.close()


class FastClock:
    """Time that passes by a step at each look, so that no test waits for it."""

    def __init__(self, step_s: float = 0.01) -> None:
        self.now_s = 0.0
        self._step_s = step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s


def run(
    answers: Sequence[bytes], *, step_s: float = 0.01, **changes: object
) -> tuple[list[RequestRecord], list[int], WaveResult]:
    fields: dict[str, object] = {"streams": 1, "requests": 1, "timeout_s": 60.0, "deadline_s": 900.0, **changes}
    written: list[int] = []

    def write_request(index: int) -> bytes:
        written.append(index)
        return b"request"

    script = iter(answers)
    wave = Wave(**fields)  # type: ignore[arg-type]  # keywords of any type
    result = run_wave(wave, write_request, lambda: Answering(script), clock=FastClock(step_s))
    return [record_of(exchange, stream=False) for exchange in result.exchanges], written, result


def test_streams_of_a_closed_loop_begin_one_by_one() -> None:
    """The second stream may begin after 2 s, the third after 5 s; the first goes on meanwhile."""
    records, _, _ = run([OK] * 60, streams=3, requests=60, starts_s=(0.0, 2.0, 5.0), step_s=0.05)
    begun = min(record.sent_s for record in records)
    in_flight = [
        (at - begun, sum(one.sent_s <= at < one.ended_s for one in records)) for at in (r.sent_s for r in records)
    ]
    # The looks at the clock before the first sending, too.
    assert max(count for at, count in in_flight if at < 1.5) == 1
    assert max(count for at, count in in_flight if at < 4.5) == 2
    assert max(count for _, count in in_flight) == 3
    assert sum(at < 1.5 for at, _ in in_flight) > 1


def test_a_stream_rests_for_a_share_of_what_its_request_took() -> None:
    at_once, resting = (run([OK] * 8, streams=1, requests=8, rest_share=share, step_s=0.01)[0] for share in (0.0, 20.0))
    gaps = [
        (following.sent_s - one.ended_s) / (one.ended_s - one.sent_s) for one, following in itertools.pairwise(resting)
    ]
    assert max(gaps) > 10
    assert min(gaps) >= 0
    assert max(gaps) < 22  # a share of 20 at most, and the looks at the clock
    assert resting[-1].ended_s > at_once[-1].ended_s


def test_a_refused_request_is_repeated_and_every_repetition_is_told() -> None:
    (record,), written, _ = run([THROTTLED, NOT_READY, OK], step_s=0.1, max_retries=2, first_index=7)
    assert (record.error, record.retried, record.output_tokens) == (None, ("throttled", "not_ready"), 1)
    assert written == [7, 7, 7]


def test_its_times_start_with_the_first_attempt() -> None:
    (once,), _, _ = run([OK], step_s=0.1, max_retries=3)
    (often,), _, _ = run([THROTTLED, THROTTLED, THROTTLED, OK], step_s=0.1, max_retries=3)
    assert often.sent_s == once.sent_s
    assert often.ended_s - often.sent_s >= 0.125 + 0.25 + 0.5


def test_repetitions_are_bounded_and_the_last_failure_stands() -> None:
    (record,), written, _ = run([THROTTLED] * 3, step_s=0.1, max_retries=2)
    assert (record.error, record.status, record.retried) == ("throttled", 429, ("throttled", "throttled"))
    assert len(written) == 3


def test_without_retries_the_first_refusal_stands() -> None:
    (record,), _, _ = run([THROTTLED])
    assert (record.error, record.retried) == ("throttled", ())


@pytest.mark.parametrize(
    "answer",
    [
        refusal("424 Failed Dependency", body=b'{"OriginalStatusCode":500}'),
        refusal("400 Bad Request"),
        refusal("500 Internal Server Error"),
        refusal("302 Found", "Location: http://elsewhere/"),
        b"nonsense",
    ],
)
def test_other_failures_are_not_repeated(answer: bytes) -> None:
    (record,), written, _ = run([answer, OK], max_retries=5)
    assert record.error not in (None, "throttled", "not_ready")
    assert (record.retried, len(written)) == ((), 1)


def test_an_overload_that_comes_as_a_200_is_repeated_too() -> None:
    said = b'{"error":"Model is overloaded","error_type":"overloaded"}'
    overloaded = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)
    (record,), _, _ = run([overloaded, OK], max_retries=1)
    assert (record.error, record.retried) == (None, ("throttled",))


def test_retry_after_is_obeyed() -> None:
    (record,), _, _ = run([refusal("429 Too Many Requests", "Retry-After: 20"), OK], step_s=1.0, max_retries=1)
    assert 20.0 <= record.ended_s - record.sent_s < 40.0


def test_a_wait_longer_than_an_attempt_may_take_is_a_failure() -> None:
    (record,), _, _ = run([refusal("429 Too Many Requests", "Retry-After: 61"), OK], max_retries=1)
    assert (record.error, record.retried) == ("throttled", ())


def test_a_pausing_stream_does_not_hold_up_the_others() -> None:
    """Two streams, and both share one script: the first request is refused, the second's answer comes meanwhile."""
    records, _, _ = run([THROTTLED, OK, OK, OK], streams=2, requests=3, max_retries=1)
    assert [(record.index, record.retried) for record in records] == [(1, ()), (2, ()), (0, ("throttled",))]


def test_each_record_knows_its_number() -> None:
    records, written, _ = run([OK] * 4, requests=4, first_index=10, stride=3)
    assert [record.index for record in records] == written == [10, 13, 16, 19]


def test_enough_is_asked_with_the_durations_of_measured_requests_that_ended_well() -> None:
    asked: list[int] = []

    def enough(durations_s: Sequence[float]) -> str | None:
        asked.append(len(durations_s))
        assert all(duration_s > 0 for duration_s in durations_s)
        return "the interval is narrow" if len(durations_s) >= 8 else None

    answers = itertools.chain([OK, THROTTLED], itertools.repeat(OK))
    records, _, result = run(
        list(itertools.islice(answers, 400)), requests=400, measured_from=5, least_requests=4, enough=enough
    )
    assert result.enough_because == "the interval is narrow"
    assert not result.cut
    assert min(asked) >= 4
    assert 8 <= asked[-1] == len(records) - 5 < 60


def test_nobody_is_asked_whether_a_wave_that_has_sent_everything_is_enough() -> None:
    _, _, result = run([OK] * 3, requests=3, enough=lambda _durations_s: "at once")
    assert result.enough_because in (None, "at once")
    assert not result.cut


def test_a_connection_closed_after_each_answer_is_dialled_anew() -> None:
    records, _, _ = run([OK_THEN_CLOSE] * 3, requests=3)
    assert [record.error for record in records] == [None] * 3


def http_request(manner: str) -> bytes:
    body = b'{"parameters":{"max_new_tokens":4}}'
    return f"POST /endpoints/{manner}/invocations HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.fixture
def dial(runtime_url: str) -> Callable[[], Connection]:
    where = Address(tls=False, host="127.0.0.1", port=int(runtime_url.rpartition(":")[2]), path="")
    return dialer(where, socket_addresses(where))


def test_an_answer_that_stops_has_stalled(dial: Callable[[], Connection]) -> None:
    wave = Wave(streams=1, requests=1, timeout_s=60.0, stall_timeout_s=0.2, deadline_s=time.perf_counter() + 60)
    result = run_wave(wave, lambda _index: http_request("stall"), dial)
    record = record_of(result.exchanges[0], stream=True)
    assert (record.error, record.detail) == ("stalled", "no data for 0.2 s (after 1 token events)")
    assert record.ended_s - record.sent_s >= 0.2


def test_silence_before_the_answer_is_a_queue_not_a_stall() -> None:
    """The head alone is no answer yet: some servers send it at once and queue the request then."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    (record,), _, _ = run([head], step_s=0.1, stall_timeout_s=0.5, timeout_s=2.0)
    assert (record.error, record.detail) == ("timeout", "no complete answer within 2 s")


def test_an_open_loop_sends_when_it_is_due_whatever_is_in_flight(dial: Callable[[], Connection]) -> None:
    due_s = (0.0, 0.05, 0.05, 0.3)
    wave = Wave(streams=4, requests=4, timeout_s=5.0, deadline_s=time.perf_counter() + 10, due_s=due_s)
    result = run_wave(wave, lambda _index: http_request("stream"), dial)
    records = sorted(
        (record_of(exchange, stream=True) for exchange in result.exchanges), key=lambda record: record.index
    )
    assert [record.error for record in records] == [None] * 4
    assert [record.due_s for record in records] == [result.started_s + due for due in due_s]
    assert all(record.due_s is not None and record.sent_s >= record.due_s for record in records)


def test_an_open_loop_without_a_free_connection_sends_late(dial: Callable[[], Connection]) -> None:
    wave = Wave(streams=1, requests=3, timeout_s=5.0, deadline_s=time.perf_counter() + 10, due_s=(0.0, 0.001, 0.002))
    result = run_wave(wave, lambda _index: http_request("stream"), dial)
    for before, after in itertools.pairwise(result.exchanges):
        assert after.sent_s >= before.ended_s


def test_nothing_is_sent_before_the_start_and_the_start_is_told(dial: Callable[[], Connection]) -> None:
    start_s = time.perf_counter() + 0.2
    wave = Wave(streams=2, requests=2, timeout_s=5.0, deadline_s=start_s + 5, start_s=start_s)
    result = run_wave(wave, lambda _index: http_request("stream"), dial)
    assert result.started_s == start_s
    assert all(exchange.sent_s >= start_s for exchange in result.exchanges)


def test_what_waits_for_the_others_is_called_when_everything_is_ready() -> None:
    order: list[str] = []

    def write_request(_index: int) -> bytes:
        order.append("written")
        return b"request"

    def ready() -> float:
        order.append("ready")
        return clock()

    def dial_one() -> Answering:
        order.append("dialled")
        return Answering(iter([OK]))

    clock = FastClock()
    wave = Wave(streams=2, requests=2, timeout_s=60.0, deadline_s=900.0)
    result = run_wave(wave, write_request, dial_one, clock=clock, ready=ready)
    assert order == ["dialled", "dialled", "written", "written", "ready"]
    assert all(exchange.sent_s >= result.started_s > 0.0 for exchange in result.exchanges)


def test_a_connection_that_its_server_closes_before_its_first_request_costs_no_error() -> None:
    class ClosedOnArrival(Answering):
        def send(self, data: memoryview) -> int:
            self._far.close()
            return len(data)

    script = iter([OK])
    dials = iter([ClosedOnArrival(script), Answering(script)])
    wave = Wave(streams=1, requests=1, timeout_s=60.0, deadline_s=900.0)
    result = run_wave(wave, lambda _index: b"request", lambda: next(dials), clock=FastClock())
    assert record_of(result.exchanges[0], stream=False).error is None


def test_waiting_for_room_to_send_goes_on_where_it_stopped() -> None:
    sent: list[bytes] = []

    class Narrow(Answering):
        def send(self, data: memoryview) -> int:
            sent.append(bytes(data[:3]))
            if len(data) <= 3:
                self._far.sendall(OK)
            return min(3, len(data))

    wave = Wave(streams=1, requests=1, timeout_s=60.0, deadline_s=900.0)
    result = run_wave(wave, lambda _index: b"request", lambda: Narrow(iter(())), clock=FastClock())
    assert b"".join(sent) == b"request"
    assert record_of(result.exchanges[0], stream=False).error is None


def test_a_request_that_waited_for_its_time_is_signed_anew() -> None:
    """AWS takes a signature for five minutes: one written ahead for a rate of one in two minutes would be refused."""
    _, written, _ = run([OK] * 3, step_s=1.0, streams=3, requests=3, due_s=(0.0, 30.0, 120.0))
    assert written == [0, 1, 2, 2]


def test_whoever_watches_is_told_every_five_seconds_how_many_requests_ended() -> None:
    told: list[int] = []
    _, _, result = run([OK] * 60, step_s=0.3, requests=60, tell=told.append)
    assert told == sorted(set(told))
    assert 1 < len(told) <= result.ended_s / 5.0 + 1
