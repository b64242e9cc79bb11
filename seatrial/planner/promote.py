"""The plan of an environment from one that was tried in another: a copy serves as it was tried, its size is derived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision, Image, Plan
from seatrial.planner.planner import plan_of
from seatrial.planner.replan_fixed import (
    fix_in_spec,
    given_candidate,
    given_problem,
    resolve_given,
    without_objectives,
)
from seatrial.planner.search.best_first import SearchResult
from seatrial.planner.search.candidate import FeasibleCandidate
from seatrial.planner.search.evaluate import at_its_rate, misses_alone
from seatrial.planner.search.sizing import instances_for, score_of, size
from seatrial_base.catalog import images
from seatrial_base.catalog.engine_options import options_decided_by
from seatrial_base.catalog.images import find_image, image_digest, image_repository_uri
from seatrial_base.errors import SpecError
from seatrial_base.units import counted

if TYPE_CHECKING:
    from seatrial.documents.plan import Promoted
    from seatrial.planner.search.candidate import Candidate
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec

_TRIED = (
    "architecture",
    "engine",
    "engine_version",
    "image",
    "inference_ami_version",
    "instance_type",
    "accelerators_per_instance",
    "copies_per_instance",
    "quantization",
    "cpu_cores_per_copy",
    "memory_min_mb",
    "memory",
    "volume_size_gb",
)
_TIMEOUTS = ("startup_timeout_s", "download_timeout_s")
"""They follow from the weights, unless they were set by hand where the plan was tried."""
_OTHER = "SEA476"


@cache
def tried_fields() -> tuple[str, ...]:
    """Return the fields of a plan that decide how one copy serves."""
    return (*_TRIED, *options_decided_by("planner"))


@dataclass(frozen=True, slots=True)
class TriedCopy:
    """One copy that was tried.

    Attributes:
        plan: The plan of the environment in which it was tried.
        region: Of that environment.
        most_concurrency: The highest measured concurrency per copy that meets the SLO of the environment to come.
    """

    plan: Plan
    region: str
    most_concurrency: int


def promoted_plan(tried: TriedCopy, loaded: LoadedSpec, provenance: Promoted) -> Plan:
    """Return the plan of an environment in which a tried copy is to serve.

    Everything that decides how one copy serves is the tried one. How many copies there are, and what follows from that,
    is what this environment's workload, scaling and budget ask for.

    Args:
        tried: The copy.
        loaded: The spec in the environment to come.
        provenance: The trial.

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
    sized = _sized(candidate, resolved.demand, tried, loaded)
    if missed := _missed(sized, resolved.demand, tried):
        resolved = without_objectives(resolved, missed)
    return _in_words(plan_of(fixed, resolved, SearchResult((sized,), (), 1)), tried, sized)


def _sized(candidate: Candidate, demand: Demand, tried: TriedCopy, loaded: LoadedSpec) -> FeasibleCandidate:
    """Return the deployment at the size that the workload needs of copies which hold the measured concurrency."""
    most = demand.endpoint.scaling.max_copies
    sizing = size(demand, candidate, tried.most_concurrency, lambda level: candidate.levels.at(level).output_tok_s)
    if sizing.needed > most:
        message = (
            f"one copy was measured to meet the SLO up to {counted(tried.most_concurrency, 'concurrent request')}; the "
            f"workload needs {counted(sizing.needed, 'copy', 'copies')}, max_copies is {most}"
        )
        hint = f"set scaling.max_copies to at least {sizing.needed}, or promote a plan with a faster copy"
        raise SpecError([given_problem(loaded, "copy_count", "SEA475", message, hint)])
    load = at_its_rate(candidate, sizing.load) if demand.open_trial else sizing.load
    score = score_of(demand, candidate, load, candidate.levels.at(tried.most_concurrency).output_tok_s)
    instances = instances_for(candidate, load.copy_count)
    return FeasibleCandidate(candidate, tried.most_concurrency, sizing.needed, load, instances, score)


def _missed(sized: FeasibleCandidate, demand: Demand, tried: TriedCopy) -> str:
    """Return that the copy is predicted to miss the SLO that it was measured to meet; empty when it is not."""
    alone = misses_alone(demand, sized.candidate)
    outcome = sized.candidate.levels.at(sized.load.concurrency_per_copy)
    missed = [each for each in demand.objectives if each.ratio(outcome) > 1]
    if alone is None and not missed:
        return ""
    why = alone.because if alone is not None else f"{', '.join(map(str, missed))} is predicted to be missed."
    return f"SEA205, but measured to meet the SLO in {tried.plan.environment}: {why}"


def _in_words(plan: Plan, tried: TriedCopy, sized: FeasibleCandidate) -> Plan:
    """Return the plan with the reasons of its size: they are measured, not predicted."""
    source, most = tried.plan.environment, counted(tried.most_concurrency, "concurrent request")
    measured = f"One copy was measured to meet the SLO up to {most} in {source}"
    copies = f"{measured}; the workload needs at least {counted(sized.needed, 'copy', 'copies')}."
    target = f"The planner's share of what one copy was measured to hold in {source}, {most}."
    return plan.model_copy(
        update={
            "copy_count": Decision(value=plan.copy_count.value, because=copies),
            "target_concurrency_per_copy": Decision(value=plan.target_concurrency_per_copy.value, because=target),
        }
    )


def _image(tried: TriedCopy, loaded: LoadedSpec) -> Decision[Image]:
    """Return the tried image from the registry of this environment.

    Raises:
        SpecError: SEA476 when it is not there, or only a tag tells that it is the same.
    """
    image, because = tried.plan.image.value, f"Tried in {tried.plan.environment}. {tried.plan.image.because}"
    place = _registry_here(image, tried.region, loaded)
    if place != image_repository_uri(image.uri):
        _check_moved(image, place, loaded)
    uri = f"{place}{image.uri.removeprefix(image_repository_uri(image.uri))}"
    return Decision(value=Image(uri=uri, repository=image.repository, tag=image.tag), because=because)


def _registry_here(image: Image, region: str, loaded: LoadedSpec) -> str:
    """Return the registry and repository of the image in this environment: the spec's, or AWS's in its region."""
    own, place = loaded.endpoint.serving.image, image_repository_uri(image.uri)
    if own is not None:
        return image_repository_uri(own)
    before, here = images.registry(region), images.registry(loaded.environment.region)
    registry, _, rest = place.partition("/")
    return f"{here}/{rest}" if registry == before and here is not None else place


def _check_moved(image: Image, place: str, loaded: LoadedSpec) -> None:
    region, build = loaded.environment.region, find_image(image.repository, image.tag)
    problem = ""
    if build is None and image_digest(image.uri) is None:
        problem = f"{place} may hold another image under {image.tag} than the tried one"
    elif build is not None and region not in images.regions_of_build(build):
        problem = f"{image.tag} is not listed for {region}"
    if problem:
        hint = "pin the digest where the plan is tried (`seatrial images lock`), or name an image of both in the spec"
        raise SpecError([given_problem(loaded, "image", _OTHER, problem, hint)])
