"""Comparisons that plan nothing: instance types and recipes beside each other, and why a type is the plan's.

Instance types as the published articles compare them: predicted, not measured. An instance carries as many copies as
its accelerators take; the load doubles from 1 until a request takes longer than the request timeout. No objective and
no budget counts.

Each recipe is planned as its own spec would be. One that needs weights or a draft that the spec does not name is
predicted as if they were there; its row says what is missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

from seatrial.documents.comparison import (
    Basis,
    DegreeVerdict,
    InstanceComparison,
    PredictedRecipe,
    RecipeRow,
    TypeAtLoad,
)
from seatrial.planner.engine import allowed_instances, choose_engine, similar_types
from seatrial.planner.predict.band import band_of
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.resolve import refuse_recipe, resolve, search_for
from seatrial.planner.search.best_first import Search, ranking_order, why_best, why_outdone
from seatrial.planner.search.candidate import Candidate, FeasibleCandidate, RejectedCandidate, band_for, known
from seatrial.planner.search.capacity import MOST_IN_FLIGHT
from seatrial.planner.search.fitting import candidates
from seatrial.planner.search.no_deployment import no_deployment
from seatrial.planner.search.sizing import blended, cost_of, usd_per_hour, usd_per_million
from seatrial.specs.architecture import read_architecture
from seatrial.specs.load import with_recipe
from seatrial.specs.optimization import SPECULATIONS, WEIGHTS
from seatrial.specs.prices import priced
from seatrial.specs.recipe import parse_recipe, recipe_name
from seatrial_base.catalog import neuron, optimizations
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import MODELS
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.findings import Finding
from seatrial_base.units import MS_PER_S, counted, hourly_words, tenths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.best_first import Key, SearchResult
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.optimization import OptimizationSpec, Recipe
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance

_LAST_TO_FIRST: Final = ("budget", "price", "copies", "slo")
_MOST_COMBINED = 3
_DRAFT_IS_SMALLER = 4  # times: a draft of a larger share of the model's size gains nothing
_Place = tuple[int, tuple[float, ...], str]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A candidate under its highest load."""

    candidate: Candidate
    concurrency: int
    tok_s: float


def compare_instance_types(loaded: LoadedSpec) -> tuple[InstanceComparison, ...]:
    """Compare the allowed instance types, the cheapest token first; an unknown price comes last.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown.
    """
    resolved = resolve(loaded)

    def by_price(row: InstanceComparison) -> tuple[bool, float, float, str]:
        price = row.usd_per_million_output_tokens
        return not row.fits, math.inf if price is None else price, -row.highest_tok_s, row.instance_type

    return tuple(sorted((_compared(resolved.demand, instance) for instance in resolved.allowed), key=by_price))


def _compared(demand: Demand, instance: Instance) -> InstanceComparison:
    judged = list(candidates(demand, instance))
    fitting = [candidate for candidate in judged if isinstance(candidate, Candidate)]
    if not fitting:
        rejections = [rejection for rejection in judged if isinstance(rejection, RejectedCandidate)]
        hourly = usd_per_hour(instance, 1, demand.discount)
        count = counted(instance.accelerator_count, "accelerator")
        because = f"No tensor parallel degree fits both the attention heads and its {count}."
        because = rejections[-1].because if rejections else because
        return InstanceComparison(
            instance_type=instance.instance_type,
            accelerators=neuron.device_count(instance),
            tensor_parallel_degree=rejections[-1].degree if rejections else instance.accelerator_count,
            copies_per_instance=0,
            kv_limited_batch=0,
            ms_per_token_alone=None,
            highest_concurrency=0,
            highest_tok_s=0.0,
            usd_per_hour=None if hourly is None else round(hourly, 4),
            usd_per_million_output_tokens=None,
            blended_usd_per_million_tokens=None,
            fits=False,
            because=f"{because}{instance.unknown_there}",
        )
    estimates = [_estimated(candidate) for candidate in fitting]
    best = max(estimates, key=lambda each: (each.tok_s, -each.candidate.degree))
    others = ", ".join(str(each.candidate.degree) for each in estimates if each is not best)
    why = f"The degree with the highest throughput; {others} fit too." if others else "The only degree that fits."
    candidate, level = best.candidate, best.concurrency
    copies = candidate.copies_per_instance
    # The closed form has means alone: the load is halved until no request of the simulation is late.
    while level and candidate.levels.at(math.ceil(level / copies)).late:
        level //= 2
    tok_s = _instance_tok_s(level, copies, lambda each: candidate.levels.at(each).output_tok_s)
    return _instance_row(demand, _Loaded(candidate, level, tok_s), why)


