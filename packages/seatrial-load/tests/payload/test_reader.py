"""What the containers really write, and what is read from it."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.errors import SeatrialError
from seatrial_load.payload.answer import (
    AnswerReader,
    Completion,
    EngineFailure,
    FinishReason,
    Token,
    Usage,
    read_answer,
    settled_count,
)
from seatrial_load.payload.schema import Schema

ROLLING = (
    '{"token": {"id": 1, "text": "Grü", "log_prob": -0.1}}\n'
    '{"token": {"id": 2, "text": "ße", "log_prob": -0.2}, "generated_text": "Grüße",'
    ' "details": {"finish_reason": "eos_token", "generated_tokens": 2, "inputs": "Sag"}}\n'
)
ROLLING_SSE = "".join(f"data:{line}\n\n" for line in ROLLING.splitlines())
ASYNC = (
    '{"index":0,"token":{"id":1,"text":"Grü","logprob":-0.1},"generated_text":null,"details":null}\n'
    '{"index":0,"token":{"id":2,"text":"ße","logprob":-0.2},"generated_text":"Grüße",'
    '"details":{"finish_reason":"length","seed":null,"generated_tokens":3,"input_length":7}}\n'
)
TGI = (
    'data:{"index":1,"token":{"id":1,"text":"Grü","logprob":-0.1,"special":false},"generated_text":null,"details":null}\n\n'
    'data:{"index":2,"token":{"id":2,"text":"ße","logprob":-0.2,"special":false},"generated_text":null,"details":null}\n\n'
    'data:{"index":3,"token":{"id":0,"text":"</s>","logprob":-0.3,"special":true},"generated_text":"Grüße",'
    '"details":{"finish_reason":"eos_token","generated_tokens":3,"seed":null,"input_length":7}}\n\n'
)
CHAT_LINES = (
    '{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},'
    '"finish_reason":null}]}\n'
    '{"choices":[{"index":0,"delta":{"content":"Grü"},"logprobs":{"content":[{"token":"Grü","logprob":-0.1}]},'
    '"finish_reason":null}]}\n'
    '{"choices":[{"index":0,"delta":{"content":"ße"},"logprobs":{"content":[{"token":"ße","logprob":-0.2}]},'
    '"finish_reason":"length"}]}\n'
    '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}\n'
)
CHAT_SSE = ": ping\r\n\r\n" + "".join(f"data: {line}\r\n\r\n" for line in [*CHAT_LINES.splitlines(), "[DONE]"])
COMPLETIONS = (
    'data: {"choices":[{"index":0,"text":"Grü","logprobs":{"tokens":["Grü"],"token_logprobs":[-0.1]},'
    '"finish_reason":null,"stop_reason":null}]}\n\n'
    'data: {"choices":[{"index":0,"text":"ße","logprobs":{"tokens":["ße"],"token_logprobs":[-0.2]},'
    '"finish_reason":"stop","stop_reason":null}]}\n\n'
    'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\ndata: [DONE]'
)
NUMBERED = (Token("Grü", 1, -0.1, None), Token("ße", 2, -0.2, None))
UNNUMBERED = (Token("Grü", None, -0.1, None), Token("ße", None, -0.2, None))
WITH_END = (
    Token("Grü", 1, -0.1, special=False),
    Token("ße", 2, -0.2, special=False),
    Token("</s>", 0, -0.3, special=True),
)


def said(
    reason: FinishReason | None, word: str | None, tokens: tuple[Token, ...] | None, usage: Usage, text: str = "Grüße"
) -> Completion:
    return Completion(
        text=text,
        reasoning=None,
        tokens=tokens,
        finish_reason=reason,
        finish_word=word,
        usage=usage,
        finished=True,
        failure=None,
    )


STREAMS = {
    "LMI rolling batch": (
        Schema.LMI_ROLLING,
        ROLLING,
        said(FinishReason.END_OF_TEXT, "eos_token", NUMBERED, Usage(None, 2)),
    ),
    "LMI rolling batch, output_formatter=sse or tgi_compat": (
        Schema.LMI_ROLLING,
        ROLLING_SSE,
        said(FinishReason.END_OF_TEXT, "eos_token", NUMBERED, Usage(None, 2)),
    ),
    "LMI async counts one token too many": (
        Schema.LMI_ASYNC,
        ASYNC,
        said(FinishReason.LENGTH, "length", NUMBERED, Usage(7, 2)),
    ),
    "LMI async speaks chat as bare lines": (
        Schema.OPENAI_CHAT,
        CHAT_LINES,
        said(FinishReason.LENGTH, "length", UNNUMBERED, Usage(7, 2)),
    ),
    "TGI's end of text is no text": (
        Schema.TGI,
        TGI,
        said(FinishReason.END_OF_TEXT, "eos_token", WITH_END, Usage(7, 3)),
    ),
    "chat of TGI, vLLM and SGLang": (
        Schema.OPENAI_CHAT,
        CHAT_SSE,
        said(FinishReason.LENGTH, "length", UNNUMBERED, Usage(7, 2)),
    ),
    "vLLM's stop without a stop_reason is the end of the text": (
        Schema.OPENAI_COMPLETIONS,
        COMPLETIONS,
        said(FinishReason.END_OF_TEXT, "stop", UNNUMBERED, Usage(7, 2)),
    ),
}


def read(schema: Schema, pieces: list[bytes]) -> Completion:
    reader = AnswerReader(schema)
    for piece in pieces:
        reader.feed(piece)
    reader.finish()
    return reader.completion()


@pytest.mark.parametrize(("schema", "stream", "completion"), STREAMS.values(), ids=STREAMS)
def test_every_stream(schema: Schema, stream: str, completion: Completion) -> None:
    assert read(schema, [stream.encode()]) == completion


@pytest.mark.parametrize(("schema", "stream", "completion"), STREAMS.values(), ids=STREAMS)
def test_a_whole_answer_may_be_lines_too(schema: Schema, stream: str, completion: Completion) -> None:
    assert read_answer(schema, stream.encode()) == completion


@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_any_split_gives_the_same_completion(name: str, data: st.DataObject) -> None:
    schema, text, completion = STREAMS[name]
    stream = text.encode()
    cuts = data.draw(st.lists(st.integers(min_value=0, max_value=len(stream))))
    edges = sorted({0, *cuts, len(stream)})
    assert read(schema, [stream[a:b] for a, b in itertools.pairwise(edges)]) == completion


def test_a_piece_comes_with_its_line() -> None:
    reader = AnswerReader(Schema.LMI_ASYNC)
    first, second = ASYNC.encode().splitlines(keepends=True)
    assert reader.feed(first[:-1]) == []
    assert [piece.text for piece in reader.feed(first[-1:] + second[:10])] == ["Grü"]
    assert (reader.completion().text, reader.completion().finished) == ("Grü", False)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(key: str) -> None:
    whole = {"choices": [{"message": {key: "hm", "content": "x"}, "finish_reason": "stop"}]}
    lines = [{"choices": [{"delta": {key: "h"}}]}, {"choices": [{"delta": {key: "m"}}]},
             {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}]  # fmt: skip
    for completion in (
        read_answer(Schema.OPENAI_CHAT, json.dumps(whole).encode()),
        read(Schema.OPENAI_CHAT, [json.dumps(line).encode() + b"\n" for line in lines]),
    ):
        assert (completion.text, completion.reasoning) == ("x", "hm")


def test_an_error_after_the_first_tokens_keeps_the_text() -> None:
    stream = ASYNC.splitlines(keepends=True)[0] + '{"error":"Request failed","error_type":"generation"}\n'
    completion = read(Schema.LMI_ASYNC, [stream.encode()])
    assert (completion.text, completion.finished) == ("Grü", False)
    assert completion.failure == EngineFailure("generation", "Request failed", None)


@pytest.mark.parametrize(
    ("value", "read_as"),
    [("-0.5", -0.5), ("0", 0.0), ("-Infinity", None), ("Infinity", None), ("true", None), ("1e400", None)],
)
def test_a_log_probability_is_a_finite_number(value: str, read_as: float | None) -> None:
    (token,) = read(Schema.TGI, [f'{{"token":{{"id":1,"text":"x","logprob":{value}}}}}\n'.encode()]).tokens or ()
    assert token.log_probability == read_as


def test_an_answer_with_nan_is_no_json() -> None:
    with pytest.raises(SeatrialError, match="not JSON"):
        read(Schema.TGI, [b'{"token":{"id":1,"text":"x","logprob":NaN}}\n'])


def test_a_huge_whole_number_is_no_log_probability() -> None:
    line = f'{{"token":{{"id":1,"text":"x","logprob":-1{"0" * 400}}}}}\n'
    (token,) = read(Schema.TGI, [line.encode()]).tokens or ()
    assert token.log_probability is None


def test_a_stream_that_breaks_off_is_not_finished() -> None:
    assert not read(Schema.LMI_ASYNC, [ASYNC.splitlines()[0].encode()]).finished


@pytest.mark.parametrize(
    ("events", "reported", "chosen"),
    [(4, None, 4), (4, 4, 4), (4, 5, 4), (4, 3, 4), (4, 6, 6), (0, 1, 1), (0, 9, 9), (0, None, None)],
)
def test_which_count_is_used(events: int, reported: int | None, chosen: int | None) -> None:
    assert settled_count(events, reported) == chosen


KEYS = [
    "token",
    "text",
    "id",
    "logprob",
    "generated_text",
    "details",
    "tokens",
    "choices",
    "delta",
    "logprobs",
    "content",
    "usage",
    "completion_tokens",
    "error",
    "generated_tokens",
    "message",
    "code",
    "finish_reason",
    "index",
    "special",
    "stop_reason",
    "token_logprobs",
    "type",
    "reasoning",
    "tool_calls",
]
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
)


@given(st.sampled_from(list(Schema)), st.binary() | documents.map(lambda document: json.dumps(document).encode()))
def test_arbitrary_bytes_raise_nothing_but_a_typed_error(schema: Schema, body: bytes) -> None:
    for pieces in ([], [body]):
        try:
            completion = read(schema, pieces) if pieces else read_answer(schema, body)
        except SeatrialError:
            continue
        assert completion.usage.output_tokens is None or completion.usage.output_tokens >= 0
        known = [token.log_probability for token in completion.tokens or () if token.log_probability is not None]
        assert all(map(math.isfinite, known))
