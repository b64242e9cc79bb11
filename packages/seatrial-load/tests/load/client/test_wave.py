from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.client.event_loop import Wave


def indices(wave: Wave) -> list[int]:
    return [wave.first_index + number * wave.stride for number in range(wave.requests)]


def test_two_workers_take_every_other_request() -> None:
    wave = Wave(streams=3, requests=5, timeout_s=1, deadline_s=9, first_index=100, due_s=(0.0, 0.1, 0.2, 0.3, 0.4))
    first, second = wave.share(0, 2), wave.share(1, 2)
    assert (first.streams, second.streams) == (2, 1)
    assert (indices(first), indices(second)) == ([100, 102, 104], [101, 103])
    assert (first.due_s, second.due_s) == ((0.0, 0.2, 0.4), (0.1, 0.3))


@given(
    streams=st.integers(1, 50),
    requests=st.integers(0, 200),
    workers=st.integers(1, 8),
    machines=st.integers(1, 5),
    first=st.integers(0, 1000),
)
def test_shares_of_shares_send_every_index_once(
    streams: int, requests: int, workers: int, machines: int, first: int
) -> None:
    whole = Wave(streams=streams, requests=requests, timeout_s=1, deadline_s=9, first_index=first)
    parts = [whole.share(machine, machines).share(worker, workers)
             for machine in range(machines) for worker in range(workers)]  # fmt: skip
    assert sorted(index for part in parts for index in indices(part)) == indices(whole)
    assert sum(part.streams for part in parts) == streams
