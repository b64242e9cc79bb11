"""Searches with the limits that are worth trying, and without the objectives that may be missed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision
from seatrial.planner.resolve import resolve
from seatrial.planner.search.best_first import Search
from seatrial.planner.search.candidate import known
from seatrial.planner.search.no_deployment import no_deployment
from seatrial_base.units import hourly_words, usd

if TYPE_CHECKING:
    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.best_first import SearchResult
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance


_MORE_PROMPT_TOKENS = (2, 4)  # times the engine's default
_BEST_TRIED = 2
_WORTHWHILE = 0.03  # an improvement below it is within what simulations differ by


def search_for(
    loaded: LoadedSpec,
    *,
    accept_slo_miss: bool = False,
    allow_unknown_price: bool = False,
    winner_only: bool = False,
) -> tuple[Resolved, SearchResult]:
    """Read a spec and search; a miss that is accepted is among the warnings.

    Args:
        loaded: What is asked for.
        accept_slo_miss: As for the plan.
        allow_unknown_price: As for the plan.
        winner_only: Rank the best deployment alone.

    Raises:
        PlanError: When the spec can't be read into a demand.
    """
    resolved = resolve(loaded)
    demand = replace(resolved.demand, unknown_price_accepted=allow_unknown_price)
    resolved, found = _searched(replace(resolved, demand=demand), winner_only=winner_only)
    if found.ranked or not accept_slo_miss:
        return resolved, found
    missed = no_deployment(loaded, resolved.demand, found.rejections).problems
    accepted = tuple(f"{problem.rule}, accepted: {problem.message}" for problem in missed)
    demand = replace(resolved.demand, objectives=resolved.demand.objectives[-1:], slo_miss_accepted=True)
    accepting = replace(resolved, demand=demand, warnings=(*resolved.warnings, *accepted))
    return _searched(accepting, winner_only=winner_only)


def _searched(resolved: Resolved, *, winner_only: bool = False) -> tuple[Resolved, SearchResult]:
    """Search, also with more prompt tokens an iteration where a prefill stops decoding: it then admits more prompts.

    An engine that mixes chunks of prompts into its decode steps gains nothing from more of them.
    """
    found = Search(resolved.demand).best(resolved.allowed, winner_only=winner_only)
    fixed = resolved.demand.overrides.max_num_batched_tokens is not None
    if fixed or resolved.demand.engine.scheduler == "chunked":
        return resolved, found
    best = _widest_worthwhile(resolved, found)
    if best is resolved:
        return resolved, found
    return best, Search(best.demand).best(best.allowed, winner_only=winner_only)


def _widest_worthwhile(resolved: Resolved, found: SearchResult) -> Resolved:
    """Return what was resolved with as many prompt tokens as improve the best deployments; itself when none do."""
    usual, near = resolved.batched_tokens.value, _nearest_types(found) or resolved.allowed
    best = resolved
    for factor in _MORE_PROMPT_TOKENS:
        demand = replace(resolved.demand, batched_tokens=factor * usual)
        other = Search(demand).best(near)
        because = _why_wider(demand, found, other)
        if because:
            value = demand.batched_tokens
            decision = Decision[int](value=value, because=f"{value:,} instead of {usual:,}: {because}.")
            best, found = replace(resolved, demand=demand, batched_tokens=decision), other
    return best


def _nearest_types(found: SearchResult) -> tuple[Instance, ...]:
    """Return the instance types of the best deployments, on which other limits are worth trying."""
    return tuple(dict.fromkeys(feasible.candidate.instance for feasible in found.ranked[:_BEST_TRIED]))


def _why_wider(demand: Demand, found: SearchResult, wider: SearchResult) -> str:
    """Return why a search with more prompt tokens came to something better; empty when it didn't."""
    if not wider.ranked:
        return ""
    if not found.ranked:
        return "with fewer, no deployment meets the requirements in simulation"
    before, after = found.ranked[0].score, wider.ranked[0].score
    if demand.endpoint.objective == "throughput":
        gained = after.highest_tok_s > before.highest_tok_s * (1 + _WORTHWHILE)
        return f"{after.highest_tok_s:,.0f} output tokens per second, not {before.highest_tok_s:,.0f}" if gained else ""
    if demand.endpoint.objective == "cost_per_token":
        price, usual = after.usd_per_million_output_tokens, before.usd_per_million_output_tokens
        gained = price < usual * (1 - _WORTHWHILE)
        return f"{usd(price)} per million output tokens, not {usd(usual)}" if gained else ""
    slower = demand.endpoint.objective == "latency" and after.ms_per_token_alone > before.ms_per_token_alone
    cheaper = not slower and after.usd_per_hour < before.usd_per_hour
    ours, theirs = (hourly_words(known(each.usd_per_hour), demand.discount) for each in (after, before))
    return f"{ours}, not {theirs}" if cheaper else ""
