from __future__ import annotations

import pytest

from seatrial_load.payload.answer import Completion, FinishReason, Token, Usage, was_cut

TWO = (Token("a", None, None, None), Token("b", None, None, None))


@pytest.mark.parametrize(
    ("reason", "count", "tokens", "cut"),
    [
        (FinishReason.LENGTH, 1, None, True),
        (FinishReason.STOP, 2, None, False),
        (FinishReason.STOP_SEQUENCE, 2, TWO, False),
        (None, 2, None, True),
        (None, 1, None, False),
        (None, 0, None, False),
        (None, None, TWO, True),
        (None, None, TWO[:1], False),
        (None, None, None, None),
    ],
)
def test_whether_a_limit_of_two_tokens_cut_the_answer(
    reason: FinishReason | None,
    count: int | None,
    tokens: tuple[Token, ...] | None,
    cut: bool | None,  # noqa: FBT001 (a table)
) -> None:
    completion = Completion(
        text="ab",
        reasoning=None,
        tokens=tokens,
        finish_reason=reason,
        finish_word=None,
        usage=Usage(None, count),
        finished=True,
        failure=None,
    )
    assert was_cut(completion, 2) is cut
