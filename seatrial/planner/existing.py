"""Plans of a deployment whose values are given: set by hand in a lock, or tried in another environment.

The planner plans this deployment as if the spec had fixed it, and for nothing else. Of a lock, what was set is
validated, what depends on it is worked out, and what it overrules is recorded. A copy that is promoted serves as it was
tried; its size is derived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.documents.plan import Adopted, Decision, Image, Plan, tried_fields
from seatrial.locks.changes import NOT_IN_PLACE, change_text, dropped_provenance
from seatrial.locks.guard_rails import limit_problems
from seatrial.locks.locked_plan import read_edited_plan
from seatrial.planner.decisions.timeouts import LONGEST_S
from seatrial.planner.planner import make_plan, plan_of
from seatrial.planner.resolve import resolve
from seatrial.planner.search.best_first import SearchResult
from seatrial.planner.search.candidate import Candidate, FeasibleCandidate
from seatrial.planner.search.capacity import capacity, spread
from seatrial.planner.search.evaluate import at_its_rate, misses_alone
from seatrial.planner.search.fitting import candidates
from seatrial.planner.search.sizing import instances_for, score_of, size
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.prices import priced
from seatrial.specs.spec_files import lock_path
from seatrial_base.catalog import images, neuron
from seatrial_base.catalog.engine_options import options_decided_by
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.images import IMAGES, find_image, image_digest, image_repository_uri
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from seatrial.documents.plan import Promoted
    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.capacity import LoadSpread
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec

_BOUNDS = {  # of the service; copies and instances are bounded by the spec and by one another
    "memory_min_mb": (128, 2_000_000),
    "startup_timeout_s": (60, LONGEST_S),
    "download_timeout_s": (60, LONGEST_S),
    "target_concurrency_per_copy": (0.1, 65_536),
    "copy_count": (1, 1000),
    "copies_per_instance": (1, 16),
    "instance_count": (1, 1000),
}
_KEPT = frozenset(
    {
        "spec_digest",
        "engine",
        "engine_version",
        "image",
        "inference_ami_version",
        "generation",
        "memory_min_mb",
        "startup_timeout_s",
        "download_timeout_s",
        "pareto",
        "rejected",
    }
)
"""What stays as it is locked, unless it was set by hand: nothing that can be set by hand changes it."""
_ALTERNATIVES = "Pareto front and rejected deployments refer to the planner's decision, not to the values set by hand."
_NO_LINE = frozenset(
    {"memory", "curve", "band", "knee", "regime", "cost", "pareto", "rejected", "warnings", "adopted", "promoted"}
)
_TIMEOUTS = ("startup_timeout_s", "download_timeout_s")
"""They follow from the weights, unless they were set by hand where the plan was tried."""
_OTHER = "SEA476"


def fix_in_spec(given: Plan, fields: AbstractSet[str], loaded: LoadedSpec) -> LoadedSpec:
    """Return the spec as if it fixed what is given, in an environment that allows every instance type.

    Args:
        fields: Which of its fields are given; degree, longest request and batched tokens always are.

    Raises:
        SpecError: SEA416, with every value that the spec does not accept.
    """
    fields_of_spec = loaded.endpoint.model_dump()
    kept = {"tensor_parallel_degree"} | {"max_model_len", "max_num_batched_tokens"}
    decided = {name: getattr(given, name) for name in options_decided_by("planner") if name in fields | kept}
    overrides = {name: decision.value for name, decision in decided.items() if decision is not None}
    fields_of_spec["serving"]["overrides"] |= overrides
    fields_of_spec["serving"]["instance_types"] = (given.instance_type.value,)
    # The type is given. The environment's list is held against the finished plan, not against the planner's choice.
    rails = loaded.rails.model_copy(update={"instance_types": None})
    try:
        endpoint = EndpointSpec.model_validate(fields_of_spec)
    except ValidationError as error:
        raise SpecError(
            given_problem(loaded, _field(problem["loc"]), "SEA416", f"{problem['msg']}, not {problem['input']!r}")
            for problem in error.errors(include_url=False)
        ) from error
    return replace(loaded, endpoint=endpoint, environment=loaded.environment.model_copy(update={"guard_rails": rails}))


def resolve_given(given: Plan, fixed: LoadedSpec, loaded: LoadedSpec) -> Resolved:
    """Resolve the requirements, with the engine's constants of the version that is given.

    Raises:
        SpecError: When the values can't be resolved; each problem is placed in the lock of `loaded`.
    """
    try:
        resolved = resolve(fixed)
    except PlanError as error:
        raise SpecError(_moved(each, loaded) for each in error.problems) from error
    if resolved.demand.engine.compiled_shapes:
        return resolved
    # The constants are those of the version that was locked: the catalog's newest may be another.
    facts = find_engine("tgi" if given.engine.value == "tgi" else "lmi", given.engine_version.value)
    version = given.engine_version.value
    return replace(resolved, demand=replace(resolved.demand, engine=facts, engine_version=version))


def without_objectives(resolved: Resolved, because: str) -> Resolved:
    """Return what was resolved without the SLO's latencies, as `--accept-slo-miss` plans; a warning says why."""
    demand = replace(resolved.demand, objectives=resolved.demand.objectives[-1:], slo_miss_accepted=True)
    return replace(resolved, demand=demand, warnings=(*resolved.warnings, because))


