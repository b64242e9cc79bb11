from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_laptop.engine.family import lmi_settings, tgi_settings
from seatrial_laptop.engine.generation import Ask, BadRequest, limit_output, read_ask

if TYPE_CHECKING:
    from seatrial_laptop.engine.settings import EngineSettings

LMI = lmi_settings("r/djl-inference:0.36.0", {}, {"option.model_id": "m", "option.max_model_len": "100"})
TGI = tgi_settings({"HF_MODEL_ID": "m", "MAX_TOTAL_TOKENS": "100", "MAX_INPUT_TOKENS": "80"})


def ask(**document: object) -> Ask:
    return read_ask(json.dumps(document).encode())


def test_a_body_is_read_by_its_key() -> None:
    found = ask(inputs="hi", parameters={"max_new_tokens": 5, "details": True}, stream=True)
    assert (found.schema, found.prompt, found.output_tokens, found.stream, found.details) == (
        "inputs",
        "hi",
        5,
        True,
        True,
    )
    assert ask(messages=[{"role": "user", "content": "hi"}], max_tokens=7).output_tokens == 7
    assert ask(prompt="hi", max_tokens=7).schema == "prompt"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"[]", "the body is not a JSON object"),
        (b"{}", "missing field `inputs`"),
        (b'{"inputs": 1}', "field `inputs` must be a string"),
        (b'{"inputs": "x", "parameters": 1}', "field `parameters` must be an object"),
        (
            b'{"inputs": "x", "parameters": {"max_new_tokens": 0}}',
            "`max_new_tokens` must be a whole number above 0: 0",
        ),
    ],
)
def test_a_body_of_the_wrong_shape_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_ask(body)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("settings", "input_tokens", "limit", "output_tokens"),
    [(LMI, 10, None, 30), (LMI, 90, None, 10), (LMI, 10, 90, 90), (TGI, 10, None, 90), (TGI, 80, 20, 20)],
)
def test_the_output_is_what_was_asked_or_the_containers_default(
    settings: EngineSettings, input_tokens: int, limit: int | None, output_tokens: int
) -> None:
    found = ask(inputs="x", parameters={"max_new_tokens": limit} if limit else {})
    assert limit_output(found, input_tokens, settings) == output_tokens


@pytest.mark.parametrize(
    ("settings", "input_tokens", "limit", "message"),
    [
        (
            LMI,
            10,
            91,
            "This model's maximum context length is 100 tokens. However, you requested 101 tokens "
            "(10 in the prompt, 91 in the output).",
        ),
        (TGI, 81, 1, "Input validation error: `inputs` must have less than 81 tokens. Given: 81"),
        (
            TGI,
            80,
            21,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 100. "
            "Given: 80 `inputs` tokens and 21 `max_new_tokens`",
        ),
    ],
)
def test_too_long_is_refused_in_the_containers_words(
    settings: EngineSettings, input_tokens: int, limit: int, message: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        limit_output(ask(inputs="x", parameters={"max_new_tokens": limit}), input_tokens, settings)
    assert str(refused.value) == message
