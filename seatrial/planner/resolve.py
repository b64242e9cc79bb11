"""Resolves what a spec asks for: model, engine, instance types, recipe, demand; and searches for it.

A recipe that can't be served is refused with the nearest one that can. The search also tries the limits that are worth
trying, and leaves out the objectives that may be missed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision
from seatrial.planner.calibration import read_calibrated
from seatrial.planner.decisions.batching import choose_batched_tokens, choose_max_model_len
from seatrial.planner.decisions.plan_warnings import access_warnings
from seatrial.planner.engine import allowed_instances, arrivals_of, check_model_fields, choose_engine
from seatrial.planner.predict.copy_model import speculation_of
from seatrial.planner.predict.memory import weights_bytes, with_options
from seatrial.planner.recipe_limits import (
    RecipeEngine,
    RecipeRefusal,
    accelerator_refusals,
    build_refusal,
    compiled_refusals,
    engine_refusals,
    weights_refusals,
)
from seatrial.planner.search.best_first import Search
from seatrial.planner.search.candidate import RejectedCandidate, known
from seatrial.planner.search.capacity import trial_protocol
from seatrial.planner.search.demand import Demand, read_objectives
from seatrial.planner.search.evaluate import by_headroom
from seatrial.planner.search.fitting import candidates
from seatrial.planner.search.no_deployment import no_deployment
from seatrial.specs.architecture import read_architecture
from seatrial.specs.load import with_recipe
from seatrial.specs.optimization import SPECULATIONS, WEIGHTS
from seatrial.specs.recipe import parse_recipe, recipe_name
from seatrial_base.catalog.engine_limits import loader_of
from seatrial_base.catalog.engine_versions import read_version
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.units import hourly_words, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.planner.engine import EngineChoice
    from seatrial.planner.search.best_first import SearchResult
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.optimization import OptimizationSpec, Recipe
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding

_NEEDS_NOTHING = {WEIGHTS: "fp8", SPECULATIONS: "ngram"}  # of each kind, what needs neither weights nor a draft
_MORE_PROMPT_TOKENS = (2, 4)  # times the engine's default
_BEST_TRIED = 2
_WORTHWHILE = 0.03  # an improvement below it is within what simulations differ by


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a spec and its environment ask for, resolved before anything is searched.

    Attributes:
        max_model_len: The longest request that a deployment must hold, in tokens.
        batched_tokens: Prompt tokens of one iteration.
    """

    demand: Demand
    choice: EngineChoice
    allowed: tuple[Instance, ...]
    max_model_len: Decision[int]
    batched_tokens: Decision[int]
    warnings: tuple[str, ...]


def resolve(loaded: LoadedSpec) -> Resolved:
    """Resolve the requirements.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown, or the recipe can't be served.
    """
    architecture = read_architecture(loaded)
    check_model_fields(loaded, architecture)
    choice = choose_engine(loaded)
    allowed, unknown = allowed_instances(loaded)
    refuse_recipe(loaded, choice, allowed)
    endpoint = loaded.endpoint
    overrides = endpoint.serving.overrides
    calibrated, misfit = read_calibrated(loaded, choice)
    max_model_len = choose_max_model_len(endpoint, loaded.lengths, architecture, compiled=choice.facts.compiled_shapes)
    batched_tokens = choose_batched_tokens(endpoint, loaded.lengths, choice.facts, max_model_len.value)
    demand = Demand(
        endpoint=endpoint,
        rails=loaded.rails,
        architecture=architecture,
        engine=with_options(choice.facts, overrides.extra),
        engine_version=choice.version.value,
        max_model_len=max_model_len.value,
        batched_tokens=batched_tokens.value,
        objectives=read_objectives(endpoint),
        protocol=trial_protocol(endpoint.trial),
        lengths=loaded.lengths,
        speculation=speculation_of(overrides.speculative_decoding, architecture),
        calibrated=calibrated,
        recipe_engine=recipe_engine(choice),
        loads=loader_of(choice.option.name, read_version(choice.option.engine, choice.version.value)),
        arrivals=arrivals_of(loaded),
        purchase=loaded.environment.purchase,
    )
    return Resolved(demand, choice, allowed, max_model_len, batched_tokens, (*unknown, *misfit))


