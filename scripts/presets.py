"""Writes `presets.json` of the catalog: the best recipes of popular models on three groups of instance types.

    .venv/bin/python scripts/presets.py [--write]

Predicted presets come from the planner, with list prices of the catalog and no account: 1,024 + 256 tokens, 16 requests
in flight. For each model and group of instance types it plans every recipe below that is allowed, and keeps the plain
deployment and the cheapest others. Published presets are rows of `benchmarks/planner_accuracy/measured_rows` at 8
requests in flight. Same catalog, same bytes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.measured import MeasuredRow, read_optimized, read_rows
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec, with_recipe
from seatrial.specs.recipe import parse_recipe, recipe_name
from seatrial_base.catalog import presets, speculation
from seatrial_base.catalog.instances import INSTANCES
from seatrial_base.catalog.presets import Preset, preset_name
from seatrial_base.errors import PlanError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec

OUT = Path(__file__).parents[1] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "presets.json"
GROUPS = (("ml.g5.", "ml.g6."), ("ml.g6e.", "ml.g7e."), ("ml.p4d.", "ml.p5.", "ml.p5en."))
RECIPES = ("none", "fp8", "fp8+kv_fp8+prefix_cache", "kv_fp8+prefix_cache")
MOST_KEPT = 2  # recipes beside the plain deployment, for each model and group
INPUT_TOKENS, OUTPUT_TOKENS, CONCURRENCY = 1_024, 256, 16
PUBLISHED_CONCURRENCY = 8
PUBLISHED_INPUT_TOKENS = 557  # of the use case multiturn_chat, or near
EAGLE3 = {
    "Qwen/Qwen3-32B": "RedHatAI/Qwen3-32B-speculator.eagle3",
    "meta-llama/Llama-3.1-8B-Instruct": "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3",
}
"""Heads that vLLM's own tests name (vllm-project/vllm pull request 31976), and AWS's benchmark suite."""
MODELS = (
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen2.5-32B-Instruct",
    "Qwen/Qwen2.5-72B-Instruct",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-4B",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-14B",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-235B-A22B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "google/gemma-2-9b-it",
    "google/gemma-3-12b-it",
    "google/gemma-3-27b-it",
    "meta-llama/Llama-2-7b-chat-hf",
    "meta-llama/Llama-2-13b-chat-hf",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.2-3B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "meta-llama/Meta-Llama-3-8B-Instruct",
    "meta-llama/Meta-Llama-3-70B-Instruct",
    "microsoft/phi-4",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "openai/gpt-oss-20b",
    "openai/gpt-oss-120b",
    "tiiuae/falcon-40b-instruct",
)


def predicted(folder: Path) -> Iterator[Preset]:
    """Yield the predicted presets."""
    for model in MODELS:
        # A rate that was only assumed makes no recipe the best one.
        known = model in EAGLE3 and speculation.assumed("eagle3", model).provenance != "assumed"
        drafted = (f"eagle3={EAGLE3[model]}", f"eagle3={EAGLE3[model]}+fp8") if known else ()
        for group in GROUPS:
            loaded = _spec(folder, model, _types(group))
            found = [preset for recipe in (*RECIPES, *drafted) if (preset := _planned(loaded, model, recipe))]
            yield from found[:1] if found and found[0].recipe == "none" else ()
            others = sorted((each for each in found if each.recipe != "none"), key=_price)
            yield from others[:MOST_KEPT]


def _price(preset: Preset) -> tuple[float, str]:
    return preset.usd_per_million_output_tokens or 0.0, preset.name


def _types(group: tuple[str, ...]) -> list[str]:
    return [each.instance_type for each in INSTANCES.rows if each.instance_type.startswith(group) and each.usd_per_hour]


def _spec(folder: Path, model: str, types: Sequence[str]) -> LoadedSpec:
    spec = folder / "endpoints" / "preset.yaml"
    workload = f"{{input_tokens: {INPUT_TOKENS}, output_tokens: {OUTPUT_TOKENS}, concurrency: {CONCURRENCY}}}"
    listed = ", ".join(types)
    text = f"name: preset\nmodel: {{hub_id: {model}}}\nworkload: {workload}\nserving: {{instance_types: [{listed}]}}\n"
    spec.write_text(text, encoding="utf-8")
    return load_spec(spec, "dev", environments=folder / "environments")


def _planned(loaded: LoadedSpec, model: str, recipe: str) -> Preset | None:
    """Return what the planner says of a recipe; `None` where it is refused or fits on no instance type."""
    try:
        plan = make_plan(with_recipe(loaded, parse_recipe(recipe)), accept_slo_miss=True)
    except (PlanError, SpecError):
        return None
    return _preset_of(plan, model, recipe)


def _preset_of(plan: Plan, model: str, recipe: str) -> Preset | None:
    chosen = next((each for each in plan.pareto if each.chosen), None)
    usd = plan.cost.usd_per_million_output_tokens
    if chosen is None or usd is None:
        return None
    per_copy = -(-CONCURRENCY // plan.copy_count.value)
    point = next((each for each in plan.curve if each.concurrency >= per_copy), plan.curve[-1])
    names = tuple(entry.name for entry in parse_recipe(recipe))
    return Preset(
        name=preset_name(model, plan.instance_type.value, names),
        model=model,
        instance_type=plan.instance_type.value,
        tensor_parallel_degree=plan.tensor_parallel_degree.value,
        recipe=recipe_name(parse_recipe(recipe)),
        input_tokens=INPUT_TOKENS,
        output_tokens=OUTPUT_TOKENS,
        concurrency=CONCURRENCY,
        output_tok_s=float(f"{chosen.output_tok_s:.3g}"),
        tpot_ms=float(f"{point.tpot_ms:.3g}"),
        usd_per_million_output_tokens=float(f"{usd:.3g}"),
        band=round(plan.band.throughput, 2),
        provenance="predicted",
        source="seatrial plan",
    )


def published() -> Iterator[Preset]:
    """Yield the presets of AWS's benchmark suite: throughput is requests in flight times output over median latency."""
    recipes = {"eagle3": f"eagle3={EAGLE3['Qwen/Qwen3-32B']}", "prefix-cache": "prefix_cache", "": "none"}
    seen = set[str]()
    rows = (*read_optimized(), *(row for row in read_rows() if row.file == "sagemaker_endpoints"))
    for row in sorted(rows, key=lambda row: abs(row.input_tokens - PUBLISHED_INPUT_TOKENS)):
        recipe = parse_recipe(recipes[row.optimization])
        name = f"{preset_name(row.model, row.instance.instance_type, tuple(entry.name for entry in recipe))}.published"
        # Other use cases and repeats follow; outputs of tool calling vary in length.
        if row.concurrency != PUBLISHED_CONCURRENCY or row.output_tokens < 500 or name in seen or not row.e2e_p50_ms:  # noqa: PLR2004
            continue
        seen.add(name)
        yield _published(row, name, recipe_name(recipe), row.e2e_p50_ms)


def _published(row: MeasuredRow, name: str, recipe: str, e2e_ms: float) -> Preset:
    tok_s = PUBLISHED_CONCURRENCY * row.output_tokens / e2e_ms * 1000
    price = row.instance.usd_per_hour
    return Preset(
        name=name,
        model=row.model,
        instance_type=row.instance.instance_type,
        tensor_parallel_degree=row.degree,
        recipe=recipe,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        concurrency=PUBLISHED_CONCURRENCY,
        output_tok_s=float(f"{tok_s:.3g}"),
        usd_per_million_output_tokens=float(f"{price / tok_s / 0.0036:.3g}") if price else None,
        provenance="published",
        source="AWS SageMaker inference benchmark suite, March 2026; throughput from the median latency",
    )


def main() -> None:
    """Write the presets, or say how many there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the catalog's file")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("environments", "endpoints"):
            (folder / name).mkdir()
        (folder / "environments" / "dev.yaml").write_text("name: dev\nregion: us-east-1\n", encoding="utf-8")
        rows = (*predicted(folder), *published())
    text = presets.presets_document(rows)
    print(f"{len(rows)} presets, {len(text):,} bytes")
    if write:
        OUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
