"""Instance pools: the plan is made for the first, and each other must hold a copy of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.packing import copies_of, pack, reservable
from seatrial.planner.planner import make_plan
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def pools(*names: str) -> dict[str, object]:
    return {"hosting": {"instance_pools": [*names]}, "serving": {}, "workload": WORKLOAD}


WORKLOAD = {"input_tokens": 256, "output_tokens": 256, "concurrency": 4, "max_model_len": 4096}


def test_the_plan_is_for_the_first_pool(ask: Ask) -> None:
    assert make_plan(ask(**pools("ml.g5.2xlarge", "ml.g6.2xlarge"))).instance_type.value == "ml.g5.2xlarge"


@pytest.mark.parametrize(
    ("name", "rule"),
    [("ml.g4dn.xlarge", "SEA212"), ("ml.inf2.xlarge", "SEA212"), ("ml.none.xlarge", "SEA110")],
)
def test_a_pool_that_cant_hold_a_copy_is_refused_at_its_place(ask: Ask, name: str, rule: str) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(ask(**pools("ml.g5.2xlarge", "ml.g6.2xlarge", name)))
    assert [(each.rule, each.field) for each in caught.value.problems] == [(rule, "hosting.instance_pools[2]")]


def test_a_copy_reserves_no_more_virtual_cpus_than_its_share_of_each_pool(ask: Ask) -> None:
    """With half of the 64 virtual CPUs of the first, an ml.g5.12xlarge with four accelerators held no copy."""
    plan = make_plan(ask(**pools("ml.g5.16xlarge", "ml.g5.12xlarge")))
    second = find_instance("ml.g5.12xlarge")
    assert second is not None
    assert plan.cpu_cores_per_copy == 6
    assert len(pack([copies_of(plan)], reservable(second)).most) == -(-copies_of(plan).most // 4)