def unplannable(loaded: LoadedSpec) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return why no plan can be made whatever the load, the SLO and the budget are, and what a plan would warn of.

    It resolves and fits as a plan does, without a search, so that a plan refuses what this passes for load, SLO, price
    or budget alone. Of the warnings, those are returned that rest on a rule.
    """
    try:
        resolved = resolve(loaded)
        judged = [each for instance in resolved.allowed for each in candidates(resolved.demand, instance)]
    except PlanError as error:
        return tuple(error.problems), ()
    rejected = [each for each in judged if isinstance(each, RejectedCandidate)]
    warnings = [*access_warnings(loaded), *(each for each in resolved.choice.warnings if each.startswith("SEA"))]
    if len(rejected) == len(judged):
        return tuple(no_deployment(loaded, resolved.demand, rejected).problems), tuple(warnings)
    fitting = [each for each in judged if not isinstance(each, RejectedCandidate)]
    cautions = [resolved.demand.cautions(each.instance) for each in fitting]
    # What holds for one type alone is no warning of the spec: the plan may choose another.
    warnings += cautions[0] if all(each == cautions[0] for each in cautions) else ()
    return (), tuple(warnings)


def recipe_engine(choice: EngineChoice) -> RecipeEngine:
    """Return the engine that a recipe is held against."""
    version = read_version(choice.option.engine, choice.version.value)
    return RecipeEngine(choice.option.name, choice.option.title, version)


def refuse_recipe(loaded: LoadedSpec, choice: EngineChoice, allowed: Sequence[Instance]) -> None:
    """Refuse a recipe that the engine, or every allowed instance type, can't run; each with the nearest that runs.

    Raises:
        PlanError: SEA230 and SEA232 for weights that are others by their config.json, SEA233 for the engine, SEA234 for
            its version, SEA235 for the accelerators, SEA236 for what excludes each other, SEA237 for an optimization
            job, SEA239 for a build that takes too long.
    """
    if not loaded.endpoint.optimization:
        return
    refusals = recipe_refusals(loaded, choice, allowed)
    if refusals:
        hint = f"the nearest recipe that runs: {recipe_name(nearest_recipe(loaded))}"
        raise PlanError(
            [
                loaded.problem(("optimization", refusal.index), refusal.rule, refusal.message, hint)
                for refusal in refusals
            ]
        )


def recipe_refusals(loaded: LoadedSpec, choice: EngineChoice, allowed: Sequence[Instance]) -> tuple[RecipeRefusal, ...]:
    """Return what the engine can't do of a recipe; when it can do all, why no allowed instance type can."""
    engine, recipe = recipe_engine(choice), loaded.endpoint.optimization
    refusals = engine_refusals(loaded.endpoint, engine)
    if not refusals:
        architecture = read_architecture(loaded)
        refusals = weights_refusals(loaded.endpoint, architecture)
        refusals = refusals or compiled_refusals(loaded.endpoint, architecture, engine)
        refusals = refusals or build_refusal(recipe, weights_bytes(architecture, None))
    refused = [accelerator_refusals(recipe, engine, instance) for instance in allowed]
    if refusals or not all(refused):
        return refusals
    return tuple(dict.fromkeys(refusal for each in refused for refusal in each))


def nearest_recipe(loaded: LoadedSpec) -> Recipe:
    """Return the recipe that runs with the fewest changes to that of the spec; the empty one at last.

    A quantization is replaced by `fp8` and speculation by `ngram`, which need nothing beside, before either is dropped.
    """
    return next((recipe for recipe in _variants(loaded.endpoint.optimization) if runs(loaded, recipe)), ())


def runs(loaded: LoadedSpec, recipe: Recipe) -> bool:
    """Tell whether a spec could be served with a recipe by some allowed instance type, its size aside."""
    try:
        other = with_recipe(loaded, recipe)
        return not recipe_refusals(other, choose_engine(other), allowed_instances(other)[0])
    except (SpecError, PlanError):
        return False


def _variants(recipe: Recipe) -> Iterator[Recipe]:
    """Yield what a recipe becomes by replacing and dropping optimizations, the fewest changes first."""
    ways: list[tuple[OptimizationSpec | None, ...]] = []
    for entry in recipe:
        simple = next((parse_recipe(name)[0] for kind, name in _NEEDS_NOTHING.items() if entry.name in kind), None)
        ways.append((entry, None) if simple in (None, entry) else (entry, simple, None))

    def distance(choice: tuple[int, ...]) -> tuple[int, int]:
        dropped = sum(way[index] is None for way, index in zip(ways, choice, strict=True))
        return sum(index > 0 for index in choice), dropped

    tried = {recipe_name(recipe)}
    for choice in sorted(product(*(range(len(way)) for way in ways)), key=distance):
        chosen = [way[index] for way, index in zip(ways, choice, strict=True)]
        variant = tuple(entry for entry in chosen if entry is not None)
        if recipe_name(variant) not in tried:
            tried.add(recipe_name(variant))
            yield variant


