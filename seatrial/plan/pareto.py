"""The deployments that no other beats in price per hour, latency of a single request and highest throughput at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.plan.document import Alternative

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.plan.candidate import Merit, Offer


def front(merits: Sequence[Merit]) -> list[int]:
    """Return the places of the merits that no other dominates; of equal ones the first."""
    return [
        place
        for place, merit in enumerate(merits)
        if not any(beats(other, merit, earlier=index < place) for index, other in enumerate(merits) if index != place)
    ]


def beats(other: Merit, merit: Merit, *, earlier: bool) -> bool:
    """Tell whether one is at least as good in everything, and better in something or the earlier of equals."""
    theirs, ours = _coordinates(other), _coordinates(merit)
    return all(a <= b for a, b in zip(theirs, ours, strict=True)) and (theirs != ours or earlier)


def _coordinates(merit: Merit) -> tuple[float, float, float]:
    return merit.usd_per_hour, merit.ms_per_token_alone, -merit.highest_tok_s


def alternatives(ranked: Sequence[Offer]) -> tuple[Alternative, ...]:
    """Return the front of simulated offers, by price; the first offer is the chosen one."""
    places = front([offer.merit for offer in ranked])
    best = sorted(places, key=lambda place: (_coordinates(ranked[place].merit), place))
    return tuple(_alternative(ranked[place], chosen=place == 0) for place in best)


def _alternative(offer: Offer, *, chosen: bool) -> Alternative:
    merit = offer.merit
    return Alternative(
        instance_type=offer.candidate.instance.instance_type,
        tensor_parallel_degree=offer.candidate.degree,
        copies_per_instance=offer.candidate.copies_per_instance,
        copy_count=offer.load.copy_count,
        instance_count=offer.instance_count,
        usd_per_hour=known(merit.usd_per_hour),
        usd_per_million_output_tokens=known(merit.usd_per_million_output_tokens),
        output_tok_s=round(merit.output_tok_s, 1),
        highest_tok_s=round(merit.highest_tok_s, 1),
        ms_per_token_alone=round(merit.ms_per_token_alone, 2),
        chosen=chosen,
    )


def known(price: float) -> float | None:
    """Return a price to a hundredth of a cent, `None` for an unknown one."""
    return round(price, 4) if math.isfinite(price) else None
