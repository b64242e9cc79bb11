from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def test_an_option_that_lmi_would_drop_is_warned_of(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "overrides": {"extra": {"enable_prefix_cache": True}}}
    (told,) = [warning for warning in make_plan(ask(serving=serving)).warnings if warning.startswith("SEA306")]
    assert "option.enable_prefix_cache," in told
    assert told.endswith("did you mean enable_prefix_caching?")


def test_known_options_are_not(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "overrides": {"extra": {"enable_prefix_caching": True}}}
    assert not any("SEA306" in warning for warning in make_plan(ask(serving=serving)).warnings)


@pytest.mark.parametrize(
    ("rail", "warnings"),
    [
        (
            3.02,
            [
                "An update at max_copies needs 1 instance besides 1: $3.03 per hour, above the guard rail of $3.02, "
                "which does not cover updates."
            ],
        ),
        (3.03, []),
    ],
)
def test_an_update_beyond_the_guard_rail_is_warned_of(ask: Ask, rail: float, warnings: list[str]) -> None:
    plan = make_plan(ask(rails={"usd_per_hour": rail}))
    assert [warning for warning in plan.warnings if warning.startswith("An update")] == warnings
