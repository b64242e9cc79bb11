"""Adopts what was set by hand in a lock: validates it, works out what depends on it, records what it overrules.

The planner is asked for the deployment that was set as if the spec had fixed it, and for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.documents.plan import Adopted, Decision, Plan
from seatrial.locks.changes import NOT_IN_PLACE, change_text, dropped_provenance
from seatrial.locks.guard_rails import limit_problems
from seatrial.locks.lock_file import read_edited_plan
from seatrial.planner.decisions.timeouts import LONGEST_S
from seatrial.planner.planner import make_plan, plan_of
from seatrial.planner.replan_fixed import (
    fix_in_spec,
    given_candidate,
    given_problem,
    resolve_given,
    without_objectives,
)
from seatrial.planner.search.best_first import SearchResult
from seatrial.planner.search.candidate import Candidate, FeasibleCandidate
from seatrial.planner.search.capacity import capacity, spread
from seatrial.planner.search.evaluate import misses_alone
from seatrial.planner.search.sizing import instances_for, score_of
from seatrial_base.catalog import images
from seatrial_base.catalog.engine_options import options_decided_by
from seatrial_base.catalog.images import IMAGES, find_image, image_digest, image_repository_uri
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.planner.search.capacity import LoadSpread
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding


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


@dataclass(frozen=True, slots=True)
class Adoption:
    """A plan whose hand edits were taken over.

    Attributes:
        plan: The plan.
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
    _refuse([*_fixed_elsewhere(changed.fields, loaded), *_out_of_bounds(edited, changed.fields, loaded)])
    unpriced = edited.cost.usd_per_hour is None
    planned = make_plan(loaded, accept_slo_miss=True, allow_unknown_price=unpriced)
    return _adopted(edited, planned, changed.fields, loaded)


def _adopted(edited: Plan, planned: Plan, fields: tuple[str, ...], loaded: LoadedSpec) -> Adoption:
    by_hand = {*fields, *edited.adopted}
    followed = _follow(edited, by_hand, loaded)
    overruled = {name: _overruled(name, edited, planned) for name in sorted(by_hand)}
    record = {name: each for name, each in overruled.items() if each.planned != each.adopted}
    values: dict[str, object] = {
        name: getattr(edited, name) if name in _KEPT else _reasoned(name, followed, (planned, edited))
        for name in Plan.model_fields
    }
    values |= {name: _decision(name, edited, planned, record) for name in by_hand}
    values |= {"adopted": record, "warnings": (*followed.warnings, *_said(record))}
    plan = Plan.model_validate(values)
    if not NOT_IN_PLACE.keys().isdisjoint({*fields, *_changed_volume(edited, plan)}):
        plan = plan.model_copy(update={"generation": edited.generation + 1})
    _refuse(limit_problems(plan, loaded))
    changed = [name for name in Plan.model_fields if name not in {*by_hand, *_NO_LINE}]
    recomputed = [(name, change_text(_dumped(edited, name)), change_text(_dumped(plan, name))) for name in changed]
    lines = tuple(f"{name}: {before} -> {after}" for name, before, after in recomputed if before != after)
    said = (*lines, *_cost_line(edited, plan), *dropped_provenance(edited.promoted))
    return Adoption(plan, {name: overruled[name] for name in fields}, said)


def _changed_volume(edited: Plan, plan: Plan) -> tuple[str, ...]:
    """Return the volume's size where it follows from the hand otherwise than it was locked."""
    return ("volume_size_gb",) if _value(edited.volume_size_gb) != _value(plan.volume_size_gb) else ()


def _reasoned(name: str, followed: Plan, known: tuple[Plan, ...]) -> object:
    """Return a field as it follows from the hand's; in the words of the first known plan that says the same."""
    field = getattr(followed, name)
    return next((its for plan in known if _value(its := getattr(plan, name)) == _value(field)), field)


_NO_LINE = frozenset(
    {"memory", "curve", "band", "knee", "regime", "cost", "pareto", "rejected", "warnings", "adopted", "promoted"}
)


def _cost_line(before: Plan, after: Plan) -> tuple[str, ...]:
    old, new = before.cost.usd_per_hour, after.cost.usd_per_hour
    return (f"usd_per_hour: {change_text(old)} -> {change_text(new)}",) if old != new else ()