def given_candidate(given: Plan, fields: AbstractSet[str], demand: Demand, loaded: LoadedSpec) -> Candidate:
    """Return the deployment on the given instance type, with the given degree and copies per instance.

    Raises:
        SpecError: SEA416 when the model does not fit there.
    """
    instance = find_instance(given.instance_type.value)
    seen = None if instance is None else neuron.in_cores(priced(instance, loaded))
    # The degree is fixed, so there is one candidate.
    candidate = None if seen is None else next(iter(candidates(demand, seen)))
    if not isinstance(candidate, Candidate):
        because = candidate.because if candidate is not None else "not in the catalog"
        raise SpecError([given_problem(loaded, "instance_type", "SEA416", f"{given.instance_type.value}: {because}")])
    copies = given.copies_per_instance.value
    if "copies_per_instance" not in fields:
        return candidate
    if copies > candidate.copies_per_instance:
        what = neuron.counted_as(candidate.instance)
        message = f"{candidate.instance.accelerator_count} {what} fit {candidate.copies_per_instance} copies of degree "
        message += f"{candidate.degree}, not {copies}"
        raise SpecError([given_problem(loaded, "copies_per_instance", "SEA416", message)])
    return replace(candidate, copies_per_instance=copies)


def _moved(problem: Finding, loaded: LoadedSpec) -> Finding:
    """Return a problem of the spec that stands for one of the lock, where it was set."""
    field = problem.field.rpartition(".")[2]
    named = "instance_type" if field == "instance_types" else field
    return given_problem(loaded, named, problem.rule, problem.message, problem.hint)


def _field(path: tuple[int | str, ...]) -> str:
    names = [part for part in path if isinstance(part, str)]
    return "instance_type" if "instance_types" in names else names[-1]


def given_problem(loaded: LoadedSpec, field: str, rule: str, message: str, hint: str = "") -> Finding:
    """Return a problem of a field of the locked plan."""
    where = lock_path(loaded.path).as_posix()
    return Finding(rule, Place.at(where, f"{loaded.environment.name}.{field}"), message, hint)


@dataclass(frozen=True, slots=True)
class Adoption:
    """A plan whose hand edits were taken over.

    Attributes:
        overruled: The fields that were set by hand since the lock was written, with what the planner decides.
        recomputed: One line for each decision that follows from them, as `instance_count: 1 -> 2`, and for provenance
            that the plan had before.
    """

    plan: Plan
    overruled: Mapping[str, Adopted]
    recomputed: tuple[str, ...]


