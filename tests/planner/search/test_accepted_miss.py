from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial_base.errors import PlanError
from tests.planner.conftest import reads

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def test_an_slo_that_no_deployment_meets_is_refused_unless_accepted(ask: Ask) -> None:
    loaded = ask(slo={"ttft_ms": {"p95": 1}})
    with pytest.raises(PlanError, match="SEA205: no deployment is predicted to meet the SLO"):
        make_plan(loaded)
    plan = make_plan(loaded, accept_slo_miss=True)
    assert reads(
        plan.warnings[0],
        "SEA205, accepted: no deployment is predicted to meet the SLO: the bound is 1 ms, the best # ms, for a single "
        "request on ml.g5.2xlarge with degree 1",
    )
    assert "of 1 candidate predicted to answer within request_timeout_s" in plan.instance_type.because


def test_accepting_a_miss_changes_nothing_when_there_is_none(ask: Ask) -> None:
    loaded = ask()
    assert make_plan(loaded) == make_plan(loaded, accept_slo_miss=True)
