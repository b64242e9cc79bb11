from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.decode.http1 import ProtocolError
from seatrial_load.decode.timed_answer import TimedAnswer, TimedAnswerReader, read_whole

LMI_ROLLING = (
    '{"token": {"id": 1, "text": "Grü", "log_prob": -0.1}}\n'
    '{"token": {"id": 2, "text": "ße", "log_prob": -0.2}, "generated_text": "Grüße",'
    ' "details": {"finish_reason": "length", "generated_tokens": 2, "inputs": null}}\n'
)
LMI_ASYNC = (
    '{"index":0,"token":{"id":1,"text":"Grü","logprob":-0.1},"generated_text":null,"details":null}\n'
    '{"index":0,"token":{"id":2,"text":"ße","logprob":-0.2},"generated_text":"Grüße",'
    '"details":{"finish_reason":"length","seed":null,"generated_tokens":3,"input_length":7}}\n'
)
LMI_ASYNC_CHAT = (
    '{"object":"chat.completion.chunk","choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n'
    '{"choices":[{"delta":{"content":"Grü"},"finish_reason":null}]}\n'
    '{"choices":[{"delta":{"content":"ße"},"finish_reason":"length"}]}\n'
    '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}\n'
)
TGI = (
    'data:{"index":1,"token":{"id":1,"text":"Grü","logprob":-0.1,"special":false},"generated_text":null,"details":null}\n\n'
    'data:{"index":2,"token":{"id":2,"text":"ße","logprob":-0.2,"special":false},"generated_text":"Grüße",'
    '"details":{"finish_reason":"length","generated_tokens":2,"seed":null,"input_length":7}}\n\n'
)
TGI_CHAT = ": heartbeat\r\n\r\nevent: message\r\n" + "".join(
    f"data: {line}\r\n\r\n" for line in [*LMI_ASYNC_CHAT.splitlines(), "[DONE]"]
)
COMPLETIONS = (
    'data: {"object":"text_completion","choices":[{"text":"Grü","finish_reason":null}],"usage":null}\n\n'
    'data: {"choices":[{"text":"ße","finish_reason":"length"}],"usage":null}\n\n'
    'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\ndata: [DONE]'
)
STREAMS = {
    "lmi rolling batch": (LMI_ROLLING, 2, None),
    "lmi async": (LMI_ASYNC, 3, 7),
    "lmi async chat": (LMI_ASYNC_CHAT, 2, 7),
    "tgi": (TGI, 2, 7),
    "tgi chat": (TGI_CHAT, 2, 7),
    "completions": (COMPLETIONS, 2, 7),
}


def read(pieces: list[bytes]) -> TimedAnswer:
    reader = TimedAnswerReader()
    for second, piece in enumerate(pieces):
        reader.feed(float(second), piece)
    reader.finish(float(len(pieces)))
    return reader.completion()


def texts(said: TimedAnswer) -> list[str]:
    return [event.text for event in said.events]


@pytest.mark.parametrize(("stream", "reported", "input_tokens"), STREAMS.values(), ids=STREAMS)
def test_every_stream_format(stream: str, reported: int, input_tokens: int | None) -> None:
    said = read([stream.encode()])
    assert texts(said) == ["Grü", "ße"]
    assert (said.finished, said.finish_reason, said.failure) == (True, "length", None)
    assert (said.reported_tokens, said.input_tokens) == (reported, input_tokens)


@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_any_split_gives_the_same_events_even_inside_a_character(name: str, data: st.DataObject) -> None:
    stream = STREAMS[name][0].encode()
    edges = [0, *sorted(data.draw(st.lists(st.integers(min_value=0, max_value=len(stream))))), len(stream)]
    said = read([stream[a:b] for a, b in itertools.pairwise(edges)])
    once = read([stream])
    assert texts(said) == texts(once)
    assert replace(said, events=(), finished_at_s=0.0) == replace(once, events=(), finished_at_s=0.0)


