"""Current models from their `config.json`: a few of the 90 plans that the benchmark makes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.models_of_today.plans import MOST_LINES, WORKLOADS, configurations, plan_one, planned_screen

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("model", "workload"),
    [
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "chat"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "documents"),
        ("deepseek-ai/DeepSeek-V3.2", "rate"),
    ],
)
def test_a_current_model_is_planned_on_one_short_screen(model: str, workload: str) -> None:
    planned = plan_one(model, workload)

    assert planned.problem == ""
    assert 10 <= planned.lines <= MOST_LINES


def test_what_an_expert_would_buy_stands_first() -> None:
    """Weights of 8 bits take less than half of what those of 16 cost."""
    planned = plan_one("tencent/Hunyuan-A13B-Instruct", "chat")

    assert planned.lines <= MOST_LINES
    first, condition = planned.screen.splitlines()[1:3]
    assert first.startswith("best buy    fp8: 1 x ml.g7e.2xlarge, TP 1: $4.204/h (41 % of the plan), at most ")
    told = "if your answers stay as good: lossless for Llama 3.1 (arXiv 2411.02355); measure it"
    assert condition.strip() == told


def test_a_model_that_fits_on_no_priced_type_is_refused_with_the_way_out() -> None:
    problem = plan_one("zai-org/GLM-5", "chat").problem

    way_out = "plan with --allow-unknown-price, or take weights of fewer bits"
    assert "SEA207" in problem
    assert problem.endswith(f"hint: {way_out}; estimated $163.78 per hour for an instance")


def test_thirty_models_are_planned() -> None:
    assert len(configurations()) == 30


def test_an_unknown_family_is_planned_as_its_nearest_and_says_so(tmp_path: Path) -> None:
    unknown = {**configurations()["Qwen/Qwen3-32B"], "model_type": "qwen9"}
    (tmp_path / "config.json").write_text(json.dumps(unknown))

    screen = planned_screen(tmp_path, WORKLOADS["chat"])

    assert "The model_type qwen9 is unknown, planned as qwen3, with 2 times its band" in screen
    assert "(extrapolated)" in screen
