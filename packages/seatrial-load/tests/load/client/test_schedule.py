from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.documents.arrivals import arrivals_of
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.request import Load
from seatrial_load.trial.dependencies import Tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import Arrival, TrialRequest

    MakeRequest = Callable[..., TrialRequest]

LOAD = Load(
    concurrency_levels=(1,), requests_per_concurrency=1, warmup_requests=0, budget_s=1.0, request_timeout_s=1.0,
    level_s=10.0, rates_per_s=(1.0, 2.5),
)  # fmt: skip
PROGRESS = TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=0.0, sent=0, live=not_proven())


@pytest.mark.parametrize(
    ("arrival", "due_s", "offered", "ordered"),
    [
        ("constant", (0.0, 4.0, 8.0), 0.3, 2.5),
        ("poisson", (1.0, 9.0), 0.2, 2.5),
        ("gamma", (1.0, 9.0), 0.2, 2.5),
        ("ramp", (0.0, 5.0), 0.2, None),
        ("replay", (0.0, 2.0, 4.0), 0.5, None),  # two gaps in 4 s, however long the answers took
        ("replay", (0.0,), 1.0, None),
        ("closed", (0.0,), 0.1, None),
    ],
)
def test_what_is_offered_and_what_was_ordered(
    arrival: Arrival, due_s: tuple[float, ...], offered: float, ordered: float | None
) -> None:
    load = replace(LOAD, arrival=arrival)
    assert arrivals_of(load).offered_per_s(load, due_s) == offered
    assert arrivals_of(load).rate_per_s(load, 1) == ordered


@pytest.mark.parametrize("arrival", ["poisson", "gamma"])
def test_every_trial_has_the_same_arrivals(trial_request: MakeRequest, arrival: Arrival) -> None:
    request = trial_request(load=replace(LOAD, arrival=arrival, rates_per_s=(5.0,)))
    later = replace(PROGRESS, started_at="2026-11-22T01:02:03+00:00")
    assert Tools().schedule(request, PROGRESS) == Tools().schedule(request, later)


def test_a_draw_without_a_request_has_one(trial_request: MakeRequest) -> None:
    request = trial_request(load=replace(LOAD, arrival="poisson", rates_per_s=(1e-9,)))
    assert Tools().schedule(request, PROGRESS) == (0.0,)
