"""Which of the deployments that satisfy everything is the best, and what is said about the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from seatrial.documents.plan import Alternative, Rejected
from seatrial.planner.search.candidate import STAGES, known
from seatrial_base.units import MS_PER_S, counted, hourly_words, tenths, usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.planner.search.candidate import Candidate, FeasibleCandidate, RejectedCandidate, Score
    from seatrial.planner.search.demand import Demand


def front(scores: Sequence[Score]) -> list[int]:
    """Return the places of the scores that no other dominates; of equal ones the first."""
    return [
        place
        for place, score in enumerate(scores)
        if not any(beats(other, score, earlier=index < place) for index, other in enumerate(scores) if index != place)
    ]


def beats(other: Score, score: Score, *, earlier: bool) -> bool:
    """Tell whether one is at least as good in everything, and better in something or the earlier of equals."""
    theirs, ours = _coordinates(other), _coordinates(score)
    return all(a <= b for a, b in zip(theirs, ours, strict=True)) and (theirs != ours or earlier)


def _coordinates(score: Score) -> tuple[float, float, float]:
    return score.usd_per_hour, score.ms_per_token_alone, -score.highest_tok_s


def alternatives(ranked: Sequence[FeasibleCandidate]) -> tuple[Alternative, ...]:
    """Return the front of the feasible candidates, by price; the first of them is the chosen one."""
    places = front([feasible.score for feasible in ranked])
    best = sorted(places, key=lambda place: (_coordinates(ranked[place].score), place))
    return tuple(alternative(ranked[place], chosen=place == 0) for place in best)


def alternative(feasible: FeasibleCandidate, *, chosen: bool = False) -> Alternative:
    """Return a deployment as the plan shows it."""
    score = feasible.score
    return Alternative(
        **feasible.size.fields,
        copies_per_instance=feasible.candidate.copies_per_instance,
        usd_per_million_output_tokens=known(score.usd_per_million_output_tokens),
        output_tok_s=round(score.output_tok_s, 1),
        highest_tok_s=round(score.highest_tok_s, 1),
        ms_per_token_alone=round(score.ms_per_token_alone, 2),
        chosen=chosen,
    )


MOST_REJECTED = 12
_CHANCE_STEPS = 20
Goal = Literal["cost", "cost_per_token", "latency", "throughput"]
Key = tuple[tuple[float, ...], str, int]


def ranking_order(candidate: Candidate, score: Score, goal: Goal, chance: float | None = None) -> Key:
    """Return what sorts deployments best first: the goal, then what else counts; the name where all is equal.

    Of deployments at one price the one that is likelier to meet the SLO is the better buy. One whose chance is not
    known yet may be the likeliest.
    """
    price, highest, alone = score.usd_per_hour, -score.highest_tok_s, score.ms_per_token_alone
    key = {
        "cost": (price, -chance_step(chance), highest, alone),
        "cost_per_token": (score.usd_per_million_output_tokens, price, highest, alone),
        "latency": (alone, price, highest),
        "throughput": (highest, price, alone),
    }[goal]
    return key, candidate.instance.instance_type, candidate.degree


def chance_step(chance: float | None) -> float:
    """Return a chance in steps of a twentieth: less makes no difference between two deployments; 1 for none."""
    return 1.0 if chance is None else round(_CHANCE_STEPS * chance) / _CHANCE_STEPS


def why_best(ranked: Sequence[FeasibleCandidate], considered: int, demand: Demand) -> str:
    """Return why the first feasible candidate won among those that keep what was asked, with the numbers that decided.

    Args:
        ranked: What was simulated and satisfies everything, best first.
        considered: Deployments that come into question by the closed form.
        demand: What was asked.
    """
    best, gate = ranked[0], ranked[0].at_gate
    of = f"of {counted(considered, 'candidate')} predicted to {demand.kept}"
    kept = [
        f"{'.'.join(objective.path)} {objective.predicted(gate):,.{1 if objective.metric == 'tpot_ms' else 0}f} ms "
        f"(bound {objective.bound_ms:,.12g} ms)"
        for objective in demand.objectives[:-1]
    ]
    slowest = f"longest request {tenths(gate.e2e_latency_ms.max / MS_PER_S)} s"
    rate = best.load.rate_per_copy
    load = counted(best.load.concurrency_per_copy, "concurrent request") if rate is None else f"{rate:.3g} requests/s"
    return f"{_merit_words(best, of, demand)} Simulated at {load} per copy: {', '.join([*kept, slowest])}."


def _merit_words(best: FeasibleCandidate, of: str, demand: Demand) -> str:
    """Say what a deployment is best at, with the number."""
    score, goal = best.score, demand.endpoint.objective
    price, most = hourly_words(known(score.usd_per_hour), demand.discount), f"{score.highest_tok_s:,.0f} output tok/s"
    if goal in ("cost", "cost_per_token") and known(score.usd_per_hour) is None:
        return f"Price unknown. Highest throughput {of}: {most}."
    return {
        "cost": f"Cheapest {of}: {price}.",
        "cost_per_token": f"Cheapest token {of}: {usd(score.usd_per_million_output_tokens)} per million output tokens "
        f"({price}).",
        "latency": f"Lowest latency of a single request {of}: {tenths(score.ms_per_token_alone)} ms per token.",
        "throughput": f"Highest throughput {of}: {most} at up to {counted(best.capacity, 'concurrent request')} per "
        "copy.",
    }[goal]


def rejections(
    ranked: Sequence[FeasibleCandidate], rejections: Iterable[RejectedCandidate], goal: Goal
) -> tuple[Rejected, ...]:
    """Return the nearest losers, the best of each instance type first, each with one sentence why."""
    best = ranked[0]
    outdone = [_outdone(best, feasible, goal) for feasible in ranked[1:]]
    failed = [_failed(rejection) for rejection in sorted(rejections, key=_nearness)]
    first: list[Rejected] = []
    others: list[Rejected] = []
    seen = {best.candidate.instance.instance_type}
    for rejected in (*outdone, *failed):
        (others if rejected.instance_type in seen else first).append(rejected)
        seen.add(rejected.instance_type)
    return (*first, *others)[:MOST_REJECTED]


def _nearness(rejection: RejectedCandidate) -> tuple[int, float, str, int]:
    return -STAGES.index(rejection.stage), rejection.gap, rejection.instance_type, rejection.degree


def _failed(rejection: RejectedCandidate) -> Rejected:
    return Rejected(
        instance_type=rejection.instance_type,
        tensor_parallel_degree=rejection.degree,
        usd_per_hour=None if rejection.usd_per_hour is None else known(rejection.usd_per_hour),
        output_tok_s=None if rejection.output_tok_s is None else round(rejection.output_tok_s, 1),
        because=rejection.because,
    )


def _outdone(best: FeasibleCandidate, feasible: FeasibleCandidate, goal: Goal) -> Rejected:
    return Rejected(
        instance_type=feasible.candidate.instance.instance_type,
        tensor_parallel_degree=feasible.candidate.degree,
        usd_per_hour=known(feasible.score.usd_per_hour),
        output_tok_s=round(feasible.score.output_tok_s, 1),
        because=_less_likely(best, feasible, goal) or why_outdone(best.score, feasible.score, goal),
        feasible=True,
    )


def _less_likely(best: FeasibleCandidate, other: FeasibleCandidate, goal: Goal) -> str:
    """Return why a deployment at the same price is not the best, where the chance to meet the SLO decides."""
    same_price = known(other.score.usd_per_hour) is not None and other.score.usd_per_hour == best.score.usd_per_hour
    if goal != "cost" or not same_price or chance_step(other.chance) >= chance_step(best.chance):
        return ""
    theirs, ours = (f"{100 * (each.chance or 0.0):.0f} %" for each in (other, best))
    return f"Same price, {theirs} to meet the SLO, against {ours} for the chosen one."


def why_outdone(best: Score, other: Score, goal: Goal) -> str:
    """Return why a deployment that keeps every objective is not the best."""
    if goal == "latency" and other.ms_per_token_alone > best.ms_per_token_alone:
        slower, faster = _told_apart(other.ms_per_token_alone, best.ms_per_token_alone, decimals=1)
        return f"{slower} ms per token for a single request, against {faster} ms for the chosen one."
    if goal == "throughput" and other.highest_tok_s < best.highest_tok_s:
        fewer, more = _told_apart(other.highest_tok_s, best.highest_tok_s)
        return f"At most {fewer} output tok/s, against {more} for the chosen one."
    if known(other.usd_per_hour) is None and known(best.usd_per_hour) is not None:
        return "Meets the SLO, but its price is unknown; a known price ranks first."
    if goal == "cost_per_token" and other.usd_per_million_output_tokens > best.usd_per_million_output_tokens:
        theirs, ours = other.usd_per_million_output_tokens, best.usd_per_million_output_tokens
        return f"{usd(theirs)} per million output tokens at the planned load, against {usd(ours)} for the chosen one."
    if other.usd_per_hour > best.usd_per_hour:
        dearer = usd(other.usd_per_hour - best.usd_per_hour)
        return f"Meets the SLO at {usd(other.usd_per_hour)}/h, {dearer}/h above the chosen one."
    fewer, more = _told_apart(other.highest_tok_s, best.highest_tok_s)
    same = "Same price" if known(other.usd_per_hour) is not None else "Price unknown"
    return f"{same}, at most {fewer} output tok/s against {more} for the chosen one."


def _told_apart(one: float, other: float, decimals: int = 0) -> tuple[str, str]:
    """Write two numbers with as many decimals as show that they differ, three more at most."""
    for digits in range(decimals, decimals + 4):
        texts = f"{one:,.{digits}f}", f"{other:,.{digits}f}"
        if texts[0] != texts[1]:
            break
    return texts