def _estimated(candidate: Candidate) -> _Loaded:
    """Load an instance in closed form until a mean request takes as long as the timeout."""
    timeout_ms, copies = candidate.levels.timeout_s * MS_PER_S, candidate.copies_per_instance
    level = 1
    while (
        2 * level <= MOST_IN_FLIGHT * copies
        and predict_at(candidate.copy, math.ceil(2 * level / copies)).e2e_latency_ms <= timeout_ms
    ):
        level *= 2
    tok_s = _instance_tok_s(level, copies, lambda each: predict_at(candidate.copy, each).output_tok_s)
    return _Loaded(candidate, level, tok_s)


def _instance_tok_s(concurrency: int, copies: int, tok_s: Callable[[int], float]) -> float:
    """Return the throughput of copies that share some requests evenly."""
    fewer, busier = divmod(concurrency, copies)
    return (busier * tok_s(fewer + 1) if busier else 0.0) + ((copies - busier) * tok_s(fewer) if fewer else 0.0)


def _instance_row(demand: Demand, best: _Loaded, why: str) -> InstanceComparison:
    candidate, instance = best.candidate, best.candidate.instance
    hourly = usd_per_hour(instance, 1, demand.discount)
    per_million = None if hourly is None or not best.tok_s else usd_per_million(hourly, best.tok_s)
    return InstanceComparison(
        instance_type=instance.instance_type,
        accelerators=neuron.device_count(instance),
        tensor_parallel_degree=candidate.degree,
        copies_per_instance=candidate.copies_per_instance,
        kv_limited_batch=candidate.memory.kv_limited_batch,
        ms_per_token_alone=round(candidate.alone.ms_per_token.mean, 2),
        highest_concurrency=best.concurrency,
        highest_tok_s=round(best.tok_s, 1),
        usd_per_hour=None if hourly is None else round(hourly, 4),
        usd_per_million_output_tokens=None if per_million is None else round(per_million, 4),
        blended_usd_per_million_tokens=None if per_million is None else round(blended(per_million), 4),
        fits=True,
        because=f"{why}{instance.unknown_there}",
    )


def basis_of(loaded: LoadedSpec) -> Basis:
    """Return what a comparison of the allowed instance types rests on.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown.
    """
    resolved = resolve(loaded)
    choice, demand = resolved.choice, resolved.demand
    bands = {
        instance.instance_type: band_of(
            demand.engine,
            choice.version.value,
            demand.architecture,
            instance,
            degree=instance.accelerator_count,
            quantization=demand.quantization,
            speculation=demand.speculation,
            input_tokens=demand.prompt_tokens,
        )
        for instance in resolved.allowed
    }
    return Basis(
        engine=choice.engine.value,
        engine_version=choice.version.value,
        constants=choice.facts.performance.id,
        workload=demand.lengths.words,
        discount=demand.discount,
        bands=bands,
        unknown_there=_unknown_there(resolved.allowed, loaded.environment.region),
    )


def _unknown_there(allowed: Sequence[Instance], region: str) -> str:
    priced_elsewhere = [each for each in allowed if each.has_other_price]
    places = " and ".join(sorted({str(each.price_region) for each in priced_elsewhere}))
    not_offered = [each.instance_type for each in allowed if not each.is_offered]
    types = counted(len(priced_elsewhere), "type")
    price = f"The price of {types} in {region} is not known: that of {places} counts." if places else ""
    offer = f"Not known to be offered in {region}: {', '.join(not_offered)}." if not_offered else ""
    return f"{price} {offer}".strip()


