"""Whether an answer was cut by its limit on tokens, also where the schema doesn't say why the generation ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_load.payload.answer import FinishReason

if TYPE_CHECKING:
    from seatrial_load.payload.answer import Completion


def was_cut(completion: Completion, max_tokens: int) -> bool | None:
    """Tell whether the limit ended the generation; None when the answer tells neither a reason nor its tokens.

    LMI's async handler leaves the reason of a whole answer null both for the limit and for the end of the text. Then
    the answer was cut if it has as many tokens as were allowed. One whose text happens to end with the last allowed
    token can't be told from a cut one.

    Args:
        completion: The answer.
        max_tokens: The limit that held for it.
    """
    if completion.finish_reason is not None:
        return completion.finish_reason is FinishReason.LENGTH
    count = output_tokens(completion)
    return None if count is None else count >= max_tokens


def output_tokens(completion: Completion) -> int | None:
    """Return the number of generated tokens: the endpoint's own count, else the tokens that it listed."""
    if completion.usage.output_tokens is not None:
        return completion.usage.output_tokens
    return None if completion.tokens is None else len(completion.tokens)