def _said(record: Mapping[str, Adopted]) -> Iterator[str]:
    for name, each in record.items():
        yield f"{name} was set by hand to {change_text(each.adopted)}; the planner chose {change_text(each.planned)}."
    if record:
        yield _ALTERNATIVES


def _overruled(name: str, edited: Plan, planned: Plan) -> Adopted:
    return Adopted.model_validate({"planned": _bare(planned, name), "adopted": _bare(edited, name)})


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


def _fixed_elsewhere(fields: tuple[str, ...], loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield each field that can't be set by hand: the spec says it, or it follows from the others."""
    by_hand = {*options_decided_by("planner"), *_BOUNDS, "instance_type", "image", "inference_ami_version"}
    for name in fields:
        if name not in by_hand:
            hint = f"restore it; these can be set by hand: {', '.join(sorted(by_hand))}"
            message = "can't be set by hand: it comes from the spec or follows from other fields"
            yield given_problem(loaded, name, "SEA412", message, hint)


def _out_of_bounds(edited: Plan, fields: tuple[str, ...], loaded: LoadedSpec) -> Iterator[Finding]:
    for name in fields:
        if name in _BOUNDS:
            (least, most), value = _BOUNDS[name], getattr(edited, name).value
            if not least <= value <= most:
                yield given_problem(loaded, name, "SEA416", f"{value:g} is not between {least:g} and {most:g}")
    if "image" in fields:
        yield from _image_problems(edited, loaded)
    known = {build_ami for build in IMAGES.rows if (build_ami := images.ami_version(build.cuda))}
    ami = edited.inference_ami_version.value
    if "inference_ami_version" in fields and ami is not None and ami not in known:
        yield given_problem(
            loaded, "inference_ami_version", "SEA416", f"{ami} is unknown", f"known: {', '.join(known)}"
        )


def _image_problems(edited: Plan, loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield an image that is another version than the plan's: what was decided for one does not hold for the other."""
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


def _follow(edited: Plan, by_hand: set[str], loaded: LoadedSpec) -> Plan:
    """Return the plan that the planner makes of the deployment that was set."""
    fixed = fix_in_spec(edited, by_hand, loaded)
    resolved = resolve_given(edited, fixed, loaded)
    candidate = given_candidate(edited, by_hand, resolved.demand, loaded)
    missed = _missed(edited, candidate, resolved.demand)
    if missed:  # plan it without the objectives, as --accept-slo-miss does
        resolved = without_objectives(resolved, missed)
    feasible = _as_feasible(edited, by_hand, candidate, resolved.demand, loaded)
    return plan_of(fixed, resolved, SearchResult((feasible,), (), 1))


def _missed(edited: Plan, candidate: Candidate, demand: Demand) -> str:
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


def _as_feasible(
    edited: Plan, by_hand: set[str], candidate: Candidate, demand: Demand, loaded: LoadedSpec
) -> FeasibleCandidate:
    """Return the deployment at the size that was set."""
    copies, least = edited.copy_count.value, instances_for(candidate, edited.copy_count.value)
    count = edited.instance_count.value if "instance_count" in by_hand else least
    if count < least:
        message = (
            f"{copies} copies, up to {candidate.copies_per_instance} per instance, need {least} instances, not {count}"
        )
        raise SpecError([given_problem(loaded, "instance_count", "SEA416", message)])
    highest, load = _highest(edited, candidate, demand), _load(edited, candidate, demand)
    score = score_of(demand, candidate, load, candidate.levels.at(highest).output_tok_s)
    return FeasibleCandidate(candidate, highest, copies, load, count, score)


def _highest(edited: Plan, candidate: Candidate, demand: Demand) -> int:
    guess = edited.gate_concurrency_per_copy.value
    return max(1, capacity(candidate.levels, demand.objectives, guess))


def _load(edited: Plan, candidate: Candidate, demand: Demand) -> LoadSpread:
    levels, copies = candidate.levels, edited.copy_count.value
    return spread(candidate.copy, demand.endpoint.workload, copies, lambda level: levels.at(level).output_tok_s)


def _refuse(problems: list[Finding] | tuple[Finding, ...]) -> None:
    if problems:
        raise SpecError(problems)
