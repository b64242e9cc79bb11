from __future__ import annotations

import pytest

from seatrial_load.prompts.synthetic import reported_prompt_tokens, speaks_of_length

CONTEXT = "This model's maximum context length is 1536 tokens. However, "


@pytest.mark.parametrize(
    "refusal",
    [
        CONTEXT + "you requested 2079 tokens (1779 in the prompt, 300 in the output).",
        CONTEXT + "you requested 2079 tokens (1779 in the messages, 300 in the completion).",
        CONTEXT + "your request has 1779 input tokens. Please reduce the length of the input messages.",
        "'max_tokens' or 'max_completion_tokens' is too large: 300. This model's maximum context length is 1536 tokens "
        "and your request has 1779 input tokens (300 > 1536 - 1779).",
        "You passed 1779 input tokens and requested 300 output tokens. However, the model's context length is only "
        "1536 tokens",
        "The decoder prompt (length 1779) is longer than the maximum model length of 1536.",
        "Input validation error: `inputs` must have less than 1237 tokens. Given: 1779",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1536. Given: 1779 `inputs` tokens and "
        "300 `max_new_tokens`",
        "The input (1779 tokens) is longer than the model's context length (1536 tokens).",
        "Requested token count exceeds the model's maximum context length of 1536 tokens. You requested a total of "
        "2079 tokens: 1779 tokens from the input messages and 300 tokens for the completion.",
        "Prompt length (1779) exceeds maximum input length (1236).",
    ],
)
def test_every_engine_tells_how_long_it_counted_the_prompt(refusal: str) -> None:
    said = f"HTTP 424 ModelError: {refusal}"
    assert reported_prompt_tokens(said) == 1779
    assert speaks_of_length(said)


def test_a_refusal_for_the_length_may_tell_no_count() -> None:
    said = "HTTP 400: This model's maximum context length is 1536 tokens."
    assert reported_prompt_tokens(said) is None
    assert speaks_of_length(said)


@pytest.mark.parametrize(
    "refusal",
    ["Endpoint chat of account 123456789012 not found.", "`top_p` must be at most 1. Given: 2", "out of memory"],
)
def test_another_refusal_says_nothing_of_the_length(refusal: str) -> None:
    assert reported_prompt_tokens(refusal) is None
    assert not speaks_of_length(refusal)
