"""The recipes of one model beside each other: what each is predicted to do, what it costs and what it gives up.

Each row is planned as its own spec would be. A recipe that needs weights or a draft that the spec does not name is
predicted as if they were there; its row says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from seatrial.documents.comparison import PredictedRecipe, RecipeRow
from seatrial.planner.cost import cost_of
from seatrial.planner.engine import choose_engine
from seatrial.planner.inputs import allowed_instances
from seatrial.planner.nearest_recipe import refuse_recipe
from seatrial.planner.search.candidate_band import band_for
from seatrial.planner.search.no_deployment import no_deployment
from seatrial.planner.search.pipeline import search_for
from seatrial.specs.architecture import read_architecture
from seatrial.specs.load import with_recipe
from seatrial.specs.optimization import SPECULATIONS, WEIGHTS
from seatrial.specs.recipe import parse_recipe, recipe_name
from seatrial_base.catalog import optimizations
from seatrial_base.catalog.models import MODELS
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.documents.plan import Cost
    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.candidate import FeasibleCandidate
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.optimization import OptimizationSpec, Recipe
    from seatrial_base.catalog.architecture import Architecture

_MOST_COMBINED = 3
_DRAFT_IS_SMALLER = 4  # times: a draft of a larger share of the model's size gains nothing


@dataclass(frozen=True, slots=True)
class _Choice:
    """One optimization of a kind, with what the spec would have to name for it."""

    entry: OptimizationSpec
    needs: str = ""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A recipe with the best deployment of it."""

    resolved: Resolved
    best: FeasibleCandidate


def recipe_rows(loaded: LoadedSpec, *, every: bool = False) -> tuple[RecipeRow, ...]:
    """Return the recipes of a model, the plain one among them: those that run by the spec's objective, then the others.

    Args:
        loaded: What is asked for; its own recipe is among the rows.
        every: Also three optimizations together; without, two at most.

    Raises:
        PlanError: When the model can't be read.
    """
    choices = _choices(loaded, read_architecture(loaded))
    recipes = {recipe_name(()): (), **{recipe_name(each): each for each in [loaded.endpoint.optimization]}}
    needs: dict[str, tuple[str, ...]] = {}
    for parts in _combinations(choices, _MOST_COMBINED if every else _MOST_COMBINED - 1):
        combined = _built_at_start(parts)
        recipe = tuple(choice.entry for choice in combined)
        recipes.setdefault(recipe_name(recipe), recipe)
        needs[recipe_name(recipe)] = tuple(choice.needs for choice in combined if choice.needs)
    planner = _Planner(loaded, {})
    plain = planner.planned(())
    rows = [_row(planner, recipe, needs.get(name, ()), plain) for name, recipe in recipes.items()]
    return tuple(row for _, row in sorted(rows, key=lambda each: each[0]))


def _row(
    planner: _Planner, recipe: Recipe, needs: tuple[str, ...], plain: _Planned | Finding
) -> tuple[_Place, RecipeRow]:
    found = planner.planned(recipe)
    name = recipe_name(recipe)
    refused = found if isinstance(found, Finding) else None
    row = RecipeRow(
        recipe=name,
        names=tuple(sorted(_short(entry) for entry in recipe)),
        rule=refused.rule if refused else "",
        because=refused.message if refused else "",
        needs=needs,
        predicted=None if isinstance(found, Finding) else _predicted(found, plain),
        gives_up=tuple(sentence for entry in recipe for sentence in gives_up(entry.name)),
    )
    return _place(found, name), row


_Place = tuple[int, tuple[float, ...], str]


def _place(found: _Planned | Finding, name: str) -> _Place:
    """Return what sorts a row: those that run first, by the spec's objective, then by the price of a token."""
    if isinstance(found, Finding):
        return 1, (), name
    score = found.best.score
    goal = {
        "cost": score.usd_per_hour,
        "cost_per_token": score.usd_per_million_output_tokens,
        "latency": score.ms_per_token_alone,
        "throughput": -score.output_tok_s,
    }[found.resolved.demand.endpoint.objective]
    return 0, (goal, score.usd_per_million_output_tokens, -score.output_tok_s), name


def _short(entry: OptimizationSpec) -> str:
    return f"compile={entry.compile.target}" if entry.compile is not None else entry.name


def gives_up(name: str) -> tuple[str, ...]:
    """Return what an optimization gives up: quality, start of a container, what else; a sentence each."""
    row = optimizations.LOSSES[name]
    return tuple(f"{name}: {part}" for part in (row.features, row.startup, f"Quality: {row.quality}") if part)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans recipes of one spec; those that the planner can't tell apart are searched once."""

    loaded: LoadedSpec
    seen: dict[str, _Planned | Finding]

    def planned(self, recipe: Recipe) -> _Planned | Finding:
        """Return the best deployment of a recipe, or the first problem that refuses it."""
        try:
            other = with_recipe(self.loaded, recipe)
            refuse_recipe(other, choose_engine(other), allowed_instances(other)[0])
        except (SpecError, PlanError) as error:
            return error.problems[0]
        key = _alike(other)
        if key not in self.seen:
            self.seen[key] = _search(other)
        return self.seen[key]


def _alike(loaded: LoadedSpec) -> str:
    """Return what the planner reads of a recipe: prefix caching as such changes no prediction, its hit rate does."""
    recipe = tuple(entry for entry in loaded.endpoint.optimization if entry.name != "prefix_cache")
    return f"{recipe_name(recipe)} {loaded.endpoint.workload.prefix_hit_rate}"


