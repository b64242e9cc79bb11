from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial.planner.search.best_first import Goal, why_outdone
from seatrial.planner.search.candidate import Score

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def score(usd_per_hour: float = 2.0, alone: float = 10.0, highest: float = 900.0) -> Score:
    return Score(usd_per_hour, usd_per_hour, alone, 100.0, highest)


@pytest.mark.parametrize(
    ("goal", "other", "best", "because"),
    [
        (
            "latency",
            score(alone=30.04),
            score(),
            "30.0 ms per token for a single request, against 10.0 ms for the chosen one.",
        ),
        (
            "latency",
            score(alone=10.004),
            score(),
            "10.004 ms per token for a single request, against 10.000 ms for the chosen one.",
        ),
        (
            "throughput",
            score(highest=899.7),
            score(),
            "At most 899.7 output tok/s, against 900.0 for the chosen one.",
        ),
        (
            "cost",
            score(highest=800),
            score(),
            "Same price, at most 800 output tok/s against 900 for the chosen one.",
        ),
        (
            "cost",
            score(math.inf),
            score(),
            "Meets the SLO, but its price is unknown; a known price ranks first.",
        ),
        (
            "cost",
            score(math.inf, highest=800),
            score(math.inf),
            "Price unknown, at most 800 output tok/s against 900 for the chosen one.",
        ),
    ],
    ids=["slower", "hardly slower", "hardly less", "weaker", "no price", "no prices"],
)
def test_a_loser_is_told_apart_from_the_chosen_one(goal: Goal, other: Score, best: Score, because: str) -> None:
    assert why_outdone(best, other, goal) == because


@pytest.mark.parametrize("objective", ["cost", "cost_per_token"])
def test_without_a_price_nothing_is_called_cheap(objective: str, ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.p6-b300.48xlarge"]}, objective=objective))

    assert plan.instance_type.because.startswith("Price unknown. Highest throughput of ")
