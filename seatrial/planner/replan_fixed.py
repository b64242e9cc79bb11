"""Plans a deployment whose values are given: they were set by hand in a lock, or tried in another environment.

The planner is asked for this deployment as if the spec had fixed it, and for nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.planner.resolve import resolve
from seatrial.planner.search.candidate import Candidate
from seatrial.planner.search.fitting import candidates
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.load import priced
from seatrial.specs.spec_files import lock_path
from seatrial_base.catalog import neuron
from seatrial_base.catalog.engine_options import options_decided_by
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from seatrial.documents.plan import Plan
    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec


def fix_in_spec(given: Plan, fields: AbstractSet[str], loaded: LoadedSpec) -> LoadedSpec:
    """Return the spec as if it fixed what is given, in an environment that allows every instance type.

    Args:
        given: The plan that holds the values.
        fields: Which of its fields are given; degree, longest request and batched tokens always are.
        loaded: The spec.

    Raises:
        SpecError: SEA416, with every value that the spec does not accept.
    """
    asked = loaded.endpoint.model_dump()
    kept = {"tensor_parallel_degree"} | {"max_model_len", "max_num_batched_tokens"}
    overrides = {name: getattr(given, name).value for name in options_decided_by("planner") if name in fields | kept}
    asked["serving"]["overrides"] |= overrides
    asked["serving"]["instance_types"] = (given.instance_type.value,)
    rails = loaded.environment.guard_rails.model_copy(update={"instance_types": None})
    try:
        endpoint = EndpointSpec.model_validate(asked)
    except ValidationError as error:
        raise SpecError(
            given_problem(loaded, _field(found["loc"]), "SEA416", f"{found['msg']}, not {found['input']!r}")
            for found in error.errors(include_url=False)
        ) from error
    return replace(loaded, endpoint=endpoint, environment=loaded.environment.model_copy(update={"guard_rails": rails}))


def resolve_given(given: Plan, fixed: LoadedSpec, loaded: LoadedSpec) -> Resolved:
    """Resolve what is asked, with the engine's constants of the version that is given.

    Raises:
        SpecError: When the values can't be resolved; each problem is placed in the lock of `loaded`.
    """
    try:
        resolved = resolve(fixed)
    except PlanError as error:
        raise SpecError(_moved(each, loaded) for each in error.problems) from error
    if resolved.demand.engine.compiled_shapes:
        return resolved
    facts = find_engine("tgi" if given.engine.value == "tgi" else "lmi", given.engine_version.value)
    return replace(resolved, demand=replace(resolved.demand, engine=facts))


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
    found = None if seen is None else next(iter(candidates(demand, seen)))
    if not isinstance(found, Candidate):
        because = found.because if found is not None else "not in the catalog"
        raise SpecError([given_problem(loaded, "instance_type", "SEA416", f"{given.instance_type.value}: {because}")])
    copies = given.copies_per_instance.value
    if "copies_per_instance" not in fields:
        return found
    if copies > found.copies_per_instance:
        what = neuron.counted_as(found.instance)
        message = f"{found.instance.accelerator_count} {what} fit {found.copies_per_instance} copies of degree "
        message += f"{found.degree}, not {copies}"
        raise SpecError([given_problem(loaded, "copies_per_instance", "SEA416", message)])
    return replace(found, copies_per_instance=copies)


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
