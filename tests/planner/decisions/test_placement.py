"""What the plan says of its size: the copies it counts, and those that autoscaling will run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.planner.planner import make_plan

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def test_more_copies_at_the_target_than_planned_are_said_with_their_price(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"target_utilization": 0.1, "max_copies": 3}, trial={"target": "slo"}))

    assert plan.copy_count.value == 1
    assert plan.target_concurrency_per_copy.value == 12.7  # 0.1 of the knee of 127; the workload brings 16
    (told,) = [warning for warning in plan.warnings if "At peak, autoscaling runs" in warning]
    assert told.endswith(" 2 copies instead of the planned 1: $3.03 per hour.")


def test_a_size_that_autoscaling_keeps_needs_no_words(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"target_utilization": 1.0, "max_copies": 3}))

    assert not any("At peak, autoscaling runs" in warning for warning in plan.warnings)