def _search(loaded: LoadedSpec) -> _Planned | Finding:
    try:
        resolved, found = search_for(loaded, winner_only=True)
        if not found.ranked:
            return no_deployment(loaded, resolved.demand, found.rejections).problems[0]
    except PlanError as error:
        return error.problems[0]
    return _Planned(resolved, found.ranked[0])


def _predicted(planned: _Planned, plain: _Planned | Finding) -> PredictedRecipe:
    best, demand = planned.best, planned.resolved.demand
    cost = _cost(planned)
    base = None if isinstance(plain, Finding) else plain
    base_price = None if base is None else _cost(base).usd_per_million_output_tokens
    price = cost.usd_per_million_output_tokens
    band = band_for(demand, planned.resolved.choice.version.value, best.candidate)
    gate = best.at_gate
    return PredictedRecipe(
        **best.size.fields | {"usd_per_hour": cost.usd_per_hour},
        output_tok_s=round(best.score.output_tok_s, 1),
        ttft_ms=round(gate.ttft_ms.mean, 2),
        tpot_ms=round(gate.tpot_ms.mean, 2),
        weights_bytes=best.candidate.memory.weights_bytes,
        kv_room_bytes=best.candidate.memory.kv_room_bytes,
        usd_per_million_output_tokens=price,
        blended_usd_per_million_tokens=cost.blended_usd_per_million_tokens,
        times_throughput=None if base is None else round(best.score.output_tok_s / base.best.score.output_tok_s, 3),
        times_price=None if price is None or not base_price else round(price / base_price, 3),
        throughput_band=band.throughput,
        latency_band=band.latency,
        band_because=band.because,
    )


def _cost(planned: _Planned) -> Cost:
    best = planned.best
    return cost_of(
        best.candidate.instance,
        instance_count=best.instance_count,
        copies_per_instance=best.candidate.copies_per_instance,
        output_tok_s=best.score.output_tok_s,
        discount=planned.resolved.demand.discount,
    )


def _combinations(choices: tuple[tuple[_Choice, ...], ...], most: int) -> Iterator[tuple[_Choice, ...]]:
    """Yield every choice across kinds of at most so many optimizations, small ones first."""
    every = [tuple(one for one in each if one is not None) for each in product(*((None, *kind) for kind in choices))]
    yield from sorted((each for each in every if 1 <= len(each) <= most), key=len)


def _built_at_start(combined: tuple[_Choice, ...]) -> tuple[_Choice, ...]:
    """Return a combination in which TensorRT-LLM quantizes the weights itself, where no checkpoint is named."""
    if not any(choice.entry.compile is not None for choice in combined):
        return combined
    return tuple(
        _Choice(parse_recipe(each.entry.name)[0]) if each.needs and each.entry.name in WEIGHTS else each
        for each in combined
    )


def _choices(loaded: LoadedSpec, architecture: Architecture) -> tuple[tuple[_Choice, ...], ...]:
    """Return what there is of each kind, the spec's own settings first."""
    own = {entry.name: entry for entry in loaded.endpoint.optimization}
    known: dict[str, _Choice] = {name: _Choice(entry) for name, entry in own.items()}
    weights = tuple(known.get(name) or _weights(loaded, name) for name in WEIGHTS if name != "mxfp4" or name in known)
    drafts = tuple(found for name in SPECULATIONS if (found := known.get(name) or _draft(loaded, architecture, name)))
    cache = known.get("prefix_cache") or _prefix_cache(loaded)
    kv_cache = known.get("kv_fp8") or _Choice(parse_recipe("kv_fp8")[0])
    return weights, drafts, (kv_cache,), (cache,), (known.get("compile") or _Choice(parse_recipe("compile=trtllm")[0]),)


def _weights(loaded: LoadedSpec, name: str) -> _Choice:
    model, found = loaded.endpoint.model, parse_recipe(name)[0]
    if name == "fp8":
        return _Choice(found)
    place = model.hub_id or (model.s3_uri or "weights").removesuffix("/").removesuffix(".tar.gz")
    suffix = "w8a8" if name == "smoothquant" else name
    return _Choice(parse_recipe(f"{name}={place}-{suffix}")[0], f"{name}: a checkpoint or an optimization job")


def _prefix_cache(loaded: LoadedSpec) -> _Choice:
    predicted = loaded.endpoint.workload.prefix_hit_rate > 0
    return _Choice(
        parse_recipe("prefix_cache")[0], "" if predicted else "prefix_cache: a hit_rate, to predict its gain"
    )


def _draft(loaded: LoadedSpec, architecture: Architecture, name: str) -> _Choice | None:
    """Return speculation with a stand-in for its draft; `None` where no draft model is known."""
    if name == "ngram":
        return _Choice(parse_recipe(name)[0])
    if name == "eagle3":
        place = loaded.endpoint.model.hub_id or "org/model"
        return _Choice(parse_recipe(f"{name}={place}-eagle3")[0], "eagle3: a draft head, or an optimization job")
    drafts = _smaller(architecture, MODELS.rows)
    return (
        _Choice(parse_recipe(f"{name}={drafts[0]}")[0], f"speculative: a draft, {drafts[0]} here") if drafts else None
    )


def _smaller(architecture: Architecture, known: Iterable[Architecture]) -> list[str]:
    """Return the models of a quarter of the active parameters at most with the same vocabulary, the smallest first."""
    found = [
        (each.params_total, each.id)
        for each in known
        if each.vocab == architecture.vocab and each.params_total * _DRAFT_IS_SMALLER <= architecture.params_active
    ]
    return [name for _, name in sorted(found)]
