from __future__ import annotations

import math

import pytest

from seatrial.quality.comparison import rouge_l
from seatrial_load.documents.result import EvaluationAnswer
from seatrial_load.quality.scores import is_exact_match, normalized, scores_of
from tests.quality.conftest import answer, questions


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" Paris\n", "paris"), ("NEW  York", "new york"), ("ﬁn", "fin"), ("Straße", "strasse"), ("a.", "a.")],
)
def test_exact_match_ignores_case_and_white_space(text: str, expected: str) -> None:
    assert normalized(text) == expected
    assert is_exact_match(text, expected)
    assert not is_exact_match(text, f"{expected}!")


def test_the_scores_of_answers() -> None:
    asked = questions(4).prompts
    answers = [answer("0", "answer 0", -1.0, -3.0), answer("1", "x", -2.0), answer("2", "ANSWER 2", -2.0, -2.0)]
    answers.append(answer("3", "y", -2.0))
    exact, log, perplexity = scores_of(asked, answers)
    assert (exact.value, exact.count) == (0.5, 4)
    assert log.value == -2.0
    assert perplexity.value == pytest.approx(math.exp(2))
    assert exact.interval.low is not None
    assert exact.interval.low < 0.5
    assert log.interval.low == log.interval.high == -2.0  # every answer has the same mean


def test_what_no_answer_tells_is_missing() -> None:
    asked = questions(1).prompts
    exact, log, perplexity = scores_of(asked, [EvaluationAnswer(id="0", text="", failure="timeout: late")])
    assert (exact.value, log.value, perplexity.value) == (None, None, None)


def test_rouge_l_knows_every_script() -> None:
    pairs = [("the cat sat", "the cat sat"), ("the cat sat", "the dog sat"), ("猫が座る", "猫が立つ"), ("a", "")]
    assert rouge_l(pairs) == pytest.approx([1.0, 2 / 3, 0.5, 0.0])
