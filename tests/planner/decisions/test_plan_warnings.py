from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import UNPREDICTED
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
    ("engine", "overrides", "left_out"),
    [
        ("lmi", {"enforce_eager": True, "extra": {"swap_space": 4, "seed": 1}}, "enforce_eager, swap_space"),
        ("lmi", {"enforce_eager": False, "chunked_prefill": True, "extra": {"cpu_offload_gb": 0}}, ""),
        ("lmi/trtllm", {}, "serving.backend trtllm"),
        ("lmi", {"chunked_prefill": False, "extra": {"own": 1}}, "chunked_prefill, own"),
        ("tgi", {"extra": {"cuda_graphs": 0, "gpu_memory_utilization": 0.5}}, "cuda_graphs, gpu_memory_utilization"),
        ("lmi", {"extra": {"gpu_memory_utilization": 0.95, "enable_expert_parallel": True}}, ""),
        ("sglang", {"extra": {"mem_fraction_static": 0.8, "block_size": 32}}, "block_size"),
        ("lmi", {"extra": {"max_loras": 2}}, "max_loras (counted as serving.overrides.lora)"),
    ],
)
def test_what_the_prediction_does_not_know_is_named_in_one_sentence(
    ask: Ask, engine: str, overrides: dict[str, object], left_out: str
) -> None:
    engine, _, backend = engine.partition("/")
    serving = {"instance_types": ["ml.g5.2xlarge"], "engine": engine, "backend": backend or "auto"}
    plan = make_plan(ask(serving={**serving, "overrides": overrides}))
    named = [warning for warning in plan.warnings if warning.startswith(UNPREDICTED)]
    assert named == ([f"{UNPREDICTED}{left_out}."] if left_out else [])


@pytest.mark.parametrize(
    ("engine", "overrides", "told"),
    [
        ("lmi", {"tool_call_parser": "hermess"}, "SEA378: lmi has no tool_call_parser hermess; did you mean hermes?"),
        ("vllm", {"reasoning_parser": "qwen"}, "SEA378: vllm has no reasoning_parser qwen; did you mean qwen3?"),
        ("sglang", {"tool_call_parser": "hermes"}, ""),
        ("vllm", {"tool_call_parser": "own", "extra": {"tool_parser_plugin": "own.py"}}, ""),
    ],
)
def test_a_parser_that_the_engine_does_not_have_is_warned_of(
    ask: Ask, engine: str, overrides: dict[str, object], told: str
) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "engine": engine, "overrides": overrides}
    warned = [warning for warning in make_plan(ask(serving=serving)).warnings if warning.startswith("SEA378")]
    assert warned == ([told] if told else [])


@pytest.mark.parametrize(("version", "told"), [("lmi28", False), ("lmi29", True)])
def test_a_build_that_does_not_tell_its_vllm_is_counted_as_an_old_one(ask: Ask, *, version: str, told: bool) -> None:
    plan = make_plan(ask(serving={"instance_types": ["ml.p5.4xlarge"], "engine": "lmi", "engine_version": version}))
    warned = [warning for warning in plan.warnings if "which vLLM it has" in warning]
    assert [warning.endswith("with 0.90 of each GPU.") for warning in warned] == [True] * told
    assert plan.memory.reserve_bytes == round(80 * 2**30 * 0.1 if told else 80 * 2**30 * 0.08 + 1_117_000_000)
