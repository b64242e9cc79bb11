"""Rates that are planned for some copies become those of the copies that are live."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.trial.budget import live_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest


def progress(copies: int) -> TrialProgress:
    live = replace(not_proven(), proven=True, copy_count=copies)
    return TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=0.0, sent=0, live=live)


@pytest.mark.parametrize(("planned_for", "rates"), [(4, (1.0, 2.0)), (None, (4.0, 8.0))])
def test_a_candidate_of_one_copy_gets_its_share(
    trial_request: Callable[..., TrialRequest], planned_for: int | None, rates: tuple[float, ...]
) -> None:
    """A candidate is one copy of four; a rate that somebody ordered stays as it is."""
    plain = trial_request(copy_count=4)
    load = replace(plain.load, arrival="poisson", rates_per_s=(4.0, 8.0), rates_for_copies=planned_for)
    live = live_request(replace(plain, load=load), progress(1))
    assert (live.copy_count, live.load.rates_per_s) == (1, rates)
    assert live_request(live, progress(1)) == live


def test_the_rate_of_the_gate_goes_with_the_others(trial_request: Callable[..., TrialRequest]) -> None:
    plain = trial_request(copy_count=4)
    load = replace(plain.load, arrival="poisson", rates_per_s=(4.0, 8.0), rates_for_copies=4, gate_rate_per_s=4.0)
    live = live_request(replace(plain, load=load), progress(1))
    assert (live.load.rates_per_s, live.load.gate_rate_per_s) == ((1.0, 2.0), 1.0)
