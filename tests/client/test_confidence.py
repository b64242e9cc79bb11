from __future__ import annotations

import math

import pytest

from seatrial.client import Completion, Token, Usage, confidence


def completion(*log_probabilities: float | None) -> Completion:
    return Completion(
        text="x",
        reasoning=None,
        tokens=tuple(Token("x", None, value, None) for value in log_probabilities) or None,
        finish_reason=None,
        finish_word=None,
        usage=Usage(None, None),
        finished=True,
        failure=None,
    )


def test_a_half_and_an_eighth_are_a_quarter_per_token() -> None:
    sure = confidence(completion(math.log(1 / 2), math.log(1 / 8)))
    assert sure is not None
    assert sure.tokens == 2
    assert sure.log_probability == pytest.approx(math.log(1 / 16))
    assert sure.per_token == pytest.approx(1 / 4)  # √(1/2 × 1/8)
    assert sure.perplexity == pytest.approx(4)
    assert sure.lowest == pytest.approx(1 / 8)


def test_the_length_does_not_lower_it() -> None:
    short, long = confidence(completion(*[-0.1] * 10)), confidence(completion(*[-0.1] * 1000))
    assert short is not None
    assert long is not None
    assert short.per_token == pytest.approx(long.per_token)


@pytest.mark.parametrize("told", [(), (None,), (-0.1, None)])
def test_what_is_not_told_gives_no_number(told: tuple[float | None, ...]) -> None:
    assert confidence(completion(*told)) is None


def test_vllms_word_for_an_unknown_probability_overflows_nothing() -> None:
    sure = confidence(completion(-9999.0))
    assert sure is not None
    assert (sure.per_token, sure.perplexity) == (0.0, math.inf)