def types_at_load(loaded: LoadedSpec) -> tuple[TypeAtLoad, ...]:
    """Return what each allowed instance type makes of the planned load; predicted, not measured.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown.
    """
    resolved = resolve(loaded)
    rows: list[TypeAtLoad] = []
    for instance in resolved.allowed:
        judged = Search(resolved.demand).on(instance)
        kept = [each for each in judged if isinstance(each, FeasibleCandidate)]
        if not kept:
            stages = {each.stage for each in judged if isinstance(each, RejectedCandidate)}
            nearest = next((stage for stage in _LAST_TO_FIRST if stage in stages), None)
            rows.append(TypeAtLoad(instance_type=instance.instance_type, exceeds=nearest))
            continue
        best = min(kept, key=lambda each: (each.score.usd_per_hour, -each.score.output_tok_s))
        rows.append(
            TypeAtLoad(
                instance_type=instance.instance_type,
                tensor_parallel_degree=best.candidate.degree,
                instance_count=best.instance_count,
                usd_per_hour=known(best.score.usd_per_hour),
                output_tok_s=round(best.score.output_tok_s, 1),
            )
        )
    return tuple(rows)


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
        every: Also three optimizations together; without, two at most.

    Raises:
        PlanError: When the model can't be read.
    """
    # The plain model and the spec's own recipe come first and are always shown, however few combinations are.
    recipes = {recipe_name(()): (), **{recipe_name(each): each for each in [loaded.endpoint.optimization]}}
    needs: dict[str, tuple[str, ...]] = {}
    most = _MOST_COMBINED if every else _MOST_COMBINED - 1
    across = product(*((None, *kind) for kind in _choices(loaded)))
    combinations = [tuple(choice for choice in choices if choice is not None) for choices in across]
    for parts in sorted((each for each in combinations if 1 <= len(each) <= most), key=len):
        combined = _built_at_start(parts)
        recipe = tuple(choice.entry for choice in combined)
        recipes.setdefault(recipe_name(recipe), recipe)
        needs[recipe_name(recipe)] = tuple(choice.needs for choice in combined if choice.needs)
    planner = _Planner(loaded, {})
    plain = planner.planned(())
    rows = [_recipe_row(planner, recipe, needs.get(name, ()), plain) for name, recipe in recipes.items()]
    return tuple(row for _, row in sorted(rows, key=lambda each: each[0]))


def _choices(loaded: LoadedSpec) -> tuple[tuple[_Choice, ...], ...]:
    """Return the optimizations that a recipe may combine, one of each kind: weights, drafts, KV, prefixes, build."""
    architecture = read_architecture(loaded)
    # What the spec has goes before what might be: it has its checkpoint, its draft and its hit rate.
    known = {entry.name: _Choice(entry) for entry in loaded.endpoint.optimization}
    weights = tuple(known.get(name) or _weights(loaded, name) for name in WEIGHTS if name != "mxfp4" or name in known)
    drafts = tuple(draft for name in SPECULATIONS if (draft := known.get(name) or _draft(loaded, architecture, name)))
    has_hit_rate = loaded.endpoint.workload.prefix_hit_rate > 0
    unpredicted = "" if has_hit_rate else "prefix_cache: a hit_rate, to predict its gain"
    return (
        weights,
        drafts,
        (known.get("kv_fp8") or _Choice(parse_recipe("kv_fp8")[0]),),
        (known.get("prefix_cache") or _Choice(parse_recipe("prefix_cache")[0], unpredicted),),
        (known.get("compile") or _Choice(parse_recipe("compile=trtllm")[0]),),
    )


def _recipe_row(
    planner: _Planner, recipe: Recipe, needs: tuple[str, ...], plain: _Planned | Finding
) -> tuple[_Place, RecipeRow]:
    planned = planner.planned(recipe)
    name = recipe_name(recipe)
    refused = planned if isinstance(planned, Finding) else None
    row = RecipeRow(
        recipe=name,
        names=tuple(
            sorted((f"compile={entry.compile.target}" if entry.compile is not None else entry.name) for entry in recipe)
        ),
        rule=refused.rule if refused else "",
        because=refused.message if refused else "",
        needs=needs,
        predicted=None if isinstance(planned, Finding) else _predicted(planned, plain),
        gives_up=tuple(sentence for entry in recipe for sentence in gives_up(entry.name)),
    )
    if isinstance(planned, Finding):
        return (1, (), name), row
    # Those that run come first: by the spec's objective, then by the price of a token.
    score = planned.best.score
    goal = {
        "cost": score.usd_per_hour,
        "cost_per_token": score.usd_per_million_output_tokens,
        "latency": score.ms_per_token_alone,
        "throughput": -score.output_tok_s,
    }[planned.resolved.demand.endpoint.objective.goal]
    return (0, (goal, score.usd_per_million_output_tokens, -score.output_tok_s), name), row


def gives_up(name: str) -> tuple[str, ...]:
    """Return what an optimization gives up: quality, start of a container, what else; a sentence each."""
    row = optimizations.LOSSES[name]
    return tuple(f"{name}: {part}" for part in (row.features, row.startup, f"Quality: {row.quality}") if part)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans recipes of one spec; those that the planner can't distinguish are searched once."""

    loaded: LoadedSpec
    seen: dict[str, _Planned | Finding]

    def planned(self, recipe: Recipe) -> _Planned | Finding:
        """Return the best deployment of a recipe, or the first problem that refuses it."""
        try:
            other = with_recipe(self.loaded, recipe)
            refuse_recipe(other, choose_engine(other), allowed_instances(other)[0])
        except (SpecError, PlanError) as error:
            return error.problems[0]
        # Prefix caching as such changes no prediction, its hit rate does: recipes that differ in it are one search.
        read = tuple(entry for entry in other.endpoint.optimization if entry.name != "prefix_cache")
        key = f"{recipe_name(read)} {other.endpoint.workload.prefix_hit_rate}"
        if key not in self.seen:
            try:
                resolved, result = search_for(other, winner_only=True)
                if not result.ranked:
                    raise no_deployment(other, resolved.demand, result.rejections)
                self.seen[key] = _Planned(resolved, result.ranked[0])
            except PlanError as error:
                self.seen[key] = error.problems[0]
        return self.seen[key]


