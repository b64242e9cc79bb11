"""Parsers of tool calls and reasoning by model family."""

from __future__ import annotations

import re

import pytest

from seatrial_base.catalog.engine_options import MODEL_PARSERS, ModelParsers, model_parsers, parser_names

ROWS = MODEL_PARSERS.rows


@pytest.mark.parametrize(
    ("engine", "model", "tools", "reasoning"),
    [
        ("vllm", "Qwen/Qwen2.5-7B-Instruct", "hermes", None),
        ("lmi", "Qwen/Qwen2.5-7B-Instruct", "hermes", None),
        ("vllm", "Qwen/Qwen3-30B-A3B", "hermes", "qwen3"),
        ("vllm", "Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3_xml", None),
        ("vllm", "meta-llama/Llama-3.1-8B-Instruct", "llama3_json", None),
        ("vllm", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", None, "deepseek_r1"),
        ("vllm", "deepseek-ai/DeepSeek-R1-0528", "deepseek_v3", "deepseek_r1"),
        ("vllm", "openai/gpt-oss-20b", "openai", None),
        ("sglang", "Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3_coder", None),
        ("sglang", "openai/gpt-oss-20b", "gpt-oss", "gpt-oss"),
    ],
)
def test_a_family_has_the_parsers_of_its_engine(
    engine: str, model: str, tools: str | None, reasoning: str | None
) -> None:
    found = model_parsers(engine, model)
    assert found
    assert (found.tool_call_parser, found.reasoning_parser) == (tools, reasoning)


@pytest.mark.parametrize(
    ("engine", "model"), [("vllm", "meta-llama/Llama-2-7b-chat-hf"), ("tgi", "Qwen/Qwen2.5-7B-Instruct")]
)
def test_what_no_source_names_has_none(engine: str, model: str) -> None:
    assert model_parsers(engine, model) is None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.engine}-{row.models}")
def test_a_row_has_a_parser_a_source_and_a_date(row: ModelParsers) -> None:
    assert row.tool_call_parser or row.reasoning_parser
    assert row.source
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.date)
    assert re.compile(row.models)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.engine}-{row.models}")
def test_the_parsers_of_a_family_are_names_that_its_engine_has(row: ModelParsers) -> None:
    for option in ("tool_call_parser", "reasoning_parser"):
        known = parser_names(row.engine, option)
        assert known is not None
        assert getattr(row, option) in (None, *known.names)


def test_lmi_has_the_names_of_vllm_and_tgi_has_none() -> None:
    assert parser_names("lmi", "tool_call_parser") == parser_names("vllm", "tool_call_parser")
    assert parser_names("tgi", "tool_call_parser") is None
