from __future__ import annotations

import math

import pytest

from seatrial_load.payload.json_text import RequestError
from seatrial_load.payload.request import Options, check_options
from seatrial_load.payload.schema import Schema


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (Schema.TGI, Options(max_tokens=0), "request: max_tokens: SEA370: 0 is not above 0"),
        (Schema.TGI, Options(top_k=0), "request: top_k: SEA370: 0 is not above 0"),
        (Schema.TGI, Options(top_p=0.0), "request: top_p: SEA370: 0 is not above 0"),
        (Schema.LMI_ASYNC, Options(top_p=1.1), "request: top_p: SEA370: 1.1 exceeds 1"),
        (Schema.TGI, Options(top_p=1.0), "request: top_p: SEA370: TGI needs top_p below 1; leave it out for 1"),
        (
            Schema.OPENAI_CHAT,
            Options(temperature=-0.1),
            "request: temperature: SEA370: -0.1 is not a number of at least 0",
        ),
        (
            Schema.OPENAI_CHAT,
            Options(temperature=math.nan),
            "request: temperature: SEA370: nan is not a number of at least 0",
        ),
        (
            Schema.OPENAI_CHAT,
            Options(repetition_penalty=math.inf),
            "request: repetition_penalty: SEA370: inf is not above 0",
        ),
        (
            Schema.OPENAI_CHAT,
            Options(stop=("",)),
            "request: stop: SEA370: an empty string would stop every generation",
        ),
        (
            Schema.LMI_ROLLING,
            Options(temperature=0, top_p=0.9, top_k=5),
            "request: top_p: SEA370: has no effect with temperature 0 (greedy)\n"
            "request: top_k: SEA370: has no effect with temperature 0 (greedy)",
        ),
        (Schema.TGI, Options(ignore_eos=True), "request: ignore_eos: SEA370: tgi does not support it"),
    ],
)
def test_what_can_not_be_asked_for_is_told_all_at_once(schema: Schema, options: Options, message: str) -> None:
    with pytest.raises(RequestError) as refused:
        check_options(schema, options)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        (Schema.TGI, Options(max_tokens=1, top_p=0.99, top_k=1, repetition_penalty=0.1, temperature=0.1)),
        (Schema.LMI_ASYNC, Options(top_p=1.0, ignore_eos=True)),
        (Schema.OPENAI_CHAT, Options(temperature=0)),
    ],
)
def test_the_bounds_themselves_can_be_asked_for(schema: Schema, options: Options) -> None:
    check_options(schema, options)


@pytest.mark.parametrize(
    ("options", "samples"),
    [
        (Options(), None),
        (Options(seed=1), None),
        (Options(temperature=0), False),
        (Options(temperature=0.7), True),
        (Options(top_p=0.9), True),
        (Options(top_k=5), True),
    ],
)
def test_whether_tokens_are_drawn(options: Options, samples: bool | None) -> None:  # noqa: FBT001 (a table)
    assert options.samples is samples
