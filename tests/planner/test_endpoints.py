"""The endpoints of this repository can be planned in each of its environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.planner.planner import make_plan
from seatrial.specs.load import environment_names, load_spec

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "environments"


@pytest.mark.parametrize("environment", environment_names(ENVIRONMENTS))
@pytest.mark.parametrize("spec", sorted((ROOT / "endpoints").glob("*.yaml")), ids=lambda spec: spec.stem)
def test_has_a_plan_within_the_guard_rails(spec: Path, environment: str) -> None:
    loaded = load_spec(spec, environment, environments=ENVIRONMENTS)
    plan = make_plan(loaded)

    rail = loaded.environment.guard_rails.usd_per_hour
    assert plan.cost.usd_per_hour is not None
    assert rail is None or plan.cost.usd_per_hour / plan.instance_count.value * plan.max_instances <= rail
