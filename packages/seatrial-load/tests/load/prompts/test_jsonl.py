from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial_base.errors import BenchError
from seatrial_load.prompts.jsonl import JsonlConversations, JsonlPrompts
from seatrial_load.prompts.synthetic import RawBody

if TYPE_CHECKING:
    from pathlib import Path

LINES = """\
{"prompt": "Why is the sea salt?"}

{"messages": [{"role": "user", "content": "Wie geht es dir, Müller?"}], "output_tokens": 128}
{"body": {"inputs": "raw", "parameters": {"max_new_tokens": 3}}}"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text(LINES, encoding="utf-8")
    return path


def load(path: Path, *, chat: bool = True) -> JsonlPrompts:
    return JsonlPrompts(path, tokens_out=64, chat=chat)


def test_texts_messages_and_bodies(file: Path) -> None:
    prompts = load(file)
    assert len(prompts) == 3
    assert prompts.content(0) == "Why is the sea salt?"
    assert prompts.content(1) == [{"role": "user", "content": "Wie geht es dir, Müller?"}]
    assert prompts.content(2) == RawBody({"inputs": "raw", "parameters": {"max_new_tokens": 3}})
    assert [prompts.output_tokens(index) for index in range(3)] == [64, 128, 64]
    assert prompts.input_tokens(0) is None


def test_after_the_last_line_comes_the_first(file: Path) -> None:
    assert load(file).content(3) == "Why is the sea salt?"


def test_forked_processes_read_without_disturbing_each_other(file: Path) -> None:
    """Two children read every line many times over the one descriptor that they inherited."""
    prompts = load(file)
    wanted = [prompts.content(index) for index in range(3)]
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            right = all(prompts.content(index) == wanted[index % 3] for index in range(600))
            os._exit(0 if right else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]


NO_CHAT = 'not a list of objects with "role" and "content"'
BAD_LINES = [
    (b"{", "", "not JSON: Expecting property name enclosed in double quotes (column 2)"),
    (b'{"prompt": "\xff"}', "", "not UTF-8: invalid start byte (byte 13)"),
    (b"[1]", "", "not a JSON object"),
    (b"{}", "", "needs one of prompt, messages, body and turns, has none"),
    (b'{"prompt": "a", "body": {}}', "", "needs one of prompt, messages, body and turns, has prompt and body"),
    (b'{"prompt": ""}', "prompt", "not a non-empty string"),
    (b'{"prompt": 7}', "prompt", "not a non-empty string"),
    (b'{"body": []}', "body", "not a non-empty object"),
    (b'{"messages": []}', "messages", NO_CHAT),
    (b'{"messages": [{"content": "a"}]}', "messages", NO_CHAT),
    (b'{"prompt": "a", "output_tokens": 0}', "output_tokens", "0 is not a whole number from 1"),
    (b'{"prompt": "a", "output_tokens": true}', "output_tokens", "true is not a whole number from 1"),
    (
        b'{"prompt": "a", "max_tokens": 3}',
        "max_tokens",
        "unknown key; known are prompt, messages, body, output_tokens, input_tokens, timestamp, turns, session_id",
    ),
]


def test_every_bad_line_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\n".join([b'{"prompt": "fine"}', *(line for line, _, _ in BAD_LINES)]))
    with pytest.raises(BenchError) as caught:
        load(path)
    assert str(caught.value).split("\n") == [
        f"{path}:{number}: {field + ': ' if field else ''}SEA509: {message}"
        for number, (_, field, message) in enumerate(BAD_LINES, start=2)
    ]


def test_a_schema_of_texts_takes_no_messages(file: Path) -> None:
    with pytest.raises(BenchError) as caught:
        load(file, chat=False)
    assert str(caught.value) == f"{file}:3: messages: SEA509: the workload's schema needs a string, not messages"


def test_a_file_without_prompts(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n\n")
    with pytest.raises(BenchError) as caught:
        load(path)
    assert str(caught.value) == (
        f'{path}: SEA509: the file is empty\n  hint: write one JSON object per line: {{"prompt": "…"}}'
    )


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as caught:
        load(tmp_path / "none.jsonl")
    assert str(caught.value) == f"{tmp_path / 'none.jsonl'}: SEA509: can't be read: No such file or directory"


def test_a_thousand_bad_lines_are_counted_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("no\n" * 1234)
    with pytest.raises(BenchError) as caught:
        load(path)
    lines = str(caught.value).split("\n")
    assert len(lines) == 101
    assert lines[-1] == f"{path}: SEA509: and 1,134 more problems"


@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=20))
@settings(max_examples=50)
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts))
    prompts = load(path)
    assert [prompts.content(index) for index in range(len(texts))] == texts


def test_every_bad_turn_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"turns": []}\n{"turns": [1, {"text": ""}, {"prompt": "a", "delay": -1, "name": "b"}]}\n')
    with pytest.raises(BenchError) as caught:
        load(path)
    assert [(problem.rule, problem.field) for problem in caught.value.problems] == [
        ("SEA509", "turns"),
        ("SEA509", "turns[0]"),
        ("SEA509", "turns[1].text"),
        ("SEA509", "turns[2].name"),
        ("SEA509", "turns[2].delay"),
    ]


def test_every_turn_of_a_conversation_is_a_request(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('{"turns": [{"text": "a"}, {"prompt": "b", "delay": 500, "output_tokens": 3}]}\n{"prompt": "c"}\n')
    prompts = load(path)
    assert (prompts.conversations, list(prompts.delays_s)) == ((2, 1), [0.0, 0.5, 0.0])
    assert [prompts.content(index) for index in range(4)] == ["a", "b", "c", "a"]
    assert prompts.output_tokens(1) == 3
    later = JsonlConversations(prompts, first=10)
    assert [later.content(index) for index in range(10, 13)] == ["a", "b", "c"]
