from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.engines.render import render_plan
from seatrial_base.catalog.engine_versions import dialect_of, spelled_version
from seatrial_base.errors import RenderError
from seatrial_lint.engines.properties import parse_properties
from tests.sample_plan import decided

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec

S3_MODEL = "s3_uri: s3://weights/llama/"


class Loaded(Protocol):
    def __call__(self, extra: str = ..., *, model: str = ..., isolated: bool = ...) -> LoadedSpec: ...


class MakePlan(Protocol):
    def __call__(self, engine: str = ...) -> Plan: ...


@pytest.mark.parametrize(
    ("version", "backend", "dialect"),
    [
        ("lmi27", "auto", "lmi-async"),
        ("lmi15", "auto", "lmi-async"),
        ("lmi14", "auto", "lmi-vllm"),
        ("lmi27", "vllm-rolling", "lmi-vllm"),
        ("lmi27", "python", "lmi-python"),
        ("lmi12", "lmi-dist", "lmi-dist"),
        ("lmi12", "trtllm", "lmi-trtllm"),
        ("lmi11", "neuronx", "lmi-neuronx"),
        ("lmi9", "deepspeed", "lmi-deepspeed"),
    ],
)
def test_the_backend_of_the_spec_is_the_dialect(version: str, backend: str, dialect: str) -> None:
    assert dialect_of("lmi", version, backend) == dialect


def test_an_image_without_a_version_is_spelled_as_the_newest_that_was_read() -> None:
    assert spelled_version("lmi", "my-tag") == "27"
    assert spelled_version("lmi", "0.29.0-lmi11.0.0") == "0.29.0-lmi11.0.0"


def test_what_the_spec_fixes_is_rendered(loaded: Loaded, make_plan: MakePlan) -> None:
    spec = """serving:
  overrides:
    enforce_eager: true
    prefix_caching: false
    kv_cache_dtype: fp8_e4m3
    lora: {max_rank: 32}
    rope_scaling: {kind: yarn, factor: 4}
    speculative_decoding: {draft_tokens: 4, acceptance_rate: 0.7, method: eagle3, model: org/draft}
"""
    config = render_plan(loaded(spec), make_plan())
    values = parse_properties(config.files["serving.properties"])
    assert values["option.enforce_eager"] == "true"
    assert values["option.enable_prefix_caching"] == "false"
    assert values["option.kv_cache_dtype"] == "fp8_e4m3"
    assert values["option.enable_lora"] == "true"
    assert values["option.max_lora_rank"] == "32"
    assert values["option.hf_overrides"] == '{"rope_parameters":{"rope_type":"yarn","factor":4.0}}'
    assert values["option.speculative_config"] == ('{"method":"eagle3","model":"org/draft","num_speculative_tokens":4}')
    assert config.notes[-1:] == (
        "rope_scaling: The engine has no option of its own for this any more: it overrides the model's config.json.",
    )


def test_speculation_that_is_only_planned_is_not_rendered(loaded: Loaded, make_plan: MakePlan) -> None:
    spec = "serving: {overrides: {speculative_decoding: {draft_tokens: 4, acceptance_rate: 0.7}}}\n"
    assert "speculative" not in render_plan(loaded(spec), make_plan()).files["serving.properties"]


@pytest.mark.parametrize(
    ("engine", "version", "expected"),
    [
        ("vllm", "0.30.0", {"SM_VLLM_MAX_NUM_QUEUED_REQS": "164", "SM_VLLM_MAX_NUM_QUEUED_TOKENS": "9000"}),
        ("vllm", "0.28.0", {}),
        ("vllm", "2.6", {}),  # an image that doesn't say which vLLM it has: an unknown argument stops the start
        ("sglang", "0.5.20", {"SM_SGLANG_MAX_QUEUED_REQUESTS": "100"}),
        ("tgi", "3.3.6", {"MAX_CONCURRENT_REQUESTS": "164"}),
    ],
)
def test_the_limit_of_the_queue_is_rendered_where_the_version_has_one(
    engine: str, version: str, expected: dict[str, str], loaded: Loaded, make_plan: MakePlan
) -> None:
    tokens = decided(9_000) if "SM_VLLM_MAX_NUM_QUEUED_TOKENS" in expected else None
    plan = make_plan(engine).model_copy(update={"engine_version": decided(version), "max_queued_tokens": tokens})
    rendered = render_plan(loaded(), plan).container_env
    assert {name: value for name, value in rendered.items() if "QUEUED" in name or "CONCURRENT" in name} == expected


def test_the_backend_is_rendered(loaded: Loaded, make_plan: MakePlan) -> None:
    config = render_plan(loaded("serving: {backend: vllm-rolling, overrides: {output_format: sse}}\n"), make_plan())
    values = parse_properties(config.files["serving.properties"])
    assert (values["option.rolling_batch"], values["option.output_formatter"]) == ("vllm", "sse")


def test_what_the_engine_has_no_option_for_is_told_at_the_spec_s_field(loaded: Loaded, make_plan: MakePlan) -> None:
    spec = "serving:\n  overrides:\n    pipeline_parallel_degree: 2\n"
    with pytest.raises(RenderError) as caught:
        render_plan(loaded(spec), make_plan())
    assert str(caught.value).endswith(
        "endpoints/chat.yaml:8: serving.overrides.pipeline_parallel_degree: SEA308: lmi-async on LMI 27 has no option "
        "for 2: LMI's vLLM handlers refuse more than one stage\n"
        "  hint: use tensor_parallel_degree alone, or the engine vllm"
    )