def test_an_event_arrives_when_its_line_is_complete() -> None:
    first, second = LMI_ASYNC.encode().splitlines(keepends=True)
    said = read([first[:-1], first[-1:] + second[:10], second[10:]])
    assert [event.at_s for event in said.events] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("line", "error", "detail"),
    [
        ('{"error":"Model is overloaded","error_type":"overloaded"}', "throttled", "overloaded: Model is overloaded"),
        ('{"error":"inputs too long","error_type":"validation"}', "validation", "validation: inputs too long"),
        ('{"error":"Request failed","error_type":"generation"}', "model_error", "generation: Request failed"),
        ('{"code":424,"error":"prediction failure"}', "model_error", "prediction failure"),
        ('{"code":424,"message":"gone"}', "model_error", "gone"),
        (
            '{"error":{"message":"too long","type":"BadRequestError","code":400}}',
            "validation",
            "BadRequestError: too long",
        ),
        (
            '{"error":{"message":"died","type":"InternalServerError","code":500}}',
            "model_error",
            "InternalServerError: died",
        ),
        (
            '{"token":{"id":-1,"text":""},"generated_text":"","details":{"finish_reason":"error","generated_tokens":null}}',
            "model_error",
            "the engine ended the generation with finish_reason error",
        ),
    ],
)
def test_error_lines(line: str, error: str, detail: str) -> None:
    said = read([LMI_ASYNC.splitlines()[0].encode() + b"\n" + line.encode() + b"\n"])
    assert said.failure is not None
    assert (said.failure.error, said.failure.detail) == (error, detail)


@pytest.mark.parametrize(
    ("document", "reported", "input_tokens"),
    [
        ({"generated_text": "x", "details": {"finish_reason": None, "generated_tokens": 9}}, 9, None),
        ({"generated_text": "x"}, None, None),
        ([{"generated_text": "x", "details": {"finish_reason": "length", "generated_tokens": 9}}], 9, None),
        (
            {
                "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 9},
            },
            9,
            5,
        ),
    ],
)
def test_whole_answers_have_counts_but_no_token_events(
    document: object, reported: int | None, input_tokens: int | None
) -> None:
    said = read_whole(3.0, json.dumps(document, indent=1).encode())
    assert said == TimedAnswer(
        (),
        finished=True,
        finished_at_s=3.0,
        reported_tokens=reported,
        input_tokens=input_tokens,
        finish_reason=said.finish_reason,
        failure=None,
        text="x",
    )


def test_a_stream_cut_before_its_closing_line_is_not_finished() -> None:
    assert not read([LMI_ASYNC.splitlines()[0].encode()]).finished


@pytest.mark.parametrize("line", [b"nonsense", b"{}", b"[]", b"3", b'"text"', b"[" * 100_000, b"\xff\xfe", b'{"a":'])
def test_lines_that_make_no_sense(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        read([line + b"\n"])


json_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(
        ["token", "text", "generated_text", "details", "choices", "delta", "usage", "completion_tokens", "error",
         "generated_tokens", "message", "code", "finish_reason"]), inner),
)  # fmt: skip


@given(st.binary() | json_documents.map(lambda document: json.dumps(document).encode()))
def test_random_lines_raise_nothing_but_a_protocol_error(line: bytes) -> None:
    try:
        said = read([line])
        read_whole(0.0, line)
    except ProtocolError:
        return
    assert said.reported_tokens is None or said.reported_tokens >= 0


@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_a_corrupted_stream_reads_alike_in_every_split(name: str, data: st.DataObject) -> None:
    damaged = bytearray(STREAMS[name][0].encode())
    damaged[data.draw(st.integers(min_value=0, max_value=len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cuts = data.draw(st.lists(st.integers(min_value=0, max_value=len(damaged))))
    edges = [0, *sorted(cuts), len(damaged)]

    def outcome(pieces: list[bytes]) -> tuple[list[str], bool] | None:
        try:
            said = read(pieces)
        except ProtocolError:
            return None
        return texts(said), said.finished

    assert outcome([bytes(damaged[a:b]) for a, b in itertools.pairwise(edges)]) == outcome([bytes(damaged)])


def test_documents_are_counted_whatever_the_split() -> None:
    reader = TimedAnswerReader()
    for byte in TGI_CHAT.encode():
        reader.feed(0.0, bytes([byte]))
    reader.finish(0.0)
    assert reader.documents == 5