def search_for(
    loaded: LoadedSpec,
    *,
    accept_slo_miss: bool = False,
    allow_unknown_price: bool = False,
    winner_only: bool = False,
) -> tuple[Resolved, SearchResult]:
    """Read a spec and search; a miss that is accepted is among the warnings.

    Args:
        winner_only: Rank the best deployment alone.

    Raises:
        PlanError: When the spec can't be read into a demand.
    """
    resolved = resolve(loaded)
    demand = replace(resolved.demand, unknown_price_accepted=allow_unknown_price)
    resolved, result = _searched(replace(resolved, demand=demand), winner_only=winner_only)
    if result.ranked or not accept_slo_miss:
        return resolved, result
    missed = no_deployment(loaded, resolved.demand, result.rejections).problems
    accepted = tuple(f"{problem.rule}, accepted: {problem.message}" for problem in missed)
    # The last objective is the request timeout. It stays: what it cuts off is no answer.
    demand = replace(resolved.demand, objectives=resolved.demand.objectives[-1:], slo_miss_accepted=True)
    accepting = replace(resolved, demand=demand, warnings=(*resolved.warnings, *accepted))
    return _searched(accepting, winner_only=winner_only)


def _searched(resolved: Resolved, *, winner_only: bool = False) -> tuple[Resolved, SearchResult]:
    """Search, also with more prompt tokens an iteration where a prefill stops decoding: it then admits more prompts.

    An engine that mixes chunks of prompts into its decode steps gains nothing from more of them.
    """
    result = Search(resolved.demand).best(resolved.allowed, winner_only=winner_only)
    fixed = resolved.demand.overrides.max_num_batched_tokens is not None
    # With chunks a prefill does not stop decoding, so that more prompt tokens gain nothing.
    if fixed or resolved.demand.engine.scheduler == "chunked":
        return resolved, result
    # What was resolved with as many prompt tokens as improve the best deployments; itself when none do.
    # Other limits are worth trying on the instance types of the best deployments alone: each try is a whole search.
    best_types = tuple(dict.fromkeys(feasible.candidate.instance for feasible in result.ranked[:_BEST_TRIED]))
    usual, near = resolved.batched_tokens.value, best_types or resolved.allowed
    best = resolved
    for factor in _MORE_PROMPT_TOKENS:
        demand = replace(resolved.demand, batched_tokens=factor * usual)
        other = Search(demand).best(near)
        because = _why_wider(demand, result, other)
        if because:
            value = demand.batched_tokens
            decision = Decision[int](value=value, because=f"{value:,} instead of {usual:,}: {because}.")
            best, result = replace(resolved, demand=demand, batched_tokens=decision), other
    if best is resolved:
        return resolved, result
    return best, Search(best.demand).best(best.allowed, winner_only=winner_only)


def _why_wider(demand: Demand, usual_result: SearchResult, wider: SearchResult) -> str:
    """Return why a search with more prompt tokens came to something better; empty when it didn't."""
    if not wider.ranked:
        return ""
    if not usual_result.ranked:
        return "with fewer, no deployment meets the requirements in simulation"
    best = usual_result.ranked[0], wider.ranked[0]
    lacking, lacks = (by_headroom(demand, each.candidate, each.load) for each in best)
    if lacking != lacks:
        return "more likely to carry the rate" if lacks < lacking else ""
    before, after = (each.score for each in best)
    if demand.endpoint.objective.goal == "throughput":
        gained = after.highest_tok_s > before.highest_tok_s * (1 + _WORTHWHILE)
        return f"{after.highest_tok_s:,.0f} output tokens per second, not {before.highest_tok_s:,.0f}" if gained else ""
    if demand.endpoint.objective.goal == "cost_per_token":
        price, usual = after.usd_per_million_output_tokens, before.usd_per_million_output_tokens
        gained = price < usual * (1 - _WORTHWHILE)
        return f"{usd(price)} per million output tokens, not {usd(usual)}" if gained else ""
    slower = demand.endpoint.objective.goal == "latency" and after.ms_per_token_alone > before.ms_per_token_alone
    cheaper = not slower and after.usd_per_hour < before.usd_per_hour
    ours, theirs = (hourly_words(known(each.usd_per_hour), demand.discount) for each in (after, before))
    return f"{ours}, not {theirs}" if cheaper else ""