def test_a_backend_that_is_gone_is_told(loaded: Loaded, make_plan: MakePlan) -> None:
    with pytest.raises(RenderError, match="serving configuration of chat: SEA307: lmi-dist does not exist in LMI 27"):
        render_plan(loaded("serving: {backend: lmi-dist}\n"), make_plan())


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (
            "vllm",
            {
                "SM_VLLM_MODEL": "/opt/ml/model",
                "SM_VLLM_TENSOR_PARALLEL_SIZE": "4",
                "SM_VLLM_DTYPE": "float16",
                "SM_VLLM_MAX_MODEL_LEN": "512",
                "SM_VLLM_MAX_NUM_SEQS": "64",
                "SM_VLLM_MAX_NUM_BATCHED_TOKENS": "2048",
            },
        ),
        (
            "sglang",
            {
                "SM_SGLANG_MODEL_PATH": "/opt/ml/model",
                "SM_SGLANG_TP": "4",
                "SM_SGLANG_DTYPE": "float16",
                "SM_SGLANG_CONTEXT_LENGTH": "512",
                "SM_SGLANG_MAX_RUNNING_REQUESTS": "64",
                "SM_SGLANG_CHUNKED_PREFILL_SIZE": "2048",
                "SM_SGLANG_MAX_QUEUED_REQUESTS": "100",
            },
        ),
    ],
)
def test_the_other_servers_are_configured_by_the_environment_alone(
    engine: str, expected: dict[str, str], loaded: Loaded, make_plan: MakePlan
) -> None:
    config = render_plan(loaded(model=S3_MODEL), make_plan(engine))
    assert config.container_env == expected
    assert (config.files, config.payload_schema) == ({}, "openai_chat")


@pytest.mark.parametrize(
    ("engine", "tools", "enabled", "reasoning"),
    [
        ("lmi", "option.tool_call_parser", "option.enable_auto_tool_choice", "option.reasoning_parser"),
        ("vllm", "SM_VLLM_TOOL_CALL_PARSER", "SM_VLLM_ENABLE_AUTO_TOOL_CHOICE", "SM_VLLM_REASONING_PARSER"),
        ("sglang", "SM_SGLANG_TOOL_CALL_PARSER", None, "SM_SGLANG_REASONING_PARSER"),
    ],
)
def test_a_model_family_has_the_parsers_of_the_catalog(
    loaded: Loaded, make_plan: MakePlan, engine: str, tools: str, enabled: str | None, reasoning: str
) -> None:
    spec = "serving: {overrides: {tool_call_parser: auto, reasoning_parser: auto}}\n"
    rendered = render_plan(loaded(spec, model="hub_id: Qwen/Qwen3-8B"), make_plan(engine))
    values = {**rendered.container_env, **parse_properties(rendered.files.get("serving.properties", ""))}
    assert values[tools] == ("qwen" if engine == "sglang" else "hermes")
    assert values[reasoning] == "qwen3"
    assert enabled is None or values[enabled] in ("", "true")


def test_a_family_that_the_catalog_lacks_is_refused_with_both_fields(loaded: Loaded, make_plan: MakePlan) -> None:
    spec = "serving: {overrides: {tool_call_parser: auto, reasoning_parser: auto}}\n"
    with pytest.raises(RenderError) as refused:
        render_plan(loaded(spec, model="hub_id: meta-llama/Llama-2-7b-chat-hf"), make_plan("vllm"))
    found = [(problem.rule, problem.place.field) for problem in refused.value.problems]
    assert found == [
        ("SEA308", "serving.overrides.tool_call_parser"),
        ("SEA308", "serving.overrides.reasoning_parser"),
    ]


def test_a_container_without_parsers_refuses_them(loaded: Loaded, make_plan: MakePlan) -> None:
    spec = "serving: {overrides: {tool_call_parser: hermes, reasoning_parser: qwen3}}\n"
    with pytest.raises(RenderError) as refused:
        render_plan(loaded(spec), make_plan("tgi"))
    assert {problem.rule for problem in refused.value.problems} == {"SEA308"}


@pytest.mark.parametrize(("engine", "expected"), [("vllm", {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"}), ("lmi", {})])
def test_a_server_of_vllm_may_load_the_adapters_of_components(
    loaded: Loaded, make_plan: MakePlan, engine: str, expected: dict[str, str]
) -> None:
    spec = """serving:
  adapters: [{name: sql, s3_uri: s3://adapters/sql.tar.gz}]
  overrides: {lora: {max_rank: 16, max_adapters: 2}}
"""
    variables = render_plan(loaded(spec), make_plan(engine)).container_env
    assert {name: value for name, value in variables.items() if "RUNTIME" in name} == expected
    without = render_plan(
        loaded(spec.replace("  adapters: [{name: sql, s3_uri: s3://adapters/sql.tar.gz}]\n", "")), make_plan(engine)
    )
    assert not any("RUNTIME" in name for name in without.container_env)
