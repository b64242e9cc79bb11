"""vLLM's own container: what it reads, refuses at its start, and answers."""

from __future__ import annotations

import json

import pytest

from seatrial_base.errors import LocalError
from seatrial_laptop.engine.container import EVENT_STREAM, Written, answer_format
from seatrial_laptop.engine.family import vllm_settings
from seatrial_laptop.engine.generation import BadRequest, read_ask
from seatrial_laptop.engine.llama import LlamaToken, LlamaUsage
from seatrial_laptop.engine.settings import WireFormat

MODEL = {"SM_VLLM_MODEL": "org/model"}
WRITTEN = Written((LlamaToken(1, "a", -1.0),), LlamaUsage(3, 1, "limit"))


def test_the_environment_becomes_settings() -> None:
    found = vllm_settings({**MODEL, "SM_VLLM_MAX_NUM_SEQS": "8", "SM_VLLM_MAX_MODEL_LEN": "2048"})
    assert (found.wire_format, found.max_num_seqs, found.max_total_tokens) == (WireFormat.VLLM, 8, 2048)
    assert (found.served_names, found.calls_tools) == (("org/model",), False)


def test_the_rendered_limits_of_the_queue_are_read() -> None:
    limits = {"SM_VLLM_MAX_NUM_QUEUED_REQS": "12", "SM_VLLM_MAX_NUM_QUEUED_TOKENS": "900"}
    found = vllm_settings({**MODEL, **limits})
    assert (found.max_in_flight, found.max_queued_tokens) == (12, 900)


def test_served_names_stand_for_the_models_own() -> None:
    assert vllm_settings({**MODEL, "SM_VLLM_SERVED_MODEL_NAME": "a b"}).served_names == ("a", "b")


@pytest.mark.parametrize("written", ["", "true"])
def test_a_flag_of_old_and_new_containers_lets_the_model_call_tools(written: str) -> None:
    tools = {"SM_VLLM_ENABLE_AUTO_TOOL_CHOICE": written, "SM_VLLM_TOOL_CALL_PARSER": "hermes"}
    assert vllm_settings({**MODEL, **tools}).calls_tools


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "no model is set"),
        ({**MODEL, "SM_VLLM_MAX_NUM_SEQS": "8", "SM_VLLM_MAX_NUM_BATCHED_TOKENS": "4"}, "max_num_batched_tokens"),
        ({**MODEL, "SM_VLLM_MAX_MODEL_LEN": "999999"}, "exceed"),
        ({**MODEL, "SM_VLLM_ENABLE_AUTO_TOOL_CHOICE": "true"}, "requires --tool-call-parser"),
    ],
)
def test_what_never_starts_is_refused(environment: dict[str, str], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        vllm_settings(environment)


def stream(**asked: object) -> list[bytes]:
    """Return the events of a streamed answer of one token."""
    ask = read_ask(json.dumps({"messages": [], "stream": True, **asked}).encode())
    answer = answer_format(WireFormat.VLLM, ask, "org/model")
    assert answer.stream_type == EVENT_STREAM
    events = answer.last(WRITTEN.tokens[0], WRITTEN).split(b"\n\n")
    return [event.removeprefix(b"data: ") for event in events if event]


def test_the_usage_has_a_chunk_of_its_own_where_it_was_asked_for() -> None:
    (token, done) = stream()
    assert (b"usage" in token, done) == (False, b"[DONE]")
    (_, usage, _) = stream(stream_options={"include_usage": True})
    assert json.loads(usage)["choices"] == []
    assert json.loads(usage)["usage"]["total_tokens"] == 4


def test_no_name_of_the_model_is_answered_with_its_own() -> None:
    assert json.loads(stream(model="")[0])["model"] == "org/model"


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([], None),
        ("weather", None),
        ([{"type": "function"}], None),
        ([{"function": {"name": "a"}}], {"function": {"name": "b"}}),
        (None, "required"),
    ],
)
def test_tools_that_are_none_are_refused(tools: object, choice: object) -> None:
    asked = {"messages": [], "tools": tools, "tool_choice": choice}
    with pytest.raises(BadRequest):
        read_ask(json.dumps(asked).encode())


def test_a_call_that_is_cut_says_so() -> None:
    asked = {"tools": [{"function": {"name": "a"}}], "tool_choice": "required"}
    (token, _) = stream(**asked)
    (choice,) = json.loads(token)["choices"]
    assert (choice["finish_reason"], choice["delta"]["tool_calls"][0]["function"]["name"]) == ("length", "a")
