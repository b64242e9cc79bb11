from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.client.event_loop import backoff_s, retry_after_s

DATE = "Wed, 19 Nov 2025 12:00:00 GMT"


@pytest.mark.parametrize(
    ("repetitions", "least_s", "most_s"),
    [(0, 0.125, 0.25), (1, 0.25, 0.5), (2, 0.5, 1.0), (5, 4.0, 8.0), (6, 4.0, 8.0), (10_000, 4.0, 8.0)],
)
def test_the_wait_doubles_up_to_eight_seconds(repetitions: int, least_s: float, most_s: float) -> None:
    waits_s = [backoff_s(index, repetitions) for index in range(200)]
    assert all(least_s <= wait_s <= most_s for wait_s in waits_s)
    assert max(waits_s) - min(waits_s) > 0.9 * (most_s - least_s)


def test_the_same_request_waits_alike_and_its_neighbour_does_not() -> None:
    assert backoff_s(7, 1) == backoff_s(7, 1)
    assert backoff_s(7, 1) != backoff_s(8, 1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Wed, 19 Nov 2025 12:00:30 GMT", "date": DATE}, 30.0),
        ({"retry-after": "Wed, 19 Nov 2025 11:59:30 GMT", "date": DATE}, 0.0),
        ({"retry-after": "Wed, 19 Nov 2025 12:00:30 GMT", "date": "today"}, 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_servers_own_clock(headers: dict[str, str], seconds: float) -> None:
    assert retry_after_s(headers) == seconds


@given(st.text())
def test_whatever_stands_there_the_wait_is_no_negative_number(text: str) -> None:
    assert retry_after_s({"retry-after": text, "date": DATE}) >= 0
