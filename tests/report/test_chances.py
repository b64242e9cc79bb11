"""How a chance is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Probe, SaferDeployment
from seatrial.report.planned import chance_words, met_words, side_lines
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan

SAFER = SaferDeployment(
    instance_type="ml.g5.12xlarge",
    tensor_parallel_degree=4,
    copy_count=1,
    instance_count=1,
    usd_per_hour=2.115,
    more_usd_per_hour=0.6,
    concurrency_per_copy=16,
    chance=0.99,
)
PROBE = Probe(
    instance_type="ml.g4dn.xlarge",
    tensor_parallel_degree=1,
    copy_count=1,
    instance_count=1,
    usd_per_hour=0.736,
    saving_usd_per_hour=0.779,
    concurrency_per_copy=16,
    field="slo.tpot_ms.p95",
    predicted=66.0,
    bound=60.0,
    chance=0.22,
    because="",
)


def plan(**fields: object) -> Plan:
    return sample_plan(chance=0.912, **fields)


@pytest.mark.parametrize(
    ("chance", "told"),
    [(0.0, "under 1 %"), (0.0099, "under 1 %"), (0.01, "1 %"), (0.505, "50 %"), (0.99, "99 %"), (0.991, "over 99 %")],
)
def test_a_chance_is_told_in_whole_percent(chance: float, told: str) -> None:
    assert chance_words(chance) == told


def test_the_chance_of_the_plan_stands_beside_the_price_of_a_safer_one() -> None:
    assert met_words(plan(safer=SAFER)) == "91 % to meet it; $0.60/h more for 99 %"
    assert met_words(plan()) == "91 % to meet it"
    assert met_words(sample_plan()) == ""


def test_both_sides_of_a_plan_are_told() -> None:
    assert list(side_lines(plan(safer=SAFER, probe=PROBE))) == [
        "plan: 1 x ml.g5.2xlarge, TP 1: 91 % to meet the SLO",
        "cheaper: 1 x ml.g4dn.xlarge, TP 1: 22 % to meet the SLO, saves $0.779/h",
        "more expensive: 1 x ml.g5.12xlarge, TP 4: 99 % to meet the SLO, costs $0.60/h more; "
        "--candidate ml.g5.12xlarge:4 measures it",
    ]


def test_more_copies_of_the_plan_are_measured_at_their_level() -> None:
    more = SAFER.model_copy(
        update={"instance_type": "ml.g5.2xlarge", "tensor_parallel_degree": 1, "concurrency_per_copy": 8}
    )

    assert list(side_lines(plan(safer=more)))[-1].endswith("; --level 8 measures it")


def test_a_plan_without_bounds_has_no_sides() -> None:
    assert list(side_lines(sample_plan())) == []