def adopt(loaded: LoadedSpec) -> Adoption | None:
    """Return the locked plan with its hand edits taken over; `None` when there are none.

    Raises:
        SpecError: SEA401 when nothing is locked, SEA402 when the lock is stale, SEA411 when it has no digest, SEA403
            when it can't be read; else with everything that forbids the edits.
        PlanError: When the planner can't decide anything for the spec, so that nothing can be overruled.
    """
    edited, changed = read_edited_plan(loaded)
    if changed.seal is None:
        raise SpecError(changed.problems)
    if edited.spec_digest != loaded.digest and "spec_digest" not in changed.fields:
        message = f"the spec changed after planning: digest {loaded.digest}, planned {edited.spec_digest}"
        hint = "plan again with --write, then set the values by hand"
        raise SpecError([given_problem(loaded, "spec_digest", "SEA402", message, hint)])
    if not changed.fields:
        return None
    by_hand = {*options_decided_by("planner"), *_BOUNDS, "instance_type", "image", "inference_ami_version"}
    hint = f"restore it; these can be set by hand: {', '.join(sorted(by_hand))}"
    message = "can't be set by hand: it comes from the spec or follows from other fields"
    refused = [given_problem(loaded, name, "SEA412", message, hint) for name in changed.fields if name not in by_hand]
    _refuse([*refused, *_out_of_bounds(edited, changed.fields, loaded)])
    unpriced = edited.cost.usd_per_hour is None
    planned = make_plan(loaded, accept_slo_miss=True, allow_unknown_price=unpriced)
    return _adopted(edited, planned, changed.fields, loaded)


def _adopted(edited: Plan, planned: Plan, fields: tuple[str, ...], loaded: LoadedSpec) -> Adoption:
    by_hand = {*fields, *edited.adopted}
    fixed = fix_in_spec(edited, by_hand, loaded)
    resolved = resolve_given(edited, fixed, loaded)
    candidate = given_candidate(edited, by_hand, resolved.demand, loaded)
    missed = _missed_by_hand(edited, candidate, resolved.demand)
    if missed:  # plan it without the objectives, as --accept-slo-miss does
        resolved = without_objectives(resolved, missed)
    copies, least = edited.copy_count.value, instances_for(candidate, edited.copy_count.value)
    count = edited.instance_count.value if "instance_count" in by_hand else least
    if count < least:
        message = (
            f"{copies} copies, up to {candidate.copies_per_instance} per instance, need {least} instances, not {count}"
        )
        raise SpecError([given_problem(loaded, "instance_count", "SEA416", message)])
    highest, load = _highest(edited, candidate, resolved.demand), _load(edited, candidate, resolved.demand)
    score = score_of(resolved.demand, candidate, load, candidate.levels.at(highest).output_tok_s)
    feasible = FeasibleCandidate(candidate, highest, copies, load, count, score)
    followed = plan_of(fixed, resolved, SearchResult((feasible,), (), 1))
    overruled = {
        name: Adopted.model_validate({"planned": _bare(planned, name), "adopted": _bare(edited, name)})
        for name in sorted(by_hand)
    }
    record = {name: each for name, each in overruled.items() if each.planned != each.adopted}
    values: dict[str, object] = {
        name: getattr(edited, name) if name in _KEPT else _reasoned(name, followed, (planned, edited))
        for name in Plan.model_fields
    }
    values |= {name: _decision(name, edited, planned, record) for name in by_hand}
    by_hand_words = [
        f"{name} was set by hand to {change_text(each.adopted)}; the planner chose {change_text(each.planned)}."
        for name, each in record.items()
    ]
    warnings = (*followed.warnings, *by_hand_words, *((_ALTERNATIVES,) if record else ()))
    values |= {"adopted": record, "warnings": warnings}
    plan = Plan.model_validate(values)
    replacing = {*fields}
    if _value(edited.volume_size_gb) != _value(plan.volume_size_gb):  # it follows from the hand otherwise than locked
        replacing.add("volume_size_gb")
    # These can't be changed on a resource that exists: a new generation gives the replacement a name of its own.
    if not NOT_IN_PLACE.keys().isdisjoint(replacing):
        plan = plan.model_copy(update={"generation": edited.generation + 1})
    _refuse(limit_problems(plan, loaded))
    recomputed = (*_recomputed(edited, plan, by_hand), *dropped_provenance(edited.promoted))
    return Adoption(plan, {name: overruled[name] for name in fields}, recomputed)


