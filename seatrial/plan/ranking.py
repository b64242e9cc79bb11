"""Which of the deployments that satisfy everything is the best, and what is said about those that lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from seatrial.plan.document import Rejected
from seatrial.plan.words import counted
from seatrial.units import usd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.plan.candidate import Loss, Offer

MOST_REJECTED = 12
_Goal = Literal["cost", "latency", "throughput"]
_Key = tuple[float, ...]


def best_first(offers: Iterable[Offer], goal: _Goal) -> list[Offer]:
    """Sort offers by what the spec calls best; an unknown price comes after every known one among equals."""

    def key(offer: Offer) -> tuple[_Key, str, int]:
        return _key(offer, goal), offer.candidate.instance.instance_type, offer.candidate.degree

    return sorted(offers, key=key)


def _key(offer: Offer, goal: _Goal) -> _Key:
    price = float("inf") if offer.usd_per_hour is None else offer.usd_per_hour
    if goal == "latency":
        return offer.alone.ms_per_token, price, -offer.load.output_tok_s
    if goal == "throughput":
        return -offer.highest_tok_s, price, offer.alone.ms_per_token
    return price, -offer.load.output_tok_s, offer.alone.ms_per_token


def why_best(ranked: list[Offer], goal: _Goal, kept: str) -> str:
    """Return why the first offer won among those that keep what is named, with the numbers that decided."""
    best, point = ranked[0], ranked[0].load.point
    merit = {
        "cost": f"the lowest cost, {best.price}",
        "latency": f"the lowest latency of a single request, {best.alone.ms_per_token:.1f} ms per token",
        "throughput": f"the highest throughput, {best.highest_tok_s:,.0f} output tokens per second",
    }[goal]
    return (
        f"It has {merit}, of {counted(len(ranked), 'deployment')} predicted to keep {kept}: at "
        f"{counted(point.concurrency, 'request')} in flight per copy mean TTFT is {point.ttft_ms:,.0f} ms, mean TPOT "
        f"{point.tpot_ms:.1f} ms and mean end-to-end latency {point.e2e_latency_ms / 1000:.1f} s (means are compared "
        f"with the bounds at percentiles)."
    )


def rejections(ranked: list[Offer], losses: Iterable[Loss], goal: _Goal) -> tuple[Rejected, ...]:
    """Return the nearest losers, the best of each instance type first, each with one sentence why."""
    best = ranked[0]
    offered = [_outdone(best, offer, goal) for offer in ranked[1:]]
    failed = [_failed(loss) for loss in sorted(losses, key=_nearness)]
    first: list[Rejected] = []
    others: list[Rejected] = []
    seen = {best.candidate.instance.instance_type}
    for rejected in (*offered, *failed):
        (others if rejected.instance_type in seen else first).append(rejected)
        seen.add(rejected.instance_type)
    return (*first, *others)[:MOST_REJECTED]


def _nearness(loss: Loss) -> tuple[int, float, str, int]:
    order = ("budget", "price", "copies", "slo", "memory", "degree", "specifications")
    return order.index(loss.stage), loss.gap, loss.instance_type, loss.degree


def _failed(loss: Loss) -> Rejected:
    return Rejected(
        instance_type=loss.instance_type,
        tensor_parallel_degree=loss.degree,
        usd_per_hour=_rounded(loss.usd_per_hour, 4),
        output_tok_s=_rounded(loss.output_tok_s, 1),
        because=loss.because,
    )


def _outdone(best: Offer, offer: Offer, goal: _Goal) -> Rejected:
    return Rejected(
        instance_type=offer.candidate.instance.instance_type,
        tensor_parallel_degree=offer.candidate.degree,
        usd_per_hour=_rounded(offer.usd_per_hour, 4),
        output_tok_s=_rounded(offer.load.output_tok_s, 1),
        because=_why_outdone(best, offer, goal),
    )


def _why_outdone(best: Offer, offer: Offer, goal: _Goal) -> str:
    if goal == "latency" and offer.alone.ms_per_token > best.alone.ms_per_token:
        theirs, ours = offer.alone.ms_per_token, best.alone.ms_per_token
        return f"A single request is predicted to take {theirs:.1f} ms per token, the chosen one {ours:.1f}."
    if goal == "throughput" and offer.highest_tok_s < best.highest_tok_s:
        theirs, ours = offer.highest_tok_s, best.highest_tok_s
        return f"It is predicted to give {theirs:,.0f} output tokens per second at most, the chosen one {ours:,.0f}."
    if offer.usd_per_hour is None or best.usd_per_hour is None:
        return "It keeps every objective, but its price is unknown, and a known price is preferred."
    if offer.usd_per_hour > best.usd_per_hour:
        more = usd(offer.usd_per_hour - best.usd_per_hour)
        return f"It keeps every objective and costs {offer.price}, {more} more than the chosen one."
    theirs, ours = offer.load.output_tok_s, best.load.output_tok_s
    return f"It costs the same and is predicted to give {theirs:,.0f} output tokens per second, not {ours:,.0f}."


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
