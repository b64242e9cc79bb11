"""Speculative decoding as a spec asks for it, with what the catalog knows of its method, its draft and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.planner.predict.copy_model import Speculation
from seatrial_base.bounds import DEFAULT_DRAFT_COST
from seatrial_base.catalog.speculation import draft_of, facts_of

if TYPE_CHECKING:
    from seatrial.specs.endpoint import SpeculativeDecodingSpec
    from seatrial_base.catalog.architecture import Architecture


def speculation_of(asked: SpeculativeDecodingSpec | None, architecture: Architecture) -> Speculation | None:
    """Return speculative decoding as the performance model reads it; `None` where the spec asks for none.

    Drafting is computed from the draft's shape where that is known. A draft cost that is neither the spec's default nor
    the catalog's is the user's own, and wins. So does an acceptance rate, which is then `given`.

    Args:
        asked: The spec's.
        architecture: The model.
    """
    if asked is None:
        return None
    plain = Speculation(asked.draft_tokens, asked.acceptance_rate, asked.draft_cost)
    if asked.method is None:
        return plain
    facts = facts_of(asked.method, architecture, asked.model)
    known = asked.acceptance_rate == facts.acceptance_rate
    usual = asked.draft_cost in (DEFAULT_DRAFT_COST, facts.draft_cost)
    return Speculation(
        draft_tokens=asked.draft_tokens,
        acceptance_rate=asked.acceptance_rate,
        draft_cost=facts.draft_cost if usual else asked.draft_cost,
        draft=draft_of(asked.method, architecture, asked.model) if usual else None,
        provenance=facts.provenance if known else "given",
        source=facts.source if known else "",
    )
