"""Every rule of the planner: the rule, its place and its numbers; the prose is in `golden/rules.txt`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial.planner.resolve import unplannable
from seatrial_base.errors import PlanError
from tests.planner.test_prose import without_numbers

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

GOLDEN = Path(__file__).parent / "golden" / "rules.txt"
LLAMA_70B = {"hub_id": "meta-llama/Llama-2-70b-hf"}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a problem must name, whatever its words.

    Attributes:
        place: File, line and field.
        rule: The rule that is broken.
        parts: Numbers and names that its message or hint holds.
    """

    place: str
    rule: str
    parts: tuple[str, ...]


def only(*instance_types: str, **overrides: object) -> dict[str, object]:
    serving: dict[str, object] = {"instance_types": list(instance_types)}
    return {**serving, "overrides": overrides} if overrides else serving


CASES: dict[str, tuple[dict[str, object], tuple[Expected, ...]]] = {
    "SEA110 no instance type is known": (
        {"serving": only("ml.g5.3xlarge", "ml.g55.xlarge")},
        (
            Expected(
                "chat.yaml:9: serving.instance_types",
                "SEA110",
                ("ml.g5.3xlarge", "ml.g55.xlarge", "ml.g5.xlarge", "ml.g5.8xlarge", "ml.g5.4xlarge"),
            ),
        ),
    ),
    "SEA201 an unknown hub id": (
        {"model": {"hub_id": "meta-llama/Llama-9-7b"}},
        (
            Expected(
                "chat.yaml:3: model.hub_id",
                "SEA201",
                (
                    "meta-llama/Llama-9-7b",
                    "meta-llama/Llama-2-7b-hf",
                    "meta-llama/Meta-Llama-3-70B",
                    "meta-llama/Llama-2-70b-hf",
                ),
            ),
        ),
    ),
    "SEA201 weights without a name": (
        {"model": {"s3_uri": "s3://weights/chat/"}},
        (Expected("chat.yaml:2: model", "SEA201", ()),),
    ),
    "SEA202 too big for every instance type": (
        {"model": LLAMA_70B, "serving": only("ml.g5.2xlarge", "ml.g5.12xlarge")},
        (
            Expected(
                "chat.yaml:9: serving.instance_types",
                "SEA202",
                (
                    "128.5",
                    "4",
                    "51.2",
                    "22.4",
                    "32.1",
                    "0.2",
                    "2.8",
                    "512",
                    "12.8",
                    "64.7",
                    "ml.g5.12xlarge",
                    "ml.g6e.12xlarge",
                    "ml.g6.48xlarge",
                    "ml.g6e.24xlarge",
                    "ml.g7e.12xlarge",
                ),
            ),
        ),
    ),
    "SEA203 too big for the degree": (
        {"model": LLAMA_70B, "serving": only("ml.g5.48xlarge", tensor_parallel_degree=4)},
        (
            Expected(
                "chat.yaml:12: serving.overrides.tensor_parallel_degree",
                "SEA203",
                (
                    "128.5",
                    "4",
                    "51.2",
                    "22.4",
                    "32.1",
                    "0.2",
                    "2.8",
                    "512",
                    "12.8",
                    "64.7",
                    "ml.g5.48xlarge",
                    "ml.g6e.12xlarge",
                    "ml.g6.48xlarge",
                    "ml.g6e.24xlarge",
                ),
            ),
        ),
    ),
    "SEA203 too big for the only instance type": (
        {"model": LLAMA_70B, "serving": only("ml.g5.12xlarge")},
        (
            Expected(
                "chat.yaml:9: serving.instance_types",
                "SEA203",
                (
                    "128.5",
                    "4",
                    "51.2",
                    "22.4",
                    "32.1",
                    "0.2",
                    "2.8",
                    "512",
                    "12.8",
                    "64.7",
                    "ml.g5.12xlarge",
                    "ml.g6e.12xlarge",
                    "ml.g6.48xlarge",
                    "ml.g6e.24xlarge",
                    "ml.g7e.12xlarge",
                ),
            ),
        ),
    ),
    "SEA204 a degree that divides nothing": (
        {"serving": only("ml.g5.12xlarge", tensor_parallel_degree=3)},
        (
            Expected(
                "chat.yaml:12: serving.overrides.tensor_parallel_degree",
                "SEA204",
                ("3", "32", "1", "2", "4", "8", "16", "meta-llama/Llama-2-7b-hf"),
            ),
        ),
    ),
    "SEA204 a degree above the accelerators": (
        {"serving": only("ml.g5.12xlarge", tensor_parallel_degree=8)},
        (Expected("chat.yaml:12: serving.overrides.tensor_parallel_degree", "SEA204", ("8", "4", "ml.g5.12xlarge")),),
    ),
    "SEA205 an objective out of reach": (
        {"slo": {"tpot_ms": {"p95": 10}}},
        (Expected("chat.yaml:13: slo.tpot_ms.p95", "SEA205", ("10", "1", "ml.g5.2xlarge")),),
    ),
    "SEA205 several objectives out of reach": (
        {
            "slo": {"ttft_ms": {"p50": 1}, "tpot_ms": {"p95": 1}, "e2e_latency_ms": {"p99": 60_000}},
            "serving": only("ml.g5.2xlarge", "ml.g5.12xlarge"),
        },
        (
            Expected("chat.yaml:16: slo.tpot_ms.p95", "SEA205", ("1", "4", "ml.g5.12xlarge")),
            Expected("chat.yaml:14: slo.ttft_ms.p50", "SEA205", ("1", "4", "ml.g5.12xlarge")),
        ),
    ),
    "SEA205 a timeout out of reach": (
        {"trial": {"request_timeout_s": 1}},
        (Expected("chat.yaml:12: trial.request_timeout_s", "SEA205", ("1,000", "1", "ml.g5.2xlarge")),),
    ),
    "SEA205 too few copies": (
        {"workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 500}},
        (Expected("chat.yaml: scaling.max_copies", "SEA205", ("1", "4", "ml.g5.2xlarge")),),
    ),
    "SEA205 more copies than the service has": (
        {"workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 1_000_000}},
        (Expected("chat.yaml: scaling.max_copies", "SEA205", ("1", "ml.g5.2xlarge")),),
    ),
    "SEA205 objectives that need more copies": (
        {"slo": {"ttft_ms": {"p95": 150}}, "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16}},
        (Expected("chat.yaml: scaling.max_copies", "SEA205", ("1", "ml.g5.2xlarge")),),
    ),
    "SEA205 too few tokens per second": (
        {"slo": {"output_tok_s": 5000}},
        (Expected("chat.yaml:12: slo.output_tok_s", "SEA205", ("1", "5,000", "ml.g5.2xlarge")),),
    ),
    "SEA205 more tokens per second than the traffic can ask for": (
        {
            "slo": {"output_tok_s": 1e9},
            "scaling": {"max_copies": 1000},
            "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 4},
        },
        (Expected("chat.yaml:12: slo.output_tok_s", "SEA205", ("1", "4", "1,000,000,000", "ml.g5.2xlarge")),),
    ),
    "SEA206 above the budget": (
        {"budget": {"usd_per_hour": 1.5}},
        (Expected("chat.yaml:12: budget.usd_per_hour", "SEA206", ("1", "$1.515", "$1.50", "$1.52", "ml.g5.2xlarge")),),
    ),
    "SEA206 above the budgets of tokens and hours": (
        {"budget": {"usd_per_hour": 1.5, "usd_per_million_output_tokens": 0.01, "blended_usd_per_million_tokens": 2}},
        (
            Expected("chat.yaml:12: budget.usd_per_hour", "SEA206", ("1", "$1.515", "$1.50", "$1.52", "ml.g5.2xlarge")),
            Expected("chat.yaml:13: budget.usd_per_million_output_tokens", "SEA206", ("1", "$0.01", "ml.g5.2xlarge")),
        ),
    ),
    "SEA206 above the budget even with the discount": (
        {"budget": {"usd_per_hour": 1.2, "discount": 0.2}},
        (
            Expected(
                "chat.yaml:12: budget.usd_per_hour", "SEA206", ("1", "$1.212", "20%", "$1.20", "$1.22", "ml.g5.2xlarge")
            ),
        ),
    ),
    "SEA206 above the guard rail at the most copies": (
        {"rails": {"usd_per_hour": 6.0}, "scaling": {"max_copies": 2}},
        (Expected("chat.yaml:12: scaling.max_copies", "SEA206", ("1", "2", "$6.06", "$6.00", "ml.g5.2xlarge")),),
    ),
    "SEA206 above the guard rails on the price of tokens": (
        {"rails": {"usd_per_million_output_tokens": 0.01, "blended_usd_per_million_tokens": 0.01}},
        (
            Expected("chat.yaml:9: serving.instance_types", "SEA206", ("1", "$0.01", "set in environments/dev.yaml:3")),
            Expected("chat.yaml:9: serving.instance_types", "SEA206", ("1", "$0.01", "set in environments/dev.yaml:2")),
        ),
    ),
    "SEA202 with a guard rail on the instance types": (
        {"model": LLAMA_70B, "serving": {}, "rails": {"instance_types": ["ml.g5.2xlarge", "ml.g6.xlarge"]}},
        (
            Expected(
                "chat.yaml:8: serving.instance_types",
                "SEA202",
                ("1", "ml.g6.xlarge", "ml.g5.2xlarge", "set in environments/dev.yaml:2"),
            ),
        ),
    ),
    "SEA207 a budget without a price": (
        {"serving": only("ml.p5e.48xlarge"), "budget": {"usd_per_hour": 5}},
        (Expected("chat.yaml:9: serving.instance_types", "SEA207", ("ml.p5e.48xlarge",)),),
    ),
    "SEA208 a workload above the context": (
        {"workload": {"input_tokens": 4000, "output_tokens": 97, "concurrency": 1}},
        (
            Expected(
                "chat.yaml:5: workload.input_tokens", "SEA208", ("4,097", "4,096", "1", "meta-llama/Llama-2-7b-hf")
            ),
        ),
    ),
    "SEA208 a longest request above the context": (
        {"workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16, "max_model_len": 4097}},
        (Expected("chat.yaml:8: workload.max_model_len", "SEA208", ("4,097", "4,096", "meta-llama/Llama-2-7b-hf")),),
    ),
    "SEA208 a length above the context": (
        {"serving": only("ml.g5.2xlarge", max_model_len=4097)},
        (
            Expected(
                "chat.yaml:12: serving.overrides.max_model_len",
                "SEA208",
                ("4,097", "4,096", "meta-llama/Llama-2-7b-hf"),
            ),
        ),
    ),
    "SEA209 weights of a format that can't be planned": (
        {"model": {"hub_id": "unsloth/Llama-3.3-70B-Instruct-bnb-4bit"}},
        (Expected("chat.yaml:3: model.hub_id", "SEA209", ("bitsandbytes",)),),
    ),
    "SEA210 only accelerators that can't be planned": (
        {"serving": only("ml.g7.2xlarge")},
        (Expected("chat.yaml:9: serving.instance_types", "SEA210", ("1", "ml.g7.2xlarge")),),
    ),
    "SEA254 a degree that cuts blocks of FP8": (
        {
            "model": {"hub_id": "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8"},
            "serving": {"engine": "vllm", **only("ml.p5.48xlarge", tensor_parallel_degree=8)},
        },
        (
            Expected(
                "chat.yaml:10: serving.instance_types",
                "SEA254",
                ("ml.p5.48xlarge", "64", "512", "128", "the shared experts", "vllm-fp8-rows", "52915"),
            ),
        ),
    ),
    "SEA254 a family without float16 on an accelerator without bf16": (
        {"model": {"hub_id": "google/gemma-3-1b-it"}, "serving": {"engine": "vllm", **only("ml.g4dn.xlarge")}},
        (Expected("chat.yaml:10: serving.instance_types", "SEA254", ("gemma3_text", "float16", "NVIDIA T4")),),
    ),
    "SEA255 a model of embeddings": (
        {"model": {"hub_id": "BAAI/bge-m3"}},
        (Expected("chat.yaml:3: model.hub_id", "SEA255", ("embeddings", "huggingface-pytorch-tei")),),
    ),
    "SEA255 a reranker with the shape of another model": (
        {"model": {"hub_id": "Qwen/Qwen3-Reranker-8B", "architecture": "Qwen/Qwen3-8B"}},
        (Expected("chat.yaml:3: model.hub_id", "SEA255", ("scores",)),),
    ),
    "SEA225 a model that the engine for AWS Neuron has no code for": (
        {"serving": only("ml.inf2.48xlarge"), "model": {"hub_id": "tiiuae/falcon-40b"}},
        (Expected("chat.yaml:2: model", "SEA225", ("vllm-neuronx", "tiiuae/falcon-40b", "qwen3_moe")),),
    ),
    "SEA225 a chip that the engine has no image for": (
        {"serving": {"engine": "tgi", **only("ml.trn2.48xlarge")}},
        (Expected("chat.yaml:10: serving.instance_types", "SEA225", ("tgi-neuronx", "AWS Trainium2")),),
    ),
    "SEA226 and SEA227 a degree and features that AWS Neuron lacks": (
        {"serving": only("ml.inf2.48xlarge", tensor_parallel_degree=16, quantization="fp8", prefix_caching=True)},
        (
            Expected("chat.yaml:12: serving.overrides.tensor_parallel_degree", "SEA226", ("16", "valid: 2, 4, 8")),
            Expected("chat.yaml:14: serving.overrides.prefix_caching", "SEA227", ("prefix_caching",)),
            Expected("chat.yaml:13: serving.overrides.quantization", "SEA227", ("fp8",)),
        ),
    ),
    "SEA303 an unknown version": (
        {"serving": {"engine": "tgi", "engine_version": "3.3.7"}},
        (Expected("chat.yaml:10: serving.engine_version", "SEA303", ("3.3.7", "3.3.6", "3.3.4", "3.2.3")),),
    ),
    "SEA303 an unknown region": (
        {"region": "us-iso-west-1"},
        (Expected("chat.yaml:8: serving", "SEA303", ("1",)),),
    ),
}


def refused(fields: dict[str, object], ask: Ask) -> PlanError:
    with pytest.raises(PlanError) as caught:
        make_plan(ask(**fields))
    return caught.value


@pytest.mark.parametrize(("fields", "expected"), CASES.values(), ids=CASES.keys())
def test_a_refusal_names_rule_place_and_numbers(
    fields: dict[str, object], expected: tuple[Expected, ...], ask: Ask
) -> None:
    texts = [str(problem) for problem in refused(fields, ask).problems]

    assert len(texts) == len(expected)
    for text, wanted in zip(texts, expected, strict=True):
        assert text.startswith(f"{wanted.place}: {wanted.rule}: ")
        assert "\n  hint: " in text
        assert [part for part in wanted.parts if part not in text] == []


_OF_LOAD_AND_PRICE = {"SEA205", "SEA206", "SEA207", "SEA212"}  # they need the search, which `validate` does not make


@pytest.mark.parametrize(("fields", "expected"), CASES.values(), ids=CASES)
def test_what_a_plan_refuses_validate_refuses_with_the_same_words(
    fields: dict[str, object], expected: tuple[Expected, ...], ask: Ask
) -> None:
    loaded = ask(**fields)
    found = unplannable(loaded)[0]

    if {each.rule for each in expected} & _OF_LOAD_AND_PRICE:
        assert found == ()
    else:
        assert found == tuple(refused(fields, ask).problems)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"model": {"hub_id": "Qwen/Qwen3-235B-A22B-FP8"}, "serving": only("ml.p5.48xlarge", tensor_parallel_degree=8)},
        {"model": {"hub_id": "Qwen/Qwen3-0.6B"}, "serving": only("ml.g4dn.xlarge")},
    ],
)
def test_what_validate_passes_is_planned_with_its_warnings(fields: dict[str, object], ask: Ask) -> None:
    loaded = ask(**fields)
    refusals, warnings = unplannable(loaded)

    assert refusals == ()
    assert set(warnings) <= set(make_plan(loaded).warnings)


def test_the_words_of_the_refusals_are_the_golden_file(ask: Ask) -> None:
    text = "".join(f"# {name}\n{without_numbers(str(refused(fields, ask)))}\n" for name, (fields, _) in CASES.items())
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": {"usd_per_hour": 1.52}},
        {"rails": {"usd_per_hour": 6.06}, "scaling": {"max_copies": 2}},
        {"slo": {"tpot_ms": {"p95": 47}}},
        {"workload": {"input_tokens": 4000, "output_tokens": 96, "concurrency": 1}},
        {"serving": only("ml.g5.2xlarge", max_model_len=4096)},
        {"serving": only("ml.g5.12xlarge", tensor_parallel_degree=4)},
        {"model": LLAMA_70B, "serving": only("ml.g5.48xlarge")},
    ],
)
def test_at_the_boundary_there_is_a_plan(fields: dict[str, object], ask: Ask) -> None:
    assert make_plan(ask(**fields)).copy_count.value == 1