def _recomputed(edited: Plan, plan: Plan, by_hand: AbstractSet[str]) -> Iterator[str]:
    """Yield the change of each value that follows from those of the hand, and of the price."""
    changes = [
        (name, change_text(_dumped(edited, name)), change_text(_dumped(plan, name)))
        for name in Plan.model_fields
        if name not in by_hand | _NO_LINE
    ]
    old, new = edited.cost.usd_per_hour, plan.cost.usd_per_hour
    if old != new:
        changes.append(("usd_per_hour", change_text(old), change_text(new)))
    yield from (f"{name}: {before} -> {after}" for name, before, after in changes if before != after)


def _reasoned(name: str, followed: Plan, known: tuple[Plan, ...]) -> object:
    """Return a field as it follows from the hand's; in the words of the first known plan that says the same."""
    field = getattr(followed, name)
    return next((its for plan in known if _value(its := getattr(plan, name)) == _value(field)), field)


def _decision(name: str, edited: Plan, planned: Plan, record: Mapping[str, Adopted]) -> object:
    """Return a decision of the hand with its reason; the planner's own where both decide the same."""
    if name not in record:
        return getattr(planned, name)
    because = f"Set by hand in the lock; the planner chose {change_text(record[name].planned)}."
    return {"value": getattr(edited, name).value, "because": because}


def _dumped(plan: Plan, name: str) -> object:
    """Return a field as JSON; one that is not written has its default."""
    return plan.model_dump(mode="json").get(name, Plan.model_fields[name].default)


def _bare(plan: Plan, name: str) -> object:
    """Return the value of a decision as JSON; of an image its address."""
    value = _dumped(plan, name)
    value = value["value"] if isinstance(value, dict) else value
    return value["uri"] if isinstance(value, dict) else value


def _value(field: object) -> object:
    return field.value if isinstance(field, Decision) else field


def _out_of_bounds(edited: Plan, fields: tuple[str, ...], loaded: LoadedSpec) -> Iterator[Finding]:
    for name in fields:
        if name in _BOUNDS:
            (least, most), value = _BOUNDS[name], getattr(edited, name).value
            if not least <= value <= most:
                yield given_problem(loaded, name, "SEA416", f"{value:g} is not between {least:g} and {most:g}")
    if "image" in fields:
        # An image that is another version than the plan's: what was decided for one does not hold for the
        # other.
        image = edited.image.value
        build = find_image(image.repository, image.tag)
        if build is not None and build.version != edited.engine_version.value:
            message = f"{image.tag} is version {build.version}, but the plan is for {edited.engine_version.value}"
            yield given_problem(
                loaded, "image", "SEA416", message, "fix serving.engine_version in the spec, and plan again"
            )
        if build is None and image_digest(image.uri) is None and loaded.endpoint.serving.image is None:
            message = f"{image_repository_uri(image.uri)}:{image.tag} is not in the catalog"
            yield given_problem(loaded, "image", "SEA416", message, "set serving.image in the spec, and plan again")
    known = {build_ami for build in IMAGES.rows if (build_ami := images.ami_version(build.cuda))}
    ami = edited.inference_ami_version.value
    if "inference_ami_version" in fields and ami is not None and ami not in known:
        yield given_problem(
            loaded, "inference_ami_version", "SEA416", f"{ami} is unknown", f"known: {', '.join(known)}"
        )


