"""What no speculative decoding can be: as long as the answer, or slower than none; by hand and by a recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.specs.optimization import MOST_DRAFT_TOKENS, DraftModel
from seatrial_base.bounds import DEFAULT_DRAFT_COST
from seatrial_base.catalog import speculation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.specs.optimization import NgramDrafts, OptimizationSpec
    from seatrial.specs.yaml_source import Document, FieldPath
    from seatrial_base.catalog.speculation import Method
    from seatrial_base.findings import Finding

DRAFT_METHODS: dict[str, Method] = {"speculative": "draft_model", "eagle3": "eagle3", "ngram": "ngram"}
"""The catalog's method of each optimization that drafts tokens."""
_SPECULATION = ("serving", "overrides", "speculative_decoding")


@dataclass(frozen=True, slots=True)
class _Drafting:
    """Drafting, wherever a spec says it.

    Attributes:
        path: Where it stands.
        draft_tokens: Tokens drafted per step.
        acceptance_rate: Probability that one is accepted.
        draft_cost: Drafting one token, in steps of the model.
        without: What to leave out for no drafting.
    """

    path: FieldPath
    draft_tokens: int
    acceptance_rate: float | None
    draft_cost: float
    without: str


def speculation_problems(document: Document) -> Iterator[Finding]:
    """Yield a draft as long as the whole output, and a draft that costs more steps than it is expected to save."""
    drafted = _number(document, "draft_tokens")
    if not isinstance(drafted, int) or not 1 <= drafted <= MOST_DRAFT_TOKENS:
        return
    accepted, cost = _number(document, "acceptance_rate"), _number(document, "draft_cost")
    accepted = accepted if accepted is not None and 0 < accepted < 1 else None
    cost = DEFAULT_DRAFT_COST if cost is None else cost
    rate = accepted if 0 <= cost < 1 else None
    yield from _problems(document, _Drafting(_SPECULATION, drafted, rate, cost, "speculative_decoding"))


def draft_problems(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    """Yield the same of an optimization that drafts, with what the catalog assumes where it says nothing.

    Args:
        document: The spec.
        path: Where the optimization stands.
        entry: The optimization.
    """
    settings: DraftModel | NgramDrafts = getattr(entry, entry.name)
    draft = settings.draft if isinstance(settings, DraftModel) else None
    named = (document.value("model", field) for field in ("architecture", "hub_id", "jumpstart_id"))
    model = next((name for name in named if isinstance(name, str)), "")
    facts = speculation.assumed(DRAFT_METHODS[entry.name], model, draft)
    drafting = _Drafting(
        path=(*path, entry.name),
        draft_tokens=settings.draft_tokens or facts.draft_tokens,
        acceptance_rate=settings.acceptance_rate or facts.acceptance_rate,
        draft_cost=facts.draft_cost,
        without=entry.name,
    )
    yield from _problems(document, drafting)


def _problems(document: Document, drafting: _Drafting) -> Iterator[Finding]:
    drafted, output = drafting.draft_tokens, document.value("workload", "output_tokens")
    if isinstance(output, int) and not isinstance(output, bool) and 1 <= output <= drafted:
        message = f"draft_tokens {drafted} is not below workload.output_tokens {output}"
        hint = f"draft fewer tokens, or leave {drafting.without} out"
        yield document.problem((*drafting.path, "draft_tokens"), "SEA108", message, hint)
    if drafting.acceptance_rate is None:
        return
    gained, spent = tokens_per_cycle(drafted, drafting.acceptance_rate), 1 + drafted * drafting.draft_cost
    if gained <= spent:
        message = f"speculative decoding would slow the endpoint: {gained:.2f} tokens in the time of {spent:.2f} steps"
        hint = f"draft fewer tokens, use a cheaper or better draft, or leave {drafting.without} out"
        yield document.problem(drafting.path, "SEA116", message, hint)


def tokens_per_cycle(draft_tokens: int, acceptance_rate: float) -> float:
    """Return the tokens expected of one cycle: draft, then one step of the model that accepts or corrects.

    (1 - a^(k+1)) / (1 - a) for k drafted tokens that are accepted with probability a each: Leviathan et al. 2023,
    "Fast Inference from Transformers via Speculative Decoding", equation 1.
    """
    return float((1 - acceptance_rate ** (draft_tokens + 1)) / (1 - acceptance_rate))


def _number(document: Document, name: str) -> float | None:
    value = document.value(*_SPECULATION, name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
