from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.plan.planner import make_plan

if TYPE_CHECKING:
    from tests.plan.conftest import Ask


def test_an_option_that_lmi_would_drop_is_warned_of(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "overrides": {"extra": {"enable_prefix_cache": True}}}
    assert (
        "SEA306: neither LMI 27 nor its vLLM 0.23.0 knows option.enable_prefix_cache, which is dropped without an "
        "error; did you mean enable_prefix_caching?"
    ) in make_plan(ask(serving=serving)).warnings


def test_known_options_are_not(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "overrides": {"extra": {"enable_prefix_caching": True}}}
    assert not any("SEA306" in warning for warning in make_plan(ask(serving=serving)).warnings)
