from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from seatrial_load.client.request_writer import payload
from seatrial_load.documents.request import Workload
from seatrial_load.prompts.synthetic import WORDS, RawBody

if TYPE_CHECKING:
    from seatrial_load.documents.request import PayloadSchema

work = partial(Workload, input_tokens=8, output_tokens=64)
SCHEMAS: tuple[PayloadSchema, ...] = ("lmi", "tgi", "openai_chat", "openai_completions")


def test_every_byte_has_its_word() -> None:
    assert len(set(WORDS)) == 256


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (
            "lmi",
            {
                "inputs": "hi",
                "parameters": {"max_new_tokens": 64, "do_sample": False, "details": True, "ignore_eos_token": True},
                "stream": True,
            },
        ),
        (
            "tgi",
            {"inputs": "hi", "parameters": {"max_new_tokens": 64, "do_sample": False, "details": True}, "stream": True},
        ),
        (
            "openai_chat",
            {
                "messages": [{"role": "user", "content": "hi"}],
                "max_tokens": 64,
                "temperature": 0,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
        ),
        (
            "openai_completions",
            {
                "prompt": "hi",
                "max_tokens": 64,
                "temperature": 0,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
        ),
    ],
)
def test_bodies(schema: PayloadSchema, document: dict[str, object]) -> None:
    assert json.loads(payload(work(schema=schema), "hi", output_tokens=64)) == document


@pytest.mark.parametrize("schema", SCHEMAS)
def test_whole_answers_are_asked_for_without_stream_options(schema: PayloadSchema) -> None:
    document = json.loads(payload(work(schema=schema, stream=False), "hi", output_tokens=64))
    assert document["stream"] is False
    assert "stream_options" not in document


def test_the_model_of_an_openai_compatible_server() -> None:
    document = json.loads(payload(work(schema="openai_chat"), "hi", output_tokens=64, model="mine"))
    assert document["model"] == "mine"


def test_messages_are_sent_as_they_are() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert json.loads(payload(work(schema="openai_chat"), messages, output_tokens=64))["messages"] == messages


def test_of_a_whole_body_only_streaming_and_model_are_set() -> None:
    body = RawBody({"messages": [], "max_tokens": 3, "temperature": 1.5, "model": "theirs", "stream": False})
    assert json.loads(payload(work(schema="openai_chat"), body, output_tokens=64, model="mine")) == {
        "messages": [],
        "max_tokens": 3,
        "temperature": 1.5,
        "model": "mine",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_whole_body_for_a_container_gets_no_stream_options() -> None:
    body = RawBody({"inputs": "hi", "stream_options": {"include_usage": True}})
    assert json.loads(payload(work(schema="lmi"), body, output_tokens=64)) == {"inputs": "hi", "stream": True}
    assert body.document["stream_options"] == {"include_usage": True}


def test_a_whole_body_keeps_its_limit_of_tokens_under_the_name_that_the_server_takes() -> None:
    newer, older = (work(schema="openai_chat", max_tokens_key=key) for key in ("max_completion_tokens", "max_tokens"))
    for workload, name in ((newer, "max_tokens"), (newer, "max_completion_tokens"), (older, "max_completion_tokens")):
        document = json.loads(payload(workload, RawBody({"messages": [], name: 3}), output_tokens=64))
        assert document["max_completion_tokens"] == 3
        assert "max_tokens" not in document
