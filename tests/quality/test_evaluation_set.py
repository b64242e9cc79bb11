from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.trial import read_evaluation_set
from seatrial_base.errors import BenchError, SpecError
from seatrial_load.documents.request import ChatMessage, EvaluationPrompt
from seatrial_load.quality.scores import MOST_SET_BYTES, evaluation_set, prompt_content

if TYPE_CHECKING:
    from pathlib import Path

GOOD = b'{"prompt": "a", "reference": "b", "id": 7}\r\n\n{"messages": [{"role": "user", "content": "c"}]}\n'


def test_prompts_messages_references_and_ids_are_read() -> None:
    found = evaluation_set(b"\xef\xbb\xbf" + GOOD, "e", chat=True)
    assert found.prompts == (
        EvaluationPrompt(id="7", prompt="a", reference="b"),
        EvaluationPrompt(id="line-3", messages=(ChatMessage(role="user", content="c"),)),
    )
    assert found.has_references
    assert prompt_content(found.prompts[1]) == [{"role": "user", "content": "c"}]


def test_the_digest_is_of_what_is_said() -> None:
    spaced = GOOD.replace(b'"a", ', b'"a",   ').replace(b"\r", b"")
    assert evaluation_set(GOOD, "e", chat=True).digest == evaluation_set(spaced, "f", chat=True).digest
    other = GOOD.replace(b'"b"', b'"d"')
    assert evaluation_set(GOOD, "e", chat=True).digest != evaluation_set(other, "e", chat=True).digest


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"{", ""),
        (b"\xff", ""),
        (b"[]", ""),
        (b"{}", ""),
        (b'{"prompt": "a", "messages": []}', ""),
        (b'{"prompt": " "}', "prompt"),
        (b'{"prompt": 3}', "prompt"),
        (b'{"prompt": "a", "temperature": 1}', "temperature"),
        (b'{"prompt": "a", "reference": ""}', "reference"),
        (b'{"prompt": "a", "id": true}', "id"),
        (b'{"messages": [{"role": "user", "content": []}]}', "messages"),
        (b'{"messages": [{"role": "user", "content": "a"}]}', "messages"),
        (b'{"prompt": "z", "id": "x"}', "id"),
    ],
)
def test_a_bad_line_is_told_with_its_number(line: bytes, field: str) -> None:
    with pytest.raises(BenchError) as refused:
        evaluation_set(b'{"prompt": "y", "id": "x"}\n' + line, "e.jsonl", chat=False)
    assert [(problem.where, problem.field, problem.rule) for problem in refused.value.problems] == [
        ("e.jsonl:2", field, "SEA527")
    ]


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(content)
    with pytest.raises(SpecError, match="the file is empty"):
        read_evaluation_set(path, chat=False)


def test_a_missing_file_and_too_large_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match="SEA527"):
        read_evaluation_set(tmp_path / "none.jsonl", chat=False)
    path = tmp_path / "e.jsonl"
    with path.open("wb") as file:
        file.truncate(MOST_SET_BYTES + 1)
    with pytest.raises(SpecError, match="larger than 16 MiB"):
        read_evaluation_set(path, chat=False)
    monkeypatch.setattr("seatrial_load.quality.scores.MOST_PROMPTS", 1)
    with pytest.raises(BenchError, match="2 prompts; the maximum is 1"):
        evaluation_set(GOOD, "e", chat=True)
