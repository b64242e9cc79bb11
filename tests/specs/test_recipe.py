"""Recipes: their text, what they mean for the rest of the spec, and what contradicts them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.load import load_spec, with_recipe
from seatrial.specs.optimization import NAMES, OptimizationSpec
from seatrial.specs.recipe import expanded, parse_recipe, recipe_name
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec


class Write(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


CHECKPOINTS = st.sampled_from(["org/model-awq", "s3://bucket/weights/", "s3://bucket/weights.tar.gz"])
OBJECTS: Callable[[list[object]], st.SearchStrategy[object]] = st.sampled_from
JOBS = st.sampled_from([{}, {"max_hours": 3.5}, {"instance_type": "ml.g5.12xlarge", "max_hours": 24}])
TOKENS, SHARES = st.integers(1, 16), st.floats(0.01, 0.99)


def some(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=fields)


WEIGHTS = some(checkpoint=CHECKPOINTS, revision=st.sampled_from(["4f2b1e0", "1234567", "refs/pr/2"]), job=JOBS)
DRAFTS = some(draft=st.just("org/draft"), draft_tokens=TOKENS, acceptance_rate=SHARES, job=JOBS)
COMPILATIONS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {"target": OBJECTS(["trtllm", "neuron"])},
    optional={"when": OBJECTS(["startup", "ahead_of_time"]), "artifacts": OBJECTS(["s3://bucket/built/"])},
)
SETTINGS: dict[str, st.SearchStrategy[dict[str, object]]] = {
    **dict.fromkeys(("awq", "fp8", "mxfp4", "smoothquant"), WEIGHTS),
    **dict.fromkeys(("speculative", "eagle3"), DRAFTS),
    "ngram": some(draft_tokens=TOKENS, acceptance_rate=SHARES),
    "prefix_cache": some(hit_rate=SHARES),
    "kv_fp8": st.just({}),
    "compile": COMPILATIONS,
}


def entry(name: str) -> st.SearchStrategy[OptimizationSpec]:
    return SETTINGS[name].map(lambda given_settings: OptimizationSpec.model_validate({name: given_settings}))


RECIPES = st.lists(st.sampled_from(sorted(NAMES)), max_size=6, unique=True).flatmap(
    lambda names: st.tuples(*(entry(name) for name in sorted(names)))
)
ENGINES = st.sampled_from(["auto", "lmi", "tgi", "vllm", "sglang"])


@given(RECIPES)
@settings(max_examples=60)
def test_a_recipe_is_read_from_its_own_name(recipe: tuple[OptimizationSpec, ...]) -> None:
    assert parse_recipe(recipe_name(recipe)) == recipe


@given(RECIPES, ENGINES)
@settings(max_examples=60)
def test_any_recipe_expands_to_a_valid_spec_and_only_once(recipe: tuple[OptimizationSpec, ...], engine: str) -> None:
    endpoint = EndpointSpec.model_validate(
        {
            "name": "chat",
            "model": {"hub_id": "org/model"},
            "workload": {"input_tokens": 256, "output_tokens": 128, "concurrency": 8},
            "serving": {"engine": engine},
            "optimization": [each.model_dump(exclude_unset=True) for each in recipe],
        }
    )

    found = expanded(endpoint)

    assert EndpointSpec.model_validate_json(found.model_dump_json(exclude_unset=True)) == found
    assert expanded(found) == found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("none", "none"),
        ("", "none"),
        ("kv_fp8+awq", "awq+kv_fp8"),
        ("awq=org/model-awq,revision=1234567", "awq=org/model-awq,revision=1234567"),
        ("eagle3,job=true", "eagle3,job=true"),
        ("eagle3,job=true,job.max_hours=3", "eagle3,job.max_hours=3.0"),
        ("compile=trtllm + ngram,draft_tokens=3", "compile=trtllm+ngram,draft_tokens=3"),
    ],
)
def test_a_name_is_sorted_and_short(text: str, name: str) -> None:
    assert recipe_name(parse_recipe(text)) == name


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("int3", ["SEA104"]),
        ("awq+", ["SEA104"]),
        ("kv_fp8=1", ["SEA107"]),
        ("ngram,draft_tokens=99+x", ["SEA107", "SEA104"]),
        ("awq,checkpoint", ["SEA107"]),
        ("compile", ["SEA107"]),
        ("ngram,draft=3+awq=a/b,", ["SEA104", "SEA104"]),
        ("ngram,draft_tokens=3,draft_tokens=4", ["SEA231"]),
        (f"ngram,draft_tokens={'[' * 3000}", ["SEA107"]),
    ],
)
def test_a_text_that_is_no_recipe_is_told_whole(text: str, rules: list[str]) -> None:
    with pytest.raises(SpecError) as error:
        parse_recipe(text)

    assert [problem.rule for problem in error.value.problems] == rules


@pytest.fixture
def load(write: Write, environments: Path, endpoint_text: str) -> Callable[[str], LoadedSpec]:
    return lambda more: load_spec(write(endpoint_text + more), "dev", environments=environments)


def test_a_recipe_is_what_its_overrides_are(load: Callable[[str], LoadedSpec]) -> None:
    endpoint = load("optimization: [fp8, kv_fp8, {ngram: {draft_tokens: 3}}, {prefix_cache: {hit_rate: 0.5}}]").endpoint
    overrides = endpoint.serving.overrides

    assert (overrides.quantization, overrides.kv_cache_dtype, overrides.prefix_caching) == ("fp8", "fp8_e4m3", True)
    assert endpoint.workload.prefix_hit_rate == 0.5
    assert overrides.speculative_decoding is not None
    assert (overrides.speculative_decoding.method, overrides.speculative_decoding.draft_tokens) == ("ngram", 3)


def test_a_checkpoint_replaces_the_weights_and_keeps_shape_and_licence(load: Callable[[str], LoadedSpec]) -> None:
    text = "optimization: [{awq: {checkpoint: other/weights, revision: 4f2b1e0}}]"
    model = load(text).endpoint.model

    assert (model.hub_id, model.revision, model.architecture) == ("other/weights", "4f2b1e0", "org/model")


def test_the_digest_holds_what_is_written_and_not_the_catalogs_defaults(load: Callable[[str], LoadedSpec]) -> None:
    plain, drafted, tuned = (
        load(text)
        for text in ("", "optimization: [ngram]", "optimization: [{ngram: {draft_tokens: 7, acceptance_rate: 0.5}}]")
    )
    endpoint = drafted.endpoint
    overrides = endpoint.serving.overrides.model_copy(update={"speculative_decoding": None})
    serving = endpoint.serving.model_copy(update={"overrides": overrides})
    unexpanded = endpoint.model_copy(update={"serving": serving})

    assert len({plain.digest, drafted.digest, tuned.digest}) == 3
    assert replace(drafted, endpoint=unexpanded).digest == drafted.digest


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("optimization: [fp8]\nserving: {overrides: {quantization: int8}}", [("SEA230", 9)]),
        ("optimization: [prefix_cache, prefix_cache]", [("SEA231", 8)]),
        ("optimization:\n  - fp8\n  - {awq: {checkpoint: org/x-awq}}", [("SEA231", 10)]),
        ("optimization: [ngram, {eagle3: {draft: org/head}}]", [("SEA231", 8)]),
        ("optimization: [mxfp4]", [("SEA232", 8)]),
        ("optimization: [smoothquant, {compile: trtllm}]", []),
        ("optimization: [awq]\nserving: {backend: trtllm}", []),
        ("optimization: [speculative, eagle3]", [("SEA231", 8), ("SEA232", 8), ("SEA232", 8)]),
        ("optimization: [{speculative: {draft: 's3://bucket/draft/'}}]", [("SEA238", 8)]),
        ("optimization: [{speculative: {draft: sagemaker}}]", [("SEA238", 8)]),
        ("optimization: [{awq: {checkpoint: org/model-gptq}}]", [("SEA230", 8)]),
        ("optimization: [{awq: {checkpoint: /opt/weights}}]", [("SEA232", 8)]),
        ("optimization: [{awq: {checkpoint: org/x, job: true}}]", [("SEA230", 8)]),
        ("optimization: [{fp8: {revision: abc1234}}]", [("SEA232", 8)]),
        ("optimization: [{fp8: {checkpoint: org/model}}]", [("SEA230", 8)]),
        ("optimization: [{speculative: {draft: org/small, acceptance_rate: 0.01, draft_tokens: 9}}]", [("SEA116", 8)]),
        (
            "optimization: [{ngram: {draft_tokens: 8}}]\nenvironments: {dev: {workload: {output_tokens: 8}}}",
            [("SEA108", 8)],
        ),
        ("optimization: [kv_fp8]\nserving: {overrides: {kv_cache_dtype: auto}}", [("SEA230", 9)]),
        ("optimization: [prefix_cache]\nserving: {overrides: {prefix_caching: false}}", [("SEA230", 9)]),
        ("optimization: [{compile: trtllm}]\nserving: {engine: vllm, backend: vllm}", [("SEA230", 9), ("SEA230", 9)]),
        ("optimization: [{compile: {target: neuron, artifacts: 's3://bucket/a/'}}]", [("SEA230", 8)]),
    ],
)
def test_contradictions_are_told_where_they_stand(
    load: Callable[[str], LoadedSpec], more: str, told: list[tuple[str, int]]
) -> None:
    found: list[tuple[str, int]] = []
    try:
        load(more)
    except SpecError as error:
        found = [(problem.rule, int(problem.where.rpartition(":")[2])) for problem in error.problems]

    assert sorted(found) == sorted(told)


def test_a_draft_as_large_as_the_model_is_told(load: Callable[[str], LoadedSpec]) -> None:
    override = "environments: {dev: {model: {hub_id: meta-llama/Llama-2-7b-hf}}}"
    with pytest.raises(SpecError, match="SEA116"):
        load(f"optimization: [{{speculative: {{draft: meta-llama/Llama-2-13b-hf}}}}]\n{override}")


def test_another_recipe_takes_the_place_of_the_specs_own(load: Callable[[str], LoadedSpec]) -> None:
    loaded = load("optimization: [fp8, kv_fp8]")
    overrides = with_recipe(loaded, parse_recipe("ngram")).endpoint.serving.overrides

    assert (overrides.quantization, overrides.kv_cache_dtype) == (None, None)
    assert with_recipe(loaded, parse_recipe("fp8+kv_fp8")).endpoint.serving == loaded.endpoint.serving
    with pytest.raises(SpecError, match="SEA232"):
        with_recipe(loaded, parse_recipe("awq"))