def _missed_by_hand(edited: Plan, candidate: Candidate, demand: Demand) -> str:
    """Return by what the deployment is predicted to miss the objectives at the size that was set; empty for nothing."""
    alone = misses_alone(demand, candidate)
    if alone is not None:
        return f"SEA205, set by hand: {alone.because}"
    highest, load = _highest(edited, candidate, demand), _load(edited, candidate, demand)
    if load.concurrency_per_copy <= highest:
        return ""
    return (
        f"SEA205, set by hand: one copy is predicted to meet the SLO up to {highest} concurrent requests; the "
        f"workload needs {load.concurrency_per_copy}."
    )


def _highest(edited: Plan, candidate: Candidate, demand: Demand) -> int:
    guess = edited.gate_concurrency_per_copy.value
    return max(1, capacity(candidate.levels, demand.objectives, guess))


def _load(edited: Plan, candidate: Candidate, demand: Demand) -> LoadSpread:
    levels, copies = candidate.levels, edited.copy_count.value
    return spread(candidate.copy, demand.endpoint.workload, copies, lambda level: levels.at(level).output_tok_s)


def _refuse(problems: list[Finding] | tuple[Finding, ...]) -> None:
    if problems:
        raise SpecError(problems)


@dataclass(frozen=True, slots=True)
class TriedCopy:
    """One copy that was tried.

    Attributes:
        plan: The plan of the environment in which it was tried.
        most_concurrency: The highest measured concurrency per copy that meets the SLO of the environment to come.
    """

    plan: Plan
    region: str
    most_concurrency: int


def promoted_plan(tried: TriedCopy, loaded: LoadedSpec, provenance: Promoted) -> Plan:
    """Return the plan of an environment in which a tried copy is to serve.

    Everything that decides how one copy serves is the tried one. How many copies there are, and what follows from that,
    is what this environment's workload, scaling and budget ask for.

    Raises:
        SpecError: SEA475 when `max_copies` are too few; SEA476 when the environment can't have such a copy.
    """
    derived, kept = _derived(tried, loaded), (*tried_fields(), *_TIMEOUTS)
    return Plan.model_validate(
        {name: getattr(derived, name) for name in Plan.model_fields}
        | {name: _tried(name, tried.plan) for name in tried_fields()}
        | {name: _tried(name, tried.plan) for name in _TIMEOUTS if name in tried.plan.adopted}
        | {
            "image": _image(tried, loaded),
            "spec_digest": loaded.digest,
            "adopted": {name: value for name, value in tried.plan.adopted.items() if name in kept},
            "volume_kms_key_arn": loaded.environment.kms_key_arn if tried.plan.volume_size_gb else None,
            "promoted": provenance,
        }
    )


def _tried(name: str, plan: Plan) -> object:
    field = getattr(plan, name)
    if not isinstance(field, Decision):
        return field
    return {"value": field.value, "because": f"Tried in {plan.environment}. {field.because}"}


