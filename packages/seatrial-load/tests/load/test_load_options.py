"""Options of a command line that change a load which a spec asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.cli.requests import LoadOptions, Mistakes, with_load
from seatrial_load.documents.request_checks import check_trial_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import Arrival, TrialRequest


@pytest.fixture
def planned(trial_request: Callable[..., TrialRequest]) -> TrialRequest:
    """The trial of a spec with random arrivals."""
    plain = trial_request()
    load = replace(plain.load, arrival="gamma", arrival_smoothness=0.5, rates_per_s=(2.0, 3.0, 4.0), rates_for_copies=2)
    return replace(plain, load=load)


@pytest.mark.parametrize(
    ("options", "arrival", "rates"),
    [
        (LoadOptions(), "gamma", (2.0, 3.0, 4.0)),
        (LoadOptions(levels="1,2"), "closed", ()),
        (LoadOptions(protocol="jumpstart-2024"), "closed", ()),
        (LoadOptions(rates="1,9", arrival="poisson"), "poisson", (1.0, 9.0)),
    ],
)
def test_what_is_ordered_takes_the_place_of_what_is_planned(
    planned: TrialRequest, options: LoadOptions, arrival: Arrival, rates: tuple[float, ...]
) -> None:
    changed = with_load(planned, options, Mistakes(given=frozenset()))
    check_trial_request(changed)
    assert (changed.load.arrival, changed.load.rates_per_s) == (arrival, rates)
    assert changed.load.rates_for_copies == (2 if arrival == "gamma" else None)
