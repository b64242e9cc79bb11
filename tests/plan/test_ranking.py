from __future__ import annotations

import math

import pytest

from seatrial.plan.candidate import Merit
from seatrial.plan.planner import make_plan
from seatrial.plan.ranking import Goal, why_outdone
from tests.plan.conftest import Ask, reads


def merit(usd_per_hour: float = 2.0, alone: float = 10.0, highest: float = 900.0) -> Merit:
    return Merit(usd_per_hour, usd_per_hour, alone, 100.0, highest)


@pytest.mark.parametrize(
    ("goal", "other", "best", "because"),
    [
        (
            "latency",
            merit(alone=30.04),
            merit(),
            "A single request is predicted to take 30.0 ms per token, the chosen one 10.0.",
        ),
        (
            "latency",
            merit(alone=10.004),
            merit(),
            "A single request is predicted to take 10.004 ms per token, the chosen one 10.000.",
        ),
        (
            "throughput",
            merit(highest=899.7),
            merit(),
            "It is predicted to give 899.7 output tokens per second at most, the chosen one 900.0.",
        ),
        (
            "cost",
            merit(highest=800),
            merit(),
            "It costs the same and is predicted to give 800 output tokens per second at most, not 900.",
        ),
        (
            "cost",
            merit(math.inf),
            merit(),
            "It keeps every objective, but its price is unknown, and a known price is preferred.",
        ),
        (
            "cost",
            merit(math.inf, highest=800),
            merit(math.inf),
            "Its price is unknown, as the chosen one's is, and it is predicted to give 800 output tokens per second "
            "at most, not 900.",
        ),
    ],
    ids=["slower", "hardly slower", "hardly less", "weaker", "no price", "no prices"],
)
def test_a_loser_is_told_apart_from_the_chosen_one(goal: Goal, other: Merit, best: Merit, because: str) -> None:
    assert why_outdone(best, other, goal) == because


@pytest.mark.parametrize("objective", ["cost", "cost_per_token"])
def test_without_a_price_nothing_is_called_cheap(objective: str, ask: Ask) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.p6-b300.48xlarge"]}, objective=objective))

    start, _, _ = plan.instance_type.because.partition(", of ")
    assert reads(start, "It has the highest throughput, # output tokens per second, for want of a price")
