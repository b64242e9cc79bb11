"""`seatrial models` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog.models import MODELS

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial


def test_every_known_model_is_listed(seatrial: Seatrial) -> None:
    done = seatrial("models", "list")
    assert done.returncode == 0
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["model", "size", "active", "weights", "context"]
    assert [line.split()[0] for line in lines] == [model.id for model in MODELS.rows]
    assert max(map(len, (head, *lines, *done.stderr.splitlines()))) <= 80


def test_a_name_narrows_the_list(seatrial: Seatrial) -> None:
    _, *lines = seatrial("models", "list", "llama-2-7b").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["meta-llama/Llama-2-7b-hf"]


@pytest.mark.parametrize(
    ("model_id", "said"),
    [
        (
            "deepseek-ai/DeepSeek-V3",
            ("671.0 B", "37.6 B", " 8 of 256", "fp8", "MLA", "160k", "unknown"),
        ),
        ("openai/gpt-oss-20b", (" 4 of  32", "mxfp4", "GQA, sliding 12/24", "apache-2.0")),
        ("Qwen/Qwen3.5-27B", ("26.9 B", "bf16", "GQA, linear 48/64", "text part")),
        ("tiiuae/falcon-7b", ("bf16", "MQA")),
        ("meta-llama/Llama-2-7b-hf", ("fp16", "MHA")),
    ],
)
def test_a_line_says_what_sizes_the_model(model_id: str, said: tuple[str, ...], seatrial: Seatrial) -> None:
    lines = seatrial("models", "list", "--wide").stdout.splitlines()
    (line,) = [line for line in lines if line.startswith(f"{model_id} ")]
    assert [part for part in said if part not in line] == []


def test_the_list_is_written_for_machines(seatrial: Seatrial) -> None:
    listed = json.loads(seatrial("models", "list", "--format", "json").stdout)
    (llama,) = [model for model in listed if model["id"] == "meta-llama/Llama-2-7b-hf"]
    assert llama == {
        "id": "meta-llama/Llama-2-7b-hf",
        "params_total": 6_738_415_616,
        "params_active": 6_738_415_616,
        "max_context": 4_096,
        "plannable": True,
        "precision": "fp16",
        "experts": None,
        "experts_per_token": None,
        "attention": "MHA",
        "is_multimodal": False,
        "licence": "llama2",
    }
