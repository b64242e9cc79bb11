"""Which licence a model has, where that is known."""

from __future__ import annotations

import pytest

from seatrial_base.catalog import models
from seatrial_base.catalog.jumpstart import JUMPSTART_MODELS
from seatrial_base.catalog.models import LICENCES, MODELS


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("meta-llama/Llama-2-7b-chat-hf", "llama2"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama3"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama3.1"),
        ("META-LLAMA/llama-3.1-70b", "llama3.1"),
        ("Qwen/Qwen2.5-7B-Instruct", "apache-2.0"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen"),
        ("Qwen/Qwen2.5-3B", "qwen-research"),
        ("google/gemma-2b-it", "gemma"),
        ("meta-textgeneration-llama-3-1-8b-instruct", "llama3.1"),
        ("meta-textgeneration-llama-3-8b", "llama3"),
        ("someone/Llama-2-7b-chat-hf", None),
        ("tiiuae/falcon-180B", None),
        ("", None),
    ],
)
def test_a_licence_belongs_to_the_publishers_own_models(name: str, licence: str | None) -> None:
    assert models.licence_of(name) == licence


def test_no_model_has_two_licences() -> None:
    names = [model.id for model in MODELS.rows] + [model.id for model in JUMPSTART_MODELS.rows]
    twice = {name for name in names if len({row.licence for row in LICENCES.rows if row.covers(name)}) > 1}
    assert twice == set()


def test_every_row_covers_a_known_model_and_names_its_source() -> None:
    names = [model.id for model in MODELS.rows]
    assert [row for row in LICENCES.rows if not any(row.covers(name) for name in names)] == []
    assert all("huggingface.co/" in row.source and row.date for row in LICENCES.rows)
