"""The table of rules: what is chosen for a case, why, and what is said of another choice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from seatrial_base.catalog import images
from seatrial_base.catalog.engines import (
    ENGINE_CANDIDATES,
    ENGINE_RULES,
    EngineCase,
    Facts,
    automatic_candidates,
    best_candidate,
    choice_warnings,
    rule_reasons,
    status_of,
    why_chosen,
)
from seatrial_base.catalog.images import resolve_image
from seatrial_lint.engines.engine_options import Backend

GPU: Facts = {"accelerators": "gpu", "architecture": "llama"}
NEURON: Facts = {"accelerators": "neuron", "architecture": "llama"}


def told(text: str) -> tuple[str, ...]:
    """Return the rules whose sentences a text holds, in its order; the sentences are those of the table."""
    places = {
        rule.id: re.search(re.sub(r"\\{\w+\\}", ".+?", re.escape(rule.because)), text) for rule in ENGINE_RULES.rows
    }
    found = {name: match.end() for name, match in places.items() if match is not None}
    return tuple(sorted(found, key=lambda name: found[name]))


@pytest.mark.parametrize(
    ("facts", "chosen", "ids"),
    [
        (GPU, "lmi-vllm", ("vllm-usual", "tgi-status")),
        ({"accelerators": "both"}, "lmi-vllm", ("vllm-usual", "tgi-status", "neuronx-status")),
        (GPU | {"quantization": "awq"}, "lmi-vllm", ("vllm-usual", "vllm-marlin", "tgi-status")),
        (GPU | {"quantization": "fp8"}, "lmi-vllm", ("vllm-usual", "vllm-fp8", "tgi-status")),
        (GPU | {"speculation": "eagle3"}, "lmi-vllm", ("vllm-usual",)),  # TGI is excluded: nobody need hear of it
        (NEURON, "vllm-neuronx", ("neuron-usual", "gpu-image", "neuronx-status")),
        ({"accelerators": "gpu", "architecture": "t5"}, "tgi", ("encoder-decoder",)),
    ],
)
def test_the_first_option_that_nothing_excludes_is_chosen(facts: Facts, chosen: str, ids: tuple[str, ...]) -> None:
    case = EngineCase(facts, "ml.inf2.xlarge")
    option = best_candidate(case)

    assert (option.name, told(why_chosen(case, option))) == (chosen, ids)


@pytest.mark.parametrize(
    ("option", "facts", "ids"),
    [
        ("lmi-vllm", GPU, ()),
        ("tgi", GPU, ("tgi-status",)),
        ("tgi", GPU | {"speculation": "eagle3"}, ("tgi-drafts", "tgi-status")),
        (
            "tgi",
            {"accelerators": "gpu", "architecture": "gpt_oss", "quantization": "mxfp4"},
            ("tgi-quantization", "tgi-architecture", "tgi-status"),
        ),
        ("lmi-trtllm", GPU, ("trtllm-status", "trtllm-even")),
        # Of a shape that is written in the spec, no architecture is known.
        ("lmi-trtllm", {"accelerators": "gpu"}, ("trtllm-status", "trtllm-even")),
        (
            "lmi-trtllm",
            {"accelerators": "gpu", "architecture": "qwen3", "quantization": "awq", "speculation": "ngram"},
            ("trtllm-compiles", "trtllm-awq", "no-drafts", "trtllm-status", "trtllm-even"),
        ),
        ("lmi-trtllm", GPU | {"quantization": "gptq"}, ("trtllm-quantization", "trtllm-status", "trtllm-even")),
        ("lmi-dist", GPU | {"speculation": "ngram"}, ("draft-models", "dist-status")),
        ("lmi-deepspeed", GPU | {"quantization": "awq"}, ("old-quantization", "deepspeed-status")),
        ("lmi-python", GPU, ("python-status",)),
        ("lmi-neuronx", GPU, ("neuron-image", "neuronx-status")),
        ("lmi-vllm", NEURON, ("gpu-image", "vllm-usual")),
    ],
)
def test_a_choice_of_the_users_is_taken_with_what_speaks_against_it(
    option: str, facts: Facts, ids: tuple[str, ...]
) -> None:
    taken = next(each for each in ENGINE_CANDIDATES.rows if each.name == option)
    warnings = choice_warnings(EngineCase(facts, "ml.g5.2xlarge"), taken, "serving.backend")

    assert [told(warning) for warning in warnings] == ([ids] if ids else [])
    assert all(warning.startswith(f"SEA353: serving.backend fixes {taken.title}; ") for warning in warnings)


def test_what_is_chosen_with_a_drawback_has_it_told_without_a_rule_of_its_own() -> None:
    case = EngineCase(NEURON)
    of_lmi = best_candidate(case, [option for option in ENGINE_CANDIDATES.rows if option.engine == "lmi"])

    assert [told(warning) for warning in choice_warnings(case, of_lmi, "serving.engine")] == [("neuronx-status",)]
    assert choice_warnings(case, best_candidate(case), "") == ()


def test_when_everything_is_excluded_the_first_is_taken_and_warned_of() -> None:
    case = EngineCase(NEURON | {"quantization": "awq"}, "ml.inf2.xlarge")
    option = best_candidate(case, [each for each in ENGINE_CANDIDATES.rows if each.engine == "lmi"])

    assert option.name == "lmi-vllm"
    assert [told(warning) for warning in choice_warnings(case, option, "")] == [
        ("gpu-image", "vllm-usual", "vllm-marlin")
    ]


def test_every_backend_of_a_spec_has_its_option() -> None:
    named = {backend for option in ENGINE_CANDIDATES.rows for backend in option.backends}

    assert named == set(get_args(Backend))
    assert [option.name for option in automatic_candidates()] == ["lmi-vllm", "tgi", "vllm-neuronx", "lmi-neuronx"]
    assert {option.engine for option in ENGINE_CANDIDATES.rows} == set(get_args(images.ImageFamily))


def test_every_rule_speaks_of_options_that_exist_and_has_a_source() -> None:
    names = {option.name for option in ENGINE_CANDIDATES.rows}

    assert len({rule.id for rule in ENGINE_RULES.rows}) == len(ENGINE_RULES.rows)
    for rule in ENGINE_RULES.rows:
        assert names.issuperset(rule.options), rule.id
        assert rule.source, rule.id
        assert rule.date, rule.id


def test_every_option_has_images() -> None:
    for option in ENGINE_CANDIDATES.rows:
        found = resolve_image(option.engine, None, "us-east-1", flavours=option.flavours)
        assert found.build.flavour in option.flavours


def test_every_sentence_can_be_filled_in() -> None:
    case = EngineCase({"accelerators": "gpu", "architecture": "t5", "quantization": "mxfp4", "speculation": "medusa"})

    for option in ENGINE_CANDIDATES.rows:
        for sentence in rule_reasons(case, option, "for", "against", "excludes"):
            assert sentence.endswith(".")
            assert "{" not in sentence


@pytest.mark.parametrize(
    ("engine", "flavour", "ids"),
    [
        ("tgi", "cuda", ("tgi-status",)),
        ("lmi", "trtllm", ("trtllm-status",)),
        ("lmi", "vllm", ()),
        ("sglang", "cuda", ()),
    ],
)
def test_a_line_of_images_has_its_status(engine: str, flavour: str, ids: tuple[str, ...]) -> None:
    assert told(status_of(engine, flavour) or "") == ids


def test_the_page_has_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "engine-choice.md").read_text(encoding="utf-8")

    for rule in ENGINE_RULES.rows:
        assert f"| {rule.because} | {rule.source}, {rule.date} |" in page, rule.id
