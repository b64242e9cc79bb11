"""Several processes that load as one. Each test forks for real; their server is the fake runtime of the tests."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.client.connection import Address, dialer, socket_addresses
from seatrial_load.client.event_loop import Wave
from seatrial_load.client.worker_pool import PoolOrder, load_with_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_load.client.connection import Dial
    from seatrial_load.client.worker_pool import PoolResult

pytestmark = pytest.mark.timing

REQUEST_BODY = b'{"parameters":{"max_new_tokens":4}}'


def http_request(_index: int) -> bytes:
    return b"POST /endpoints/stream/x HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(REQUEST_BODY), REQUEST_BODY)


@pytest.fixture
def pool(runtime_url: str) -> Callable[..., PoolResult]:
    where = Address(tls=False, host="127.0.0.1", port=int(runtime_url.rpartition(":")[2]), path="")

    def dial_factory() -> Dial:
        return dialer(where, socket_addresses(where))

    def run(
        *,
        workers: int | None,
        write_request: Callable[[int], bytes] = http_request,
        clock: Callable[[], float] = time.perf_counter,
        **changes: object,
    ) -> PoolResult:
        deadline_s = time.perf_counter() + 20
        fields: dict[str, object] = {
            "streams": 4, "requests": 12, "timeout_s": 5.0, "deadline_s": deadline_s, **changes
        }  # fmt: skip
        wave = Wave(**fields)  # type: ignore[arg-type]  # keywords of any type
        return load_with_workers(
            PoolOrder(wave=wave, stream=True), write_request, dial_factory, workers=workers, clock=clock
        )

    return run


def children() -> set[str]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123 (one line of the kernel)
        return set(file.read().split())


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_index_is_sent_once_whatever_the_number_of_processes(
    pool: Callable[..., PoolResult], workers: int
) -> None:
    before = children()
    result = pool(workers=workers, first_index=100)
    assert sorted(record.index for record in result.records) == list(range(100, 112))
    assert {(record.error, record.output_tokens) for record in result.records} == {(None, 4)}
    assert (result.cut, result.lost_because, result.enough_because) == (False, None, None)
    assert (result.evidence.workers, result.evidence.streams) == (workers, 4)
    assert [record.ended_s for record in result.records] == sorted(record.ended_s for record in result.records)
    assert children() == before


def test_all_processes_start_together_once_all_are_ready(pool: Callable[..., PoolResult]) -> None:
    result = pool(workers=2, requests=4)
    firsts = [min(record.sent_s for record in result.records if record.index % 2 == worker) for worker in (0, 1)]
    assert all(first_s >= result.started_s for first_s in firsts)


def test_no_more_processes_than_requests_and_a_small_load_forks_none(pool: Callable[..., PoolResult]) -> None:
    assert pool(workers=8, requests=2).evidence.workers == 2
    assert pool(workers=None).evidence.workers == 1


def test_enough_is_decided_over_all_processes(pool: Callable[..., PoolResult]) -> None:
    asked: list[int] = []

    def enough(durations_s: Sequence[float]) -> str | None:
        asked.append(len(durations_s))
        return "the interval is narrow" if len(durations_s) >= 20 else None

    result = pool(workers=2, requests=100_000, least_requests=10, enough=enough)
    assert result.enough_because == "the interval is narrow"
    assert not result.cut
    assert asked[0] >= 10
    assert asked[-1] >= 20
    assert {record.index % 2 for record in result.records} == {0, 1}


def test_the_deadline_cuts_all(pool: Callable[..., PoolResult]) -> None:
    """The clock of each process leaps beyond the deadline once it has sent a few requests."""
    written: list[int] = []

    def write_request(index: int) -> bytes:
        written.append(index)
        return http_request(index)

    def clock() -> float:
        return time.perf_counter() + (1_000.0 if len(written) > 20 else 0.0)

    result = pool(workers=2, requests=100_000, write_request=write_request, clock=clock)
    assert result.cut
    assert result.records


def test_a_process_that_is_killed_is_told_with_what_is_missing(pool: Callable[..., PoolResult]) -> None:
    def killed(index: int) -> bytes:
        if index == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return http_request(index)

    result = pool(workers=2, write_request=killed)
    assert result.lost_because == "process 2 of 2 was killed by signal 9; its 6 requests are lost"
    assert result.cut
    assert [record.index for record in result.records if record.index % 2] == []
    assert len(result.records) == 6


def test_a_defect_in_a_process_is_told_in_its_own_words(pool: Callable[..., PoolResult]) -> None:
    def broken(index: int) -> bytes:
        if index == 1:
            raise ValueError("no such prompt")
        return http_request(index)

    result = pool(workers=2, write_request=broken)
    assert result.lost_because == "process 2 of 2 failed: ValueError: no such prompt; its 6 requests are lost"


def test_what_is_refused_for_the_user_reaches_the_user(pool: Callable[..., PoolResult]) -> None:
    def refused(_index: int) -> bytes:
        raise BenchError.of("SEA503", "no AWS credentials", hint="set them", field="target")

    before = children()
    with pytest.raises(BenchError) as caught:
        pool(workers=2, write_request=refused)
    assert str(caught.value) == "target: SEA503: no AWS credentials\n  hint: set them"
    assert children() == before


def test_when_nobody_comes_home_there_is_no_result(pool: Callable[..., PoolResult]) -> None:
    def dying(_index: int) -> bytes:
        os._exit(3)

    with pytest.raises(BenchError) as caught:
        pool(workers=2, write_request=dying)
    assert str(caught.value) == (
        "SEA507: all load workers failed: process 1 of 2 exited without a report (status 3);"
        " its 6 requests are lost; process 2 of 2 exited without a report (status 3);"
        " its 6 requests are lost"
    )


def test_an_interruption_leaves_no_process_behind(pool: Callable[..., PoolResult]) -> None:
    def interrupted(_durations_s: Sequence[float]) -> str:
        raise KeyboardInterrupt

    before = children()
    with pytest.raises(KeyboardInterrupt):
        pool(workers=2, requests=100_000, enough=interrupted)
    assert children() == before


def test_processes_whose_parent_was_killed_load_no_more(pool: Callable[..., PoolResult]) -> None:
    told, tell = os.pipe()

    def write_request(index: int) -> bytes:
        if index in (20, 21):
            os.write(tell, b"%10d" % os.getpid())
        return http_request(index)

    parent = os.fork()
    if not parent:
        try:
            pool(workers=2, requests=100_000, write_request=write_request)
        finally:
            os._exit(0)
    workers = [os.pidfd_open(int(os.read(told, 10))) for _ in range(2)]
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        assert all(select.select([worker], [], [], 10)[0] for worker in workers)
    finally:
        for descriptor in (told, tell, *workers):
            os.close(descriptor)


def test_the_parent_tells_how_far_the_processes_are(pool: Callable[..., PoolResult]) -> None:
    told: list[int] = []
    result = pool(workers=2, requests=12, tell=told.append)
    assert (len(result.records), told[0]) == (12, 0)


def test_the_lost_are_told_in_the_order_of_their_numbers(pool: Callable[..., PoolResult]) -> None:
    """Process 1 waits for the end of process 2."""
    told, tell = os.pipe()

    def dying(index: int) -> bytes:
        if index % 2:
            os.write(tell, b"%10d" % os.getpid())
        else:
            with suppress(ProcessLookupError):
                select.select([os.pidfd_open(int(os.read(told, 10)))], [], [])
        os._exit(3)

    with pytest.raises(BenchError) as caught:
        pool(workers=2, write_request=dying)
    os.close(told)
    os.close(tell)
    lost = str(caught.value)
    assert 0 < lost.index("process 1 of 2") < lost.index("process 2 of 2")
