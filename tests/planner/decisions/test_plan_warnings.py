from __future__ import annotations

from typing import TYPE_CHECKING

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
