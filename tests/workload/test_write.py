from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.workload import token_count, write_prompts
from seatrial_base.errors import BenchError
from seatrial_load.prompts.jsonl import JsonlPrompts

if TYPE_CHECKING:
    from pathlib import Path


def test_a_trial_reads_what_was_written(tokenizer_file: Path, tmp_path: Path) -> None:
    path, count = tmp_path / "prompts.jsonl", token_count(tokenizer_file)
    assert write_prompts(path, count, [(128, 64), (37, 8)], seed="seed") == 2
    prompts = JsonlPrompts(path, tokens_out=1, chat=False)
    assert [count(str(prompts.content(index))) for index in range(2)] == [128, 37]
    assert [prompts.output_tokens(index) for index in range(2)] == [64, 8]


def test_prompts_of_equal_length_differ(tokenizer_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    write_prompts(path, token_count(tokenizer_file), [(32, 1)] * 20, seed="seed")
    assert len({json.loads(line)["prompt"] for line in path.read_text().splitlines()}) == 20


def test_a_length_that_cannot_be_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    with pytest.raises(BenchError, match="no text of exactly 0 tokens"):
        write_prompts(path, lambda text: 1 + len(text.split()), [(4, 1), (0, 1)], seed="seed")
    assert list(tmp_path.iterdir()) == []
