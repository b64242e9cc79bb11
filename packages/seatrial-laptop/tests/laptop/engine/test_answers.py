from __future__ import annotations

import json
import time

import pytest

from seatrial_laptop.engine.container import AnswerFormat, Written, answer_format
from seatrial_laptop.engine.generation import read_ask
from seatrial_laptop.engine.llama import LlamaToken, LlamaUsage
from seatrial_laptop.engine.settings import WireFormat

FIRST, SECOND = LlamaToken(id=7, text="a", logprob=-0.5), LlamaToken(id=8, text="b", logprob=-0.25)
AT_LIMIT = Written((FIRST, SECOND), LlamaUsage(input_tokens=3, output_tokens=2, stop_type="limit"))
AT_STOP = Written((FIRST, SECOND), LlamaUsage(input_tokens=3, output_tokens=2, stop_type="word"))


def spelling(wire_format: WireFormat, key: str = "inputs") -> AnswerFormat:
    return answer_format(wire_format, read_ask(json.dumps({key: [] if key == "messages" else "x"}).encode()))


@pytest.mark.parametrize(
    ("wire_format", "key", "line"),
    [
        (
            WireFormat.LMI_ASYNC,
            "inputs",
            b'{"index":0,"token":{"id":7,"text":"a","logprob":-0.5},"generated_text":null,"details":null}\n',
        ),
        (WireFormat.LMI_ROLLING_BATCH, "inputs", b'{"token":{"id":7,"text":"a","log_prob":-0.5}}\n'),
        (
            WireFormat.TGI,
            "inputs",
            b'data:{"index":1,"token":{"id":7,"text":"a","logprob":-0.5,"special":false},'
            b'"generated_text":null,"details":null}\n\n',
        ),
    ],
)
def test_a_token_of_a_stream(wire_format: WireFormat, key: str, line: bytes) -> None:
    assert spelling(wire_format, key).token(0, FIRST) == line


@pytest.mark.parametrize(("wire_format", "mark"), [(WireFormat.LMI_ASYNC, b"{"), (WireFormat.TGI, b"data: {")])
@pytest.mark.parametrize(
    ("key", "kind", "prefix", "first", "second"),
    [
        (
            "messages",
            "chat.completion.chunk",
            "chatcmpl-",
            {"delta": {"role": "assistant", "content": "a"}},
            {"delta": {"content": "b"}},
        ),
        ("prompt", "text_completion", "cmpl-", {"text": "a"}, {"text": "b"}),
    ],
)
def test_a_chunk_of_openai_has_id_time_and_model(
    wire_format: WireFormat, mark: bytes, key: str, kind: str, prefix: str, first: object, second: object
) -> None:
    """LiteLLM's sagemaker_chat fails on a chunk without `id` or `created`."""
    asked = {key: [] if key == "messages" else "x", "model": "org/model"}
    answer = answer_format(wire_format, read_ask(json.dumps(asked).encode()))
    before = int(time.time())
    lines = [answer.token(0, FIRST), answer.last(SECOND, AT_LIMIT)]
    assert all(line.startswith(mark) for line in lines)
    chunks = [json.loads(line.removeprefix(b"data: ").split(b"\n")[0]) for line in lines]
    whole = json.loads(answer.whole(AT_LIMIT, details=False))
    assert [chunk["choices"][0] for chunk in chunks] == [
        {"index": 0, **first, "finish_reason": None},  # type: ignore[dict-item]  # a part of JSON
        {"index": 0, **second, "finish_reason": "length"},  # type: ignore[dict-item]  # a part of JSON
    ]
    assert {chunk["object"] for chunk in chunks} == {kind}
    assert whole["object"] == kind.removesuffix(".chunk")
    for document in (*chunks, whole):
        assert document["id"] == chunks[0]["id"]
        assert document["id"].startswith(prefix)
        assert document["model"] == "org/model"
        assert before - 1 <= document["created"] <= time.time() + 1


@pytest.mark.parametrize(
    ("wire_format", "written", "details"),
    [
        (WireFormat.LMI_ASYNC, AT_LIMIT, {"finish_reason": "length", "generated_tokens": 2, "input_length": 3}),
        (WireFormat.LMI_ASYNC, AT_STOP, {"finish_reason": "stop", "generated_tokens": 2, "input_length": 3}),
        (WireFormat.LMI_ROLLING_BATCH, AT_LIMIT, {"finish_reason": "length", "generated_tokens": 2, "inputs": None}),
        (
            WireFormat.TGI,
            AT_STOP,
            {"finish_reason": "stop_sequence", "generated_tokens": 2, "seed": None, "input_length": 3},
        ),
    ],
)
def test_the_end_of_a_stream_has_the_text_and_the_counts(
    wire_format: WireFormat, written: Written, details: dict[str, object]
) -> None:
    last = json.loads(spelling(wire_format).last(SECOND, written).removeprefix(b"data:"))
    assert (last["token"]["text"], last["generated_text"], last["details"]) == ("b", "ab", details)


def test_a_token_that_was_written_already_is_not_written_twice() -> None:
    last = json.loads(spelling(WireFormat.LMI_ASYNC).last(None, AT_STOP))
    assert last["token"] == {"id": 8, "text": "", "logprob": -0.25}


def test_server_sent_events_of_chat_end_with_done() -> None:
    *_, done, empty = spelling(WireFormat.TGI, "messages").last(SECOND, AT_LIMIT).split(b"\n\n")
    assert (done, empty) == (b"data: [DONE]", b"")


def test_a_whole_answer_of_a_rolling_batch_tells_details_when_asked() -> None:
    plain = spelling(WireFormat.LMI_ROLLING_BATCH).whole(AT_LIMIT, details=False)
    assert plain == b'{"generated_text":"ab"}'
    told = json.loads(spelling(WireFormat.LMI_ROLLING_BATCH).whole(AT_LIMIT, details=True))
    assert (told["details"]["finish_reason"], told["details"]["tokens"][0]["log_prob"]) == ("length", -0.5)


def test_a_chat_tells_log_probabilities_when_asked() -> None:
    answer = answer_format(WireFormat.LMI_ASYNC, read_ask(b'{"messages": [], "logprobs": true}'))
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    whole = json.loads(answer.whole(AT_LIMIT, details=False))["choices"][0]["logprobs"]["content"]
    assert (whole[0], [each["logprob"] for each in whole]) == (entry, [-0.5, -0.25])
    assert json.loads(answer.token(0, FIRST))["choices"][0]["logprobs"] == {"content": [entry]}


@pytest.mark.parametrize(("wire_format", "told"), [(WireFormat.LMI_ASYNC, True), (WireFormat.TGI, False)])
def test_completions_of_tgi_have_no_log_probabilities(wire_format: WireFormat, told: bool) -> None:  # noqa: FBT001
    answer = answer_format(wire_format, read_ask(b'{"prompt": "x", "logprobs": 1}'))
    choice = json.loads(answer.whole(AT_LIMIT, details=False))["choices"][0]
    assert ("logprobs" in choice) is told
    if told:
        assert choice["logprobs"]["token_logprobs"] == [-0.5, -0.25]
        assert choice["logprobs"]["text_offset"] == [0, 1]
