"""When speculative decoding contradicts the workload or itself, looked up in the raw document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.spec.endpoint import DEFAULT_DRAFT_COST, MOST_DRAFT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.errors import Problem
    from seatrial.spec.merge import Document

_SPECULATION = ("serving", "overrides", "speculative_decoding")


def speculation_problems(document: Document) -> Iterator[Problem]:
    """Yield a draft as long as the whole output, and a draft that costs more steps than it is expected to save."""
    drafted = _number(document, "draft_tokens")
    if not isinstance(drafted, int) or not 1 <= drafted <= MOST_DRAFT_TOKENS:
        return
    output = document.value("workload", "output_tokens")
    if isinstance(output, int) and not isinstance(output, bool) and 1 <= output <= drafted:
        path = (*_SPECULATION, "draft_tokens")
        message = f"draft_tokens {drafted} are not below the workload's output_tokens {output}"
        yield document.problem(path, "SEA108", message, "draft fewer tokens, or leave speculative_decoding out")
    yield from _slower(document, drafted)


def _slower(document: Document, drafted: int) -> Iterator[Problem]:
    accepted, cost = _number(document, "acceptance_rate"), _number(document, "draft_cost")
    cost = DEFAULT_DRAFT_COST if cost is None else cost
    if accepted is None or not 0 < accepted < 1 or not 0 <= cost < 1:
        return
    gained, spent = tokens_per_cycle(drafted, accepted), 1 + drafted * cost
    if gained <= spent:
        message = f"speculative decoding would slow the endpoint: {gained:.2f} tokens in the time of {spent:.2f} steps"
        hint = "draft fewer tokens, use a cheaper or better draft, or leave speculative_decoding out"
        yield document.problem(_SPECULATION, "SEA116", message, hint)


def tokens_per_cycle(draft_tokens: int, acceptance_rate: float) -> float:
    """Return the tokens expected of one cycle: draft, then one step of the model that accepts or corrects.

    (1 - a^(k+1)) / (1 - a) for k drafted tokens that are accepted with probability a each: Leviathan et al. 2023,
    "Fast Inference from Transformers via Speculative Decoding", equation 1.
    """
    return float((1 - acceptance_rate ** (draft_tokens + 1)) / (1 - acceptance_rate))


def _number(document: Document, name: str) -> float | None:
    value = document.value(*_SPECULATION, name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
