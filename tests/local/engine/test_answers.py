from __future__ import annotations

import json

import pytest

from seatrial.local.engine.answers import AnswerFormat, Written, answer_format
from seatrial.local.engine.generation import read_ask
from seatrial.local.engine.llama import Token, Usage
from seatrial.local.engine.settings import WireFormat

FIRST, SECOND = Token(id=7, text="a", logprob=-0.5), Token(id=8, text="b", logprob=-0.25)
AT_LIMIT = Written((FIRST, SECOND), Usage(input_tokens=3, output_tokens=2, stop_type="limit"))
AT_STOP = Written((FIRST, SECOND), Usage(input_tokens=3, output_tokens=2, stop_type="word"))


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
        (
            WireFormat.LMI_ASYNC,
            "messages",
            b'{"object":"chat.completion.chunk","model":"lmi",'
            b'"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n',
        ),
        (
            WireFormat.TGI,
            "prompt",
            b'data: {"object":"text_completion","model":"lmi",'
            b'"choices":[{"index":0,"text":"a","finish_reason":null}]}\n\n',
        ),
    ],
)
def test_a_token_of_a_stream(wire_format: WireFormat, key: str, line: bytes) -> None:
    assert spelling(wire_format, key).token(0, FIRST) == line


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
