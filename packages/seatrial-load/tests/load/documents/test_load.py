from __future__ import annotations

from dataclasses import replace

import pytest

from seatrial_load.documents.request import Load
from seatrial_load.documents.request_checks import wrong_load

LOAD = Load(
    concurrency_levels=(1, 2), requests_per_concurrency=3, warmup_requests=0, budget_s=60.0, request_timeout_s=60.0
)
OPEN = replace(LOAD, arrival="poisson", rates_per_s=(1.0, 2.0))


@pytest.mark.parametrize(
    "load",
    [
        LOAD,
        OPEN,
        replace(LOAD, max_requests_per_concurrency=3),
        replace(LOAD, arrival="ramp", rates_per_s=(4.0, 1.0)),
        replace(LOAD, arrival="replay"),
        replace(OPEN, arrival="gamma", arrival_smoothness=0.5),
    ],
)
def test_possible_loads(load: Load) -> None:
    assert list(wrong_load(load)) == []


@pytest.mark.parametrize(
    ("load", "wrong"),
    [
        (
            replace(LOAD, max_requests_per_concurrency=2),
            ("max_requests_per_concurrency", "2 is below requests_per_concurrency 3"),
        ),
        (replace(LOAD, rates_per_s=(1.0,)), ("rates_per_s", "a closed loop has no rates, but [1.0] are given")),
        (replace(OPEN, rates_per_s=()), ("rates_per_s", "[] is not an ascending list of rates above 0")),
        (
            replace(OPEN, rates_per_s=(2.0, 2.0)),
            ("rates_per_s", "[2.0, 2.0] is not an ascending list of rates above 0"),
        ),
        (
            replace(OPEN, arrival="ramp", rates_per_s=(1.0,)),
            ("rates_per_s", "[1.0] is not the start and the end of a ramp, both above 0"),
        ),
        (
            replace(OPEN, arrival_smoothness=0.5),
            ("arrival_smoothness", "poisson arrivals have none; use gamma"),
        ),
        (replace(OPEN, arrival="gamma", arrival_smoothness=0.0), ("arrival_smoothness", "0 is not above 0")),
        (replace(OPEN, rates_for_copies=0), ("rates_for_copies", "0 is not above 0")),
        (replace(LOAD, budget_usd=0.0), ("budget_usd", "0 is not above 0")),
        (replace(LOAD, ramp_per_concurrency=-1), ("ramp_per_concurrency", "-1 is below 0")),
    ],
)
def test_impossible_loads(load: Load, wrong: tuple[str, str]) -> None:
    assert list(wrong_load(load)) == [wrong]