def _predicted(planned: _Planned, plain: _Planned | Finding) -> PredictedRecipe:
    best, demand = planned.best, planned.resolved.demand
    cost = cost_of(best, demand.discount)
    base = None if isinstance(plain, Finding) else plain
    base_cost = None if base is None else cost_of(base.best, base.resolved.demand.discount)
    base_price = None if base_cost is None else base_cost.usd_per_million_output_tokens
    price = cost.usd_per_million_output_tokens
    band = band_for(demand, best.candidate)
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


def _built_at_start(combined: tuple[_Choice, ...]) -> tuple[_Choice, ...]:
    """Return a combination in which TensorRT-LLM quantizes the weights itself, where no checkpoint is named."""
    if not any(choice.entry.compile is not None for choice in combined):
        return combined
    return tuple(
        _Choice(parse_recipe(each.entry.name)[0]) if each.needs and each.entry.name in WEIGHTS else each
        for each in combined
    )


def _weights(loaded: LoadedSpec, name: str) -> _Choice:
    model, entry = loaded.endpoint.model, parse_recipe(name)[0]
    if name == "fp8":
        return _Choice(entry)
    place = model.hub_id or (model.s3_uri or "weights").removesuffix("/").removesuffix(".tar.gz")
    suffix = "w8a8" if name == "smoothquant" else name
    return _Choice(parse_recipe(f"{name}={place}-{suffix}")[0], f"{name}: a checkpoint or an optimization job")


def _draft(loaded: LoadedSpec, architecture: Architecture, name: str) -> _Choice | None:
    """Return speculation with a stand-in for its draft; `None` where no draft model is known."""
    if name == "ngram":
        return _Choice(parse_recipe(name)[0])
    if name == "eagle3":
        place = loaded.endpoint.model.hub_id or "org/model"
        return _Choice(parse_recipe(f"{name}={place}-eagle3")[0], "eagle3: a draft head, or an optimization job")
    smaller = [
        (each.params_total, each.id)
        for each in MODELS.rows
        if each.vocab == architecture.vocab and each.params_total * _DRAFT_IS_SMALLER <= architecture.params_active
    ]
    drafts = [name for _, name in sorted(smaller)]
    return (
        _Choice(parse_recipe(f"{name}={drafts[0]}")[0], f"speculative: a draft, {drafts[0]} here") if drafts else None
    )


