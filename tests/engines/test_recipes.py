"""What recipes become in the files and the environment of their engines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seatrial.engines.render import render_plan
from seatrial.planner.planner import make_plan

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec

GOLDEN = Path(__file__).parent / "golden" / "recipes.txt"
LLAMA = "hub_id: meta-llama/Llama-3.1-8B-Instruct\n  revision: abc1234"
AWQ = "{awq: {checkpoint: org/llama-awq, revision: 4f2b1e0}}"
SERVED = "serving: {instance_types: [ml.g6e.xlarge]"
SPECS = {
    "LMI: FP8 at loading, a draft head, FP8 cache, prefix cache": (
        f"optimization: [fp8, {{eagle3: {{draft: org/head}}}}, kv_fp8, prefix_cache]\n{SERVED}}}"
    ),
    "LMI: an AWQ checkpoint": f"optimization: [{AWQ}, ngram]\n{SERVED}}}",
    "TGI: an AWQ checkpoint": f"optimization: [{AWQ}, ngram]\n{SERVED}, engine: tgi}}",
    "LMI: TensorRT-LLM with SmoothQuant": f"optimization: [smoothquant, {{compile: trtllm}}]\n{SERVED}}}",
    "vLLM: a draft model": (
        "optimization: [{speculative: {draft: meta-llama/Llama-3.2-1B, draft_tokens: 3}}]\n"
        + SERVED
        + ", engine: vllm}"
    ),
}


class Loaded(Protocol):
    def __call__(self, extra: str = ..., *, model: str = ..., isolated: bool = ...) -> LoadedSpec: ...


def rendered(loaded: LoadedSpec) -> str:
    config = render_plan(loaded, make_plan(loaded))
    env = "".join(f"{name}={value}\n" for name, value in sorted(config.container_env.items()))
    return "".join(text for _, text in sorted(config.files.items())) + env


def test_recipes_are_rendered_as_the_golden_file_says(loaded: Loaded) -> None:
    text = "\n".join(f"== {title}\n{rendered(loaded(extra, model=LLAMA))}" for title, extra in SPECS.items())
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")

    assert text == GOLDEN.read_text(encoding="utf-8")


def test_a_recipe_and_the_same_overrides_by_hand_are_rendered_alike(loaded: Loaded) -> None:
    recipe = rendered(loaded(f"optimization: [fp8, kv_fp8, prefix_cache]\n{SERVED}}}", model=LLAMA))
    overrides = "overrides: {quantization: fp8, kv_cache_dtype: fp8_e4m3, prefix_caching: true}"
    by_hand = rendered(loaded(f"{SERVED}, {overrides}}}", model=LLAMA))

    assert recipe == by_hand
