"""What engines, versions, accelerators and optimization jobs refuse of a recipe, and the nearest recipe that runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.engine import choose_engine
from seatrial.planner.planner import make_plan
from seatrial.planner.recipe_limits import accelerator_limits, weights_refusals
from seatrial.planner.resolve import nearest_recipe, recipe_engine, refuse_recipe, resolve, runs
from seatrial.specs.architecture import read_architecture
from seatrial.specs.endpoint import ModelSpec
from seatrial.specs.load import with_recipe
from seatrial.specs.optimization import NAMES
from seatrial.specs.recipe import expanded, is_quantized_at_start, parse_recipe, recipe_name
from seatrial_base.catalog import optimizations
from seatrial_base.catalog.engine_options import find_spellings
from seatrial_base.catalog.engine_versions import dialect_of, read_version
from seatrial_base.catalog.engines import ENGINE_CANDIDATES
from seatrial_base.catalog.images import IMAGES
from seatrial_base.catalog.instances import ACCELERATORS
from seatrial_base.errors import PlanError, SpecError
from seatrial_lint.engines.config import ServingConfig
from seatrial_lint.engines.neutral import spell

if TYPE_CHECKING:
    from pathlib import Path

    from tests.planner.conftest import Ask

LLAMA = {"hub_id": "meta-llama/Llama-3.1-8B-Instruct"}
LLAMA_CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
TEXTS = {
    "awq": "awq=org/llama-awq",
    "mxfp4": "mxfp4=org/llama-mxfp4",
    "smoothquant": "smoothquant=org/llama-w8a8",
    "speculative": "speculative=meta-llama/Llama-3.2-1B",
    "eagle3": "eagle3=org/head",
    "compile": "compile=trtllm",
}
# How each optimization is configured, but for weights that tell it themselves.
CONFIGS: dict[str, dict[str, object]] = {
    "fp8": {"quantization": "fp8"},
    "awq": {"quantization": "awq"},
    "mxfp4": {"quantization": "mxfp4"},
    "speculative": {"speculative_decoding": {"method": "draft_model", "model": "org/d", "draft_tokens": 3}},
    "eagle3": {"speculative_decoding": {"method": "eagle3", "model": "org/d", "draft_tokens": 3}},
    "ngram": {"speculative_decoding": {"method": "ngram", "draft_tokens": 3}},
    "prefix_cache": {"prefix_caching": True},
    "kv_fp8": {"kv_cache_dtype": "fp8_e4m3"},
}


def asked(ask: Ask, recipe: str, **serving: object) -> list[tuple[str, str]]:
    """Return the rules that refuse a recipe, with the recipe that each hint names."""
    loaded = with_recipe(ask(model=LLAMA, serving=serving), parse_recipe(recipe))
    try:
        resolve(loaded)
    except PlanError as error:
        return [(problem.rule, problem.hint.rpartition(": ")[2]) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("recipe", "serving", "told"),
    [
        ("fp8+kv_fp8+ngram+prefix_cache", {}, []),
        ("speculative=org/d", {"engine": "tgi"}, [("SEA233", "ngram")]),
        ("kv_fp8", {"backend": "trtllm"}, [("SEA233", "none")]),
        ("speculative=org/d", {"engine": "lmi", "engine_version": "0.36.0-lmi18.0.0"}, [("SEA234", "ngram")]),
        ("speculative=org/d", {"engine": "lmi", "engine_version": "0.36.0-lmi20.0.0"}, []),
        ("eagle3=org/h", {"engine": "lmi", "engine_version": "0.33.0-lmi15.0.0"}, [("SEA234", "none")]),
        ("compile=trtllm+fp8", {"instance_types": ["ml.g5.2xlarge"]}, [("SEA235", "compile=trtllm")]),
        ("compile=trtllm+fp8", {"instance_types": ["ml.g5.2xlarge", "ml.g6.2xlarge"]}, []),
        ("smoothquant=org/x-w8a8", {"instance_types": ["ml.g7e.2xlarge"]}, [("SEA235", "fp8")]),
        ("compile=neuron", {"instance_types": ["ml.g5.2xlarge"]}, [("SEA233", "none")]),
        ("compile=neuron", {"instance_types": ["ml.inf2.xlarge"]}, []),
        ("compile=neuron+kv_fp8", {"instance_types": ["ml.inf2.xlarge"]}, [("SEA233", "compile=neuron")]),
        ("compile=trtllm+ngram", {}, [("SEA236", "compile=trtllm")]),
        ("speculative,job=true", {}, [("SEA237", "ngram")]),
        ("smoothquant,job=true", {}, [("SEA237", "fp8")]),
        ("awq,job=true", {"instance_types": ["ml.p6-b300.48xlarge"]}, [("SEA235", "fp8")]),
    ],
)
def test_a_refusal_names_its_rule_and_the_nearest_recipe(
    ask: Ask, recipe: str, serving: dict[str, object], told: list[tuple[str, str]]
) -> None:
    assert asked(ask, recipe, **serving) == told


def test_what_can_not_run_a_recipe_is_a_rejected_candidate(ask: Ask) -> None:
    types = ["ml.g5.2xlarge", "ml.g6e.2xlarge"]
    loaded = with_recipe(ask(model=LLAMA, serving={"instance_types": types}), parse_recipe("compile=trtllm+fp8"))

    plan = make_plan(loaded)

    assert plan.instance_type.value == "ml.g6e.2xlarge"
    assert [each.because for each in plan.rejected if each.instance_type == "ml.g5.2xlarge"] == [
        "fp8 does not run on the NVIDIA A10G: TensorRT-LLM needs FP8 arithmetic: Ada, Hopper or Blackwell."
    ]


def test_a_build_that_takes_longer_than_a_start_is_refused_and_ahead_of_time_is_not(ask: Ask) -> None:
    serving = {"instance_types": ["ml.p5.48xlarge"]}
    loaded = ask(model={"hub_id": "meta-llama/Llama-3.1-405B-Instruct"}, serving=serving)
    at_start, ahead = parse_recipe("compile=trtllm+fp8"), parse_recipe("compile=trtllm,when=ahead_of_time+fp8")

    with pytest.raises(PlanError) as error:
        resolve(with_recipe(loaded, at_start))

    assert [(each.rule, each.hint.rpartition(": ")[2]) for each in error.value.problems] == [("SEA239", "fp8")]
    assert runs(loaded, ahead)


def test_the_startup_timeout_holds_the_build(ask: Ask) -> None:
    loaded = ask(model=LLAMA, serving={"instance_types": ["ml.g6e.xlarge"]})
    names = ("fp8", "compile=trtllm+fp8", "compile=trtllm,when=ahead_of_time+fp8")

    loading, built, ahead = (make_plan(with_recipe(loaded, parse_recipe(name))).startup_timeout_s for name in names)

    assert built.value == 840  # 300 s, 16.1 GB at 500 and at 100 MB/s, twice 16.1 GB at 100 MB/s; whole minutes
    assert "building the TensorRT-LLM engine in 321 s" in built.because
    assert (loading.value, ahead.value) == (600, 600)


@pytest.mark.parametrize(
    ("own", "recipe", "told"),
    [
        ({}, "fp8", []),
        ({}, "awq", ["SEA232"]),
        ({"quant_method": "awq", "bits": 4}, "awq", []),
        ({"quant_method": "awq", "bits": 4}, "fp8", ["SEA230"]),
    ],
)
def test_a_recipe_is_held_against_the_config_json_of_the_weights(
    ask: Ask, tmp_path: Path, own: dict[str, object], recipe: str, told: list[str]
) -> None:
    config = {**LLAMA_CONFIG, **({"quantization_config": own} if own else {})}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = ModelSpec.model_validate({"s3_uri": "s3://weights/llama/", "config_file": "config.json"})
    loaded = ask(model=LLAMA)
    asked_for = loaded.endpoint.model_copy(update={"model": model, "optimization": parse_recipe(recipe)})
    loaded = replace(loaded, endpoint=expanded(asked_for), path=tmp_path / "chat.yaml")
    architecture = read_architecture(loaded)

    assert [each.rule for each in weights_refusals(loaded.endpoint, architecture)] == told
    assert is_quantized_at_start(loaded.endpoint, architecture) == (recipe == "fp8" and not own)


def test_what_tensorrt_llm_does_not_compile_is_refused_whether_the_recipe_names_it_or_not(ask: Ask) -> None:
    loaded = ask(model={"hub_id": "openai/gpt-oss-20b"}, serving={"instance_types": ["ml.g6e.xlarge"]})
    with pytest.raises(PlanError, match="can't compile mxfp4 weights"):
        resolve(with_recipe(loaded, parse_recipe("compile=trtllm")))


def test_a_job_for_a_hub_model_is_a_warning_of_the_plan(ask: Ask) -> None:
    plan = make_plan(with_recipe(ask(model=LLAMA), parse_recipe("awq,job=true")))

    assert any(each.startswith("SEA456: ") for each in plan.warnings)


def test_what_runs_and_gives_less_is_a_warning(ask: Ask) -> None:
    plan = make_plan(with_recipe(ask(model=LLAMA), parse_recipe("fp8")))

    assert plan.instance_type.value == "ml.g5.2xlarge"
    assert [each.partition(":")[0] for each in plan.warnings if "fp8 on ml.g5.2xlarge" in each] == ["SEA235"]


@pytest.mark.parametrize(
    "serving",
    [
        {"engine": "tgi"},
        {"backend": "trtllm"},
        {"instance_types": ["ml.inf2.xlarge"]},
        {"instance_types": ["ml.g4dn.xlarge"]},
    ],
)
def test_every_refusal_names_a_recipe_that_runs(ask: Ask, serving: dict[str, object]) -> None:
    loaded = ask(model=LLAMA, serving=serving)
    texts = [TEXTS.get(name, name) for name in NAMES]
    for text in (*texts, *(f"{each}+compile=trtllm" for each in texts[:-1]), "awq=org/llama-awq+ngram+kv_fp8"):
        try:
            asked_for = with_recipe(loaded, parse_recipe(text))
        except SpecError:
            continue
        try:
            choice = choose_engine(asked_for)
            refuse_recipe(asked_for, choice, resolve(loaded).allowed)
        except PlanError:
            assert runs(asked_for, nearest_recipe(asked_for)), text


def test_the_table_knows_every_pair_of_engine_and_optimization() -> None:
    missing = [
        (name, each.name)
        for each in ENGINE_CANDIDATES.rows
        for name in NAMES
        if not optimizations.supports(name, each.name)
    ]

    assert missing == []
    assert {name for row in optimizations.ACCELERATOR_LIMITS.rows for name in row.accelerators} <= {
        each.name for each in ACCELERATORS.rows
    }
    assert {row.optimization for row in optimizations.LOSSES.rows} == set(NAMES)


def test_what_the_table_allows_can_be_spelled() -> None:
    """Every optimization that a documented build may have has an option there, or needs none."""
    unspelled = []
    for option in ENGINE_CANDIDATES.rows:
        builds = [each for each in IMAGES.rows if each.family == option.engine and each.flavour in option.flavours]
        for version in {each.version for each in builds if each.documented}:
            read = read_version(option.engine, version)
            if read is None or (option.last_lmi is not None and read > (option.last_lmi,)):
                continue
            for name, fields in CONFIGS.items():
                rows = [row for row in optimizations.supports(name, option.name) if row.supported]
                if any(optimizations.holds_since(row, read) for row in rows):
                    backend = option.backends[-1] if "auto" not in option.backends else "auto"
                    dialect = dialect_of(option.engine, version, backend, on_neuron="neuronx" in option.name)
                    said = spell(ServingConfig.model_validate(fields), find_spellings(dialect, version))
                    unspelled += [(option.name, version, name, one.field) for one in said.missing]

    assert unspelled == []


def test_a_row_of_an_older_version_says_nothing_of_a_newer_one(ask: Ask) -> None:
    loaded = ask(model=LLAMA, serving={"instance_types": ["ml.g4dn.xlarge"]})
    engine = recipe_engine(choose_engine(loaded))
    allowed = resolve(loaded).allowed[0]

    assert [text.partition(":")[0] for text in accelerator_limits(parse_recipe("fp8"), engine, allowed)] == [
        "fp8 on ml.g4dn.xlarge (NVIDIA T4)"
    ]
    assert recipe_name(parse_recipe("fp8")) == "fp8"