def explain(
    loaded: LoadedSpec, instance_type: str, *, accept_slo_miss: bool = False, allow_unknown_price: bool = False
) -> tuple[DegreeVerdict, ...]:
    """Say of an instance type, degree by degree, why it was chosen or rejected.

    Raises:
        PlanError: SEA110 when the catalog lacks the instance type, and whatever keeps the spec from being read.
    """
    known_type = find_instance(instance_type)
    if known_type is None:
        near = ", ".join(similar_types(instance_type))
        message = f"{instance_type} is not in the catalog"
        hint = f"similar in the catalog: {near}" if near else "name an instance type, for example ml.g5.xlarge"
        raise PlanError.of("SEA110", message, hint=hint)
    instance = neuron.in_cores(priced(known_type, loaded))
    resolved, result = search_for(loaded, accept_slo_miss=accept_slo_miss, allow_unknown_price=allow_unknown_price)
    if instance in resolved.allowed:
        verdicts = [_verdict(resolved.demand, result, each) for each in Search(resolved.demand).on(instance)]
    else:
        serving, hosting, rails = loaded.endpoint.serving, loaded.endpoint.hosting, loaded.rails
        why = "Not in `instance_types`"
        if not (serving.instance_types or hosting.instance_pools or rails.instance_types):
            why = "AWS Neuron is planned only where `instance_types` names it"
        verdicts = [
            each.model_copy(
                update={"won": False, "stage": "allowed", "because": f"{why}. If allowed: {_begun(each.because)}"}
            )
            for each in _if_allowed(loaded, resolved, result, instance)
        ]
    return tuple(each.model_copy(update={"because": f"{each.because}{instance.unknown_there}"}) for each in verdicts)


def _begun(sentence: str) -> str:
    """Return a sentence as the second part of another: in lower case but for an abbreviation."""
    return sentence if sentence[1:2].isupper() else f"{sentence[:1].lower()}{sentence[1:]}"


def _if_allowed(
    loaded: LoadedSpec, resolved: Resolved, result: SearchResult, instance: Instance
) -> Iterator[DegreeVerdict]:
    """Yield what would be said of a type that the spec does not allow; AWS Neuron has an engine of its own then."""
    demand = resolved.demand
    if neuron.is_neuron(instance) != demand.engine.compiled_shapes:
        serving = loaded.endpoint.serving.model_copy(update={"instance_types": (instance.instance_type,)})
        alone = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"serving": serving}))
        try:
            demand = resolve(alone).demand
        except PlanError as error:
            because = " ".join(f"{each.message}." for each in error.problems)
            rejected = RejectedCandidate(
                instance.instance_type, instance.accelerator_count, "specifications", because, 0.0
            )
            yield _verdict(demand, result, rejected)
            return
    for each in Search(demand).on(instance):
        yield _verdict(demand, result, each)


def _verdict(demand: Demand, result: SearchResult, judged: FeasibleCandidate | RejectedCandidate) -> DegreeVerdict:
    best = result.ranked[0] if result.ranked else None
    if isinstance(judged, RejectedCandidate) and best and best.candidate.place == (judged.instance_type, judged.degree):
        judged = best  # it lacks headroom, and nothing allowed has more
    if isinstance(judged, RejectedCandidate):
        return DegreeVerdict(**judged.fields, won=False, stage=judged.stage)
    candidate = judged.candidate
    won = best is not None and best.candidate.place == candidate.place
    if best is None:
        because = "Meets every requirement."
    elif won:
        because = why_best(result.ranked, result.considered, demand)
    elif _key(demand, judged) < _key(demand, best):
        price = hourly_words(known(judged.score.usd_per_hour), demand.discount)
        alone = f"{tenths(judged.score.ms_per_token_alone)} ms per token for a single request"
        numbers = f"{alone}, at most {judged.score.highest_tok_s:,.0f} output tok/s"
        because = f"Predicted to {demand.kept}; ranks above the chosen {best.candidate}: {price}, {numbers}."
    else:
        chosen = f"Chosen: {best.candidate}."
        because = f"{why_outdone(best.score, judged.score, demand.endpoint.objective.goal)} {chosen}"
    return DegreeVerdict(
        instance_type=candidate.instance.instance_type,
        tensor_parallel_degree=candidate.degree,
        won=won,
        stage="chosen" if won else "ranking",
        because=because,
        usd_per_hour=known(judged.score.usd_per_hour),
        output_tok_s=round(judged.score.output_tok_s, 1),
    )


def _key(demand: Demand, feasible: FeasibleCandidate) -> Key:
    return ranking_order(feasible.candidate, feasible.score, demand.endpoint.objective.goal)
