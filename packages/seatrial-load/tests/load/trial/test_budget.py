from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.trial.budget import budget_over, budget_s, left_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest

    MakeRequest = Callable[..., TrialRequest]


@pytest.mark.parametrize(
    ("usd", "copies", "seconds", "over"),
    [
        (None, 1, 30.0, "the budget of 30 s ended"),
        (0.02, 1, 20.0, "the budget of 0.02 USD was spent after 20 s"),  # 0.02 / 3.6 per hour
        (0.02, 2, 10.0, "the budget of 0.02 USD was spent after 10 s"),
        (1.0, 1, 30.0, "the budget of 30 s ended"),  # a dollar would last for 1,000 s
    ],
)
def test_the_budget_that_ends_first(
    trial_request: MakeRequest, usd: float | None, copies: int, seconds: float, over: str
) -> None:
    made = trial_request(copy_count=copies)
    request = replace(made, load=replace(made.load, budget_usd=usd))
    assert budget_s(request) == pytest.approx(seconds)
    assert budget_over(request) == Stop(reason=StopReason.BUDGET, because=over)


def test_what_is_left_counts_all_runs(trial_request: MakeRequest) -> None:
    progress = TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=12.5, sent=3, live=not_proven(), runs=2)
    assert left_s(trial_request(), progress) == 17.5
