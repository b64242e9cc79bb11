from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from seatrial.plan.planner import make_plan
from seatrial.plan.search.candidate import Score
from seatrial.plan.search.ranking import Goal, why_outdone

if TYPE_CHECKING:
    from tests.plan.conftest import Ask


def score(usd_per_hour: float = 2.0, alone: float = 10.0, highest: float = 900.0) -> Score:
    return Score(usd_per_hour, usd_per_hour, alone, 100.0, highest)


@pytest.mark.parametrize(
    ("goal", "other", "best", "because"),
    [
        (
            "latency",
            score(alone=30.04),
            score(),
            "A single request takes 30.0 ms per token; the chosen one 10.0.",
        ),
        (
            "latency",
            score(alone=10.004),
            score(),
            "A single request takes 10.004 ms per token; the chosen one 10.000.",
        ),
        (
            "throughput",
            score(highest=899.7),
            score(),
            "Gives at most 899.7 output tok/s; the chosen one 900.0.",
        ),
        (
            "cost",
            score(highest=800),
            score(),
            "Costs the same; gives at most 800 output tok/s, the chosen one 900.",
        ),
        (
            "cost",
            score(math.inf),
            score(),
            "Meets the SLO, but its price is unknown; a known price is preferred.",
        ),
        (
            "cost",
            score(math.inf, highest=800),
            score(math.inf),
            "No price is known; gives at most 800 output tok/s, the chosen one 900.",
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
