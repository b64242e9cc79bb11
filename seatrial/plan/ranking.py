"""Which of the deployments that satisfy everything is the best, and what is said about those that lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from seatrial.plan.cost import hourly_words
from seatrial.plan.document import Rejected
from seatrial.plan.pareto import known
from seatrial.plan.words import counted
from seatrial.units import MS_PER_S, tenths, usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.plan.candidate import Candidate, Loss, Merit, Offer
    from seatrial.plan.demand import Demand

MOST_REJECTED = 12
Goal = Literal["cost", "cost_per_token", "latency", "throughput"]
Key = tuple[tuple[float, ...], str, int]
_STAGES = ("budget", "price", "copies", "slo", "memory", "degree", "specifications")


def order(candidate: Candidate, merit: Merit, goal: Goal) -> Key:
    """Return what sorts deployments best first: the goal, then what else counts; the name where all is equal."""
    price, highest, alone = merit.usd_per_hour, -merit.highest_tok_s, merit.ms_per_token_alone
    key = {
        "cost": (price, highest, alone),
        "cost_per_token": (merit.usd_per_million_output_tokens, price, highest, alone),
        "latency": (alone, price, highest),
        "throughput": (highest, price, alone),
    }[goal]
    return key, candidate.instance.instance_type, candidate.degree


def why_best(ranked: Sequence[Offer], considered: int, demand: Demand) -> str:
    """Return why the first offer won among those that keep what was asked, with the numbers that decided.

    Args:
        ranked: What was simulated and satisfies everything, best first.
        considered: Deployments that come into question by the closed form.
        demand: What was asked.
    """
    best, gate = ranked[0], ranked[0].at_gate
    price = hourly_words(known(best.merit.usd_per_hour), demand.discount)
    unpriced = f"the highest throughput, {best.merit.highest_tok_s:,.0f} output tokens per second, for want of a price"
    merit = {
        "cost": f"the lowest cost, {price}" if known(best.merit.usd_per_hour) is not None else unpriced,
        "cost_per_token": f"the lowest cost of a token, {usd(best.merit.usd_per_million_output_tokens)} per million "
        f"output tokens ({price})"
        if known(best.merit.usd_per_hour) is not None
        else unpriced,
        "latency": f"the lowest latency of a single request, {tenths(best.merit.ms_per_token_alone)} ms per token",
        "throughput": f"the highest throughput, {best.merit.highest_tok_s:,.0f} output tokens per second with "
        f"up to {counted(best.capacity, 'request')} in flight per copy",
    }[demand.endpoint.objective]
    kept = [
        f"{'.'.join(objective.path)} is {objective.predicted(gate):,.{1 if objective.metric == 'tpot_ms' else 0}f} ms "
        f"of {objective.bound_ms:,.12g}"
        for objective in demand.objectives[:-1]
    ]
    come = "comes" if considered == 1 else "come"
    slowest = f"the slowest request takes {tenths(gate.e2e_latency_ms.highest / MS_PER_S)} s"
    return (
        f"It has {merit}, of {counted(considered, 'deployment')} that {come} into question to keep {demand.kept}: with "
        f"{counted(gate.concurrency, 'request')} in flight per copy, simulated, {', '.join([*kept, slowest])}."
    )


def rejections(ranked: Sequence[Offer], losses: Iterable[Loss], goal: Goal) -> tuple[Rejected, ...]:
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
    return _STAGES.index(loss.stage), loss.gap, loss.instance_type, loss.degree


def _failed(loss: Loss) -> Rejected:
    return Rejected(
        instance_type=loss.instance_type,
        tensor_parallel_degree=loss.degree,
        usd_per_hour=None if loss.usd_per_hour is None else known(loss.usd_per_hour),
        output_tok_s=None if loss.output_tok_s is None else round(loss.output_tok_s, 1),
        because=loss.because,
    )


def _outdone(best: Offer, offer: Offer, goal: Goal) -> Rejected:
    return Rejected(
        instance_type=offer.candidate.instance.instance_type,
        tensor_parallel_degree=offer.candidate.degree,
        usd_per_hour=known(offer.merit.usd_per_hour),
        output_tok_s=round(offer.merit.output_tok_s, 1),
        because=why_outdone(best.merit, offer.merit, goal),
        feasible=True,
    )


def why_outdone(best: Merit, other: Merit, goal: Goal) -> str:
    """Return why a deployment that keeps every objective is not the best."""
    if goal == "latency" and other.ms_per_token_alone > best.ms_per_token_alone:
        slower, faster = _told_apart(other.ms_per_token_alone, best.ms_per_token_alone, decimals=1)
        return f"A single request is predicted to take {slower} ms per token, the chosen one {faster}."
    if goal == "throughput" and other.highest_tok_s < best.highest_tok_s:
        fewer, more = _told_apart(other.highest_tok_s, best.highest_tok_s)
        return f"It is predicted to give {fewer} output tokens per second at most, the chosen one {more}."
    if known(other.usd_per_hour) is None and known(best.usd_per_hour) is not None:
        return "It keeps every objective, but its price is unknown, and a known price is preferred."
    if goal == "cost_per_token" and other.usd_per_million_output_tokens > best.usd_per_million_output_tokens:
        theirs, ours = other.usd_per_million_output_tokens, best.usd_per_million_output_tokens
        return f"It costs {usd(theirs)} per million output tokens at the planned load, the chosen one {usd(ours)}."
    if other.usd_per_hour > best.usd_per_hour:
        dearer = usd(other.usd_per_hour - best.usd_per_hour)
        return (
            f"It keeps every objective and costs {usd(other.usd_per_hour)} per hour, {dearer} more than the chosen one."
        )
    fewer, more = _told_apart(other.highest_tok_s, best.highest_tok_s)
    same = (
        "It costs the same and"
        if known(other.usd_per_hour) is not None
        else "Its price is unknown, as the chosen one's is, and it"
    )
    return f"{same} is predicted to give {fewer} output tokens per second at most, not {more}."


def _told_apart(one: float, other: float, decimals: int = 0) -> tuple[str, str]:
    """Write two numbers with as many decimals as show that they differ, three more at most."""
    for digits in range(decimals, decimals + 4):
        texts = f"{one:,.{digits}f}", f"{other:,.{digits}f}"
        if texts[0] != texts[1]:
            break
    return texts
