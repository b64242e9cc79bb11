"""Answers that were not streamed, and bodies that are none."""

from __future__ import annotations

import json

import pytest

from seatrial_load.payload.answer import Completion, EngineFailure, FinishReason, Token, Usage, read_answer
from seatrial_load.payload.json_text import AnswerError
from seatrial_load.payload.schema import Schema


def said(
    reason: FinishReason | None, word: str | None, tokens: tuple[Token, ...] | None, usage: Usage, text: str
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


ONE = [{"id": 1, "text": "x", "logprob": -0.5}]
WHOLE = {
    "LMI rolling batch": (
        Schema.LMI_ROLLING,
        {
            "generated_text": "x",
            "details": {"finish_reason": "stop_sequence", "generated_tokens": 1, "inputs": None, "tokens": ONE},
        },
        said(FinishReason.STOP_SEQUENCE, "stop_sequence", (Token("x", 1, -0.5, None),), Usage(None, 1), "x"),
    ),
    "LMI rolling batch with tgi_compat": (
        Schema.LMI_ROLLING,
        [{"generated_text": "x", "details": {"finish_reason": "length", "generated_tokens": 1}}],
        said(FinishReason.LENGTH, "length", None, Usage(None, 1), "x"),
    ),
    "details were not asked for": (
        Schema.TGI,
        [{"generated_text": "x"}],
        said(None, None, None, Usage(None, None), "x"),
    ),
    "LMI async says null for length and for the end of the text": (
        Schema.LMI_ASYNC,
        {
            "generated_text": "x",
            "details": {"finish_reason": None, "generated_tokens": 1, "seed": None, "prefill": [], "tokens": ONE},
        },
        said(None, None, (Token("x", 1, -0.5, None),), Usage(None, 1), "x"),
    ),
    "LMI async names the stop sequence, even where it reads like a reason": (
        Schema.LMI_ASYNC,
        {"generated_text": "x", "details": {"finish_reason": "length", "generated_tokens": 1, "tokens": []}},
        said(FinishReason.STOP_SEQUENCE, "length", None, Usage(None, 1), "x"),
    ),
    "LMI async names the stop token": (
        Schema.LMI_ASYNC,
        {"generated_text": "x", "details": {"finish_reason": 151643, "generated_tokens": 1}},
        said(FinishReason.STOP_SEQUENCE, "151643", None, Usage(None, 1), "x"),
    ),
    "chat": (
        Schema.OPENAI_CHAT,
        {
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1},
        },
        said(FinishReason.STOP, "stop", None, Usage(5, 1), "x"),
    ),
    "chat of vLLM names the stop sequence": (
        Schema.OPENAI_CHAT,
        {"choices": [{"message": {"content": "x"}, "finish_reason": "stop", "stop_reason": "###"}]},
        said(FinishReason.STOP_SEQUENCE, "stop", None, Usage(None, None), "x"),
    ),
    "chat that calls a tool": (
        Schema.OPENAI_CHAT,
        {"choices": [{"message": {"content": None, "tool_calls": [{}]}, "finish_reason": "tool_calls"}]},
        said(FinishReason.TOOL_CALLS, "tool_calls", None, Usage(None, None), ""),
    ),
    "completions": (
        Schema.OPENAI_COMPLETIONS,
        {
            "choices": [
                {
                    "index": 0,
                    "text": "x",
                    "logprobs": {"tokens": ["x"], "token_logprobs": [-0.5]},
                    "finish_reason": "length",
                },
                {"index": 1, "text": "another", "finish_reason": "stop"},
            ],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1},
        },
        said(FinishReason.LENGTH, "length", (Token("x", None, -0.5, None),), Usage(5, 1), "x"),
    ),
    "a reason of tomorrow": (
        Schema.OPENAI_COMPLETIONS,
        {"choices": [{"text": "x", "finish_reason": "tide"}]},
        said(FinishReason.OTHER, "tide", None, Usage(None, None), "x"),
    ),
}


@pytest.mark.parametrize(("schema", "document", "completion"), WHOLE.values(), ids=WHOLE)
def test_every_whole_answer(schema: Schema, document: object, completion: Completion) -> None:
    assert read_answer(schema, json.dumps(document, indent=1).encode()) == completion


@pytest.mark.parametrize(
    ("document", "failure"),
    [
        ({"error": "Model is overloaded", "error_type": "overloaded"}, ("overloaded", "Model is overloaded", None)),
        ({"code": 424, "error": "prediction failure"}, ("", "prediction failure", 424)),
        ({"code": 424, "message": "invoke handler failure"}, ("", "invoke handler failure", 424)),
        ({"code": 400, "type": "validation", "message": "too long"}, ("validation", "too long", 400)),
        (
            {"error": {"message": "too long", "type": "BadRequestError", "code": 400}},
            ("BadRequestError", "too long", 400),
        ),
        ({"object": "error", "message": "no", "type": "NotFoundError", "code": 404}, ("NotFoundError", "no", 404)),
        ({"error": ["odd"]}, ("", '["odd"]', None)),
        ({"error": {}, "code": 500}, ("", "no message", None)),
        (
            {"generated_text": "", "details": {"finish_reason": "error", "generated_tokens": None}},
            ("", "the engine ended the generation with finish_reason error", None),
        ),
    ],
)
def test_errors_are_data(document: object, failure: tuple[str, str, int | None]) -> None:
    completion = read_answer(Schema.LMI_ROLLING, json.dumps(document).encode())
    assert completion.failure == EngineFailure(*failure)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "SEA371: the answer is empty"),
        (b" \n", "SEA371: the answer is empty"),
        (b"nonsense", "SEA371: not JSON: b'nonsense'"),
        (b"{}", "SEA371: unknown answer format: {}"),
        (b"3", "SEA371: unknown answer format: 3"),
        (b'[{"generated_text":"a"},{"generated_text":"b"}]',
         'SEA371: unknown answer format: [{"generated_text": "a"}, {"generated_text": "b"}]'),
        (b'{"generated_text":"', "SEA371: not JSON: b'{\"generated_text\":\"'"),
        (b"\xff\xfe", "SEA371: not JSON: b'\\xff\\xfe'"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(body: bytes, message: str) -> None:
    with pytest.raises(AnswerError) as malformed:
        read_answer(Schema.TGI, body)
    assert str(malformed.value) == message


@pytest.mark.parametrize("depth", [500, 900, 1500, 100_000])
def test_deep_json_is_refused_without_a_traceback(depth: int) -> None:
    with pytest.raises(AnswerError):
        read_answer(Schema.TGI, b"[" * depth + b"]" * depth)
