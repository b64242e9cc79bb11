from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.payload.json_text import RequestError
from seatrial_load.payload.request import Options, message, request_body
from seatrial_load.payload.schema import FACTS, Schema

EVERYTHING = Options(
    max_tokens=64, temperature=0.7, top_p=0.9, top_k=40, repetition_penalty=1.1, seed=7, stop=("\n\n", "###")
)
DRAWN = {"top_p": 0.9, "top_k": 40, "repetition_penalty": 1.1, "seed": 7}
GENERATE = {"max_new_tokens": 64, "do_sample": True, "temperature": 0.7, "details": True, **DRAWN}
OPENAI = {"max_tokens": 64, "temperature": 0.7, **DRAWN, "stop": ["\n\n", "###"], "stream": False}


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (
            Schema.LMI_ROLLING,
            {"inputs": "hi", "parameters": {**GENERATE, "stop_sequences": ["\n\n", "###"]}, "stream": False},
        ),
        (Schema.LMI_ASYNC, {"inputs": "hi", "parameters": {**GENERATE, "stop": ["\n\n", "###"]}, "stream": False}),
        (Schema.TGI, {"inputs": "hi", "parameters": {**GENERATE, "stop": ["\n\n", "###"]}, "stream": False}),
        (Schema.OPENAI_COMPLETIONS, {"prompt": "hi", **OPENAI}),
        (Schema.OPENAI_CHAT, {"messages": [{"role": "user", "content": "hi"}], **OPENAI}),
    ],
)
def test_everything_in_each_schema(schema: Schema, document: dict[str, object]) -> None:
    assert json.loads(request_body(schema, "hi", EVERYTHING)) == document


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (Schema.LMI_ROLLING, {"inputs": "hi", "parameters": {"details": True}, "stream": True}),
        (Schema.LMI_ASYNC, {"inputs": "hi", "parameters": {"details": True}, "stream": True}),
        (Schema.TGI, {"inputs": "hi", "parameters": {"details": True}, "stream": True}),
        (Schema.OPENAI_COMPLETIONS, {"prompt": "hi", "stream": True, "stream_options": {"include_usage": True}}),
        (
            Schema.OPENAI_CHAT,
            {
                "messages": [{"role": "user", "content": "hi"}],
                "stream": True,
                "stream_options": {"include_usage": True},
            },
        ),
    ],
)
def test_what_is_not_said_is_the_containers_default(schema: Schema, document: dict[str, object]) -> None:
    assert json.loads(request_body(schema, "hi", stream=True)) == document


def test_greedy_is_no_sampling_in_a_generate_schema_and_temperature_0_in_openais() -> None:
    greedy = Options(temperature=0)
    parameters = json.loads(request_body(Schema.TGI, "hi", greedy))["parameters"]
    assert parameters == {"do_sample": False, "details": True}
    assert json.loads(request_body(Schema.OPENAI_COMPLETIONS, "hi", greedy))["temperature"] == 0


@pytest.mark.parametrize(
    ("schema", "asked"),
    [(Schema.OPENAI_CHAT, True), (Schema.OPENAI_COMPLETIONS, 1), (Schema.TGI, None), (Schema.LMI_ASYNC, None)],
)
def test_log_probabilities_are_asked_for_where_details_do_not_bring_them(schema: Schema, asked: object) -> None:
    assert json.loads(request_body(schema, "hi", Options(log_probabilities=True))).get("logprobs") == asked


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        (Schema.LMI_ROLLING, "ignore_eos_token"),
        (Schema.LMI_ASYNC, "ignore_eos_token"),
        (Schema.OPENAI_CHAT, "ignore_eos"),
    ],
)
def test_the_end_of_the_text_can_be_ignored(schema: Schema, key: str) -> None:
    document = json.loads(request_body(schema, "hi", Options(ignore_eos=True)))
    assert document.get("parameters", document)[key] is True


def test_more_keys_stand_where_the_schema_has_its_own() -> None:
    options = Options(extra={"typical_p": 0.9})
    assert json.loads(request_body(Schema.TGI, "hi", options))["parameters"]["typical_p"] == 0.9
    assert json.loads(request_body(Schema.OPENAI_CHAT, "hi", options))["typical_p"] == 0.9


def test_chat_takes_messages_and_the_other_schemas_do_not() -> None:
    messages = [message("system", "Be short."), message("user", "hi")]
    assert json.loads(request_body(Schema.OPENAI_CHAT, messages))["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "hi"},
    ]
    for schema in set(Schema) - {Schema.OPENAI_CHAT}:
        with pytest.raises(RequestError) as refused:
            request_body(schema, messages)
        assert str(refused.value) == f"request: prompt: SEA370: {schema} needs a string, not messages"


@given(st.sampled_from(list(Schema)), st.text(), st.booleans())
def test_any_text_arrives_as_it_is(schema: Schema, text: str, stream: bool) -> None:  # noqa: FBT001 (drawn)
    document = json.loads(request_body(schema, text, stream=stream))
    sent = document[FACTS[schema].body_key]
    assert sent == ([{"role": "user", "content": text}] if schema is Schema.OPENAI_CHAT else text)


def test_every_schema_has_its_facts() -> None:
    assert set(FACTS) == set(Schema)