def _derived(tried: TriedCopy, loaded: LoadedSpec) -> Plan:
    """Return the plan of the tried copy in the size that the workload needs."""
    fields = {*options_decided_by("planner"), "copies_per_instance"}
    try:
        fixed = fix_in_spec(tried.plan, fields, loaded)
        resolved = resolve_given(tried.plan, fixed, loaded)
        candidate = given_candidate(tried.plan, fields, resolved.demand, loaded)
    except SpecError as error:
        raise SpecError(replace(problem, rule=_OTHER) for problem in error.problems) from error
    choice = replace(
        resolved.choice,
        engine=tried.plan.engine,
        version=tried.plan.engine_version,
        ami_version=tried.plan.inference_ami_version,
    )
    resolved = replace(resolved, choice=choice)
    most = resolved.demand.endpoint.scaling.max_copies
    sizing = size(
        resolved.demand, candidate, tried.most_concurrency, lambda level: candidate.levels.at(level).output_tok_s
    )
    if sizing.needed > most:
        message = (
            f"one copy was measured to meet the SLO up to {counted(tried.most_concurrency, 'concurrent request')}; the "
            f"workload needs {counted(sizing.needed, 'copy', 'copies')}, max_copies is {most}"
        )
        hint = f"set scaling.max_copies to at least {sizing.needed}, or promote a plan with a faster copy"
        raise SpecError([given_problem(loaded, "copy_count", "SEA475", message, hint)])
    load = at_its_rate(candidate, sizing.load) if resolved.demand.open_trial else sizing.load
    score = score_of(resolved.demand, candidate, load, candidate.levels.at(tried.most_concurrency).output_tok_s)
    instances = instances_for(candidate, load.copy_count)
    sized = FeasibleCandidate(candidate, tried.most_concurrency, sizing.needed, load, instances, score)
    if missed := _missed_by(sized, resolved.demand, tried):
        resolved = without_objectives(resolved, missed)
    plan = plan_of(fixed, resolved, SearchResult((sized,), (), 1))
    # The reasons of its size: they are measured, not predicted.
    source, measured = tried.plan.environment, counted(tried.most_concurrency, "concurrent request")
    copies = (
        f"One copy was measured to meet the SLO up to {measured} in {source}; the workload needs at least "
        f"{counted(sized.needed, 'copy', 'copies')}."
    )
    target = f"The planner's share of what one copy was measured to hold in {source}, {measured}."
    return plan.model_copy(
        update={
            "copy_count": Decision(value=plan.copy_count.value, because=copies),
            "target_concurrency_per_copy": Decision(value=plan.target_concurrency_per_copy.value, because=target),
        }
    )


def _missed_by(sized: FeasibleCandidate, demand: Demand, tried: TriedCopy) -> str:
    """Return that the copy is predicted to miss the SLO that it was measured to meet; empty when it is not."""
    alone = misses_alone(demand, sized.candidate)
    outcome = sized.candidate.levels.at(sized.load.concurrency_per_copy)
    missed = [each for each in demand.objectives if each.ratio(outcome) > 1]
    if alone is None and not missed:
        return ""
    why = alone.because if alone is not None else f"{', '.join(map(str, missed))} is predicted to be missed."
    return f"SEA205, but measured to meet the SLO in {tried.plan.environment}: {why}"


def _image(tried: TriedCopy, loaded: LoadedSpec) -> Decision[Image]:
    """Return the tried image from the registry of this environment.

    Raises:
        SpecError: SEA476 when it is not there, or only a tag says that it is the same.
    """
    image, because = tried.plan.image.value, f"Tried in {tried.plan.environment}. {tried.plan.image.because}"
    own, place, region = loaded.endpoint.serving.image, image_repository_uri(image.uri), loaded.environment.region
    registry, _, rest = place.partition("/")
    # Registry and repository in this environment: the spec's, or AWS's in its region.
    if own is not None:
        place = image_repository_uri(own)
    elif registry == images.registry(tried.region) and (here := images.registry(region)) is not None:
        place = f"{here}/{rest}"
    if place != image_repository_uri(image.uri):
        build = find_image(image.repository, image.tag)
        problem = ""
        if build is None and image_digest(image.uri) is None:
            problem = f"{place} may hold another image under {image.tag} than the tried one"
        elif build is not None and region not in images.regions_of_build(build):
            problem = f"{image.tag} is not listed for {region}"
        if problem:
            hint = (
                "pin the digest where the plan is tried (`seatrial images lock`), or name an image of both in the spec"
            )
            raise SpecError([given_problem(loaded, "image", _OTHER, problem, hint)])
    uri = f"{place}{image.uri.removeprefix(image_repository_uri(image.uri))}"
    return Decision(value=Image(uri=uri, repository=image.repository, tag=image.tag), because=because)
