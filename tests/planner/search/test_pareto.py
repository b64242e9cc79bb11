from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.search.best_first import front
from seatrial.planner.search.candidate import Score, known


def score(usd_per_hour: float, alone: float, highest: float) -> Score:
    return Score(usd_per_hour, 1.0, alone, 100.0, highest)


def test_a_deployment_that_another_beats_in_everything_is_not_on_the_front() -> None:
    cheap, fast, strong, beaten = score(1, 30, 500), score(7, 10, 900), score(9, 12, 4_000), score(8, 11, 800)

    assert front([cheap, fast, strong, beaten]) == [0, 1, 2]


def test_of_equals_the_first_stays() -> None:
    assert front([score(1, 30, 500), score(1, 30, 500)]) == [0]


def test_an_unknown_price_is_beaten_by_every_known_one() -> None:
    assert front([score(float("inf"), 30, 500), score(50, 30, 500)]) == [1]
    assert known(float("inf")) is None


@given(st.lists(st.tuples(*[st.integers(1, 5)] * 3), min_size=1, max_size=12))
def test_what_is_not_on_the_front_is_beaten_by_something_on_it(points: list[tuple[int, int, int]]) -> None:
    scores = [score(*point) for point in points]
    places = front(scores)

    def beats(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
        return a[0] <= b[0] and a[1] <= b[1] and a[2] >= b[2]

    assert places
    assert all(any(beats(points[place], point) for place in places) for point in points)
