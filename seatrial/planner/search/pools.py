"""Whether each instance pool can hold a copy of what is planned for the first one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.planner.search.candidate import Candidate
from seatrial.planner.search.fitting import candidates
from seatrial_base.catalog import neuron
from seatrial_base.catalog.instances import find_instance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.plan import Layout
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding


def pool_problems(loaded: LoadedSpec, demand: Demand, layout: Layout) -> Iterator[Finding]:
    """Yield each pool that can't hold a copy: a component has one size, whatever instance it runs on.

    Args:
        loaded: The spec.
        demand: What a copy must do.
        layout: The deployment on the first pool: degree, type and vCPUs of a copy.
    """
    degree = layout.tensor_parallel_degree.value
    fixed = _with(demand, {"tensor_parallel_degree": degree, "dtype": layout.dtype.value})
    pools = loaded.endpoint.hosting.instance_pools or ()
    for index, name in enumerate(pools[1:], 1):
        instance, path = _found(name), ("hosting", "instance_pools", index)
        if instance is None:
            hint = "name types of the catalog: a copy must be known to fit"
            yield loaded.problem(path, "SEA110", f"{name} is not in the catalog", hint)
        elif because := _why_not(fixed, instance, layout.cpu_cores_per_copy):
            hint = f"remove it, or order the pools so that the smallest is first: {pools[0]} needs degree {degree}"
            yield loaded.problem(path, "SEA212", f"{name} can't hold a copy: {because}", hint)


def _found(name: str) -> Instance | None:
    """Return an instance type as the planner sees it: one with AWS Neuron in cores."""
    instance = find_instance(name)
    return None if instance is None else neuron.in_cores(instance)


def _with(demand: Demand, fixed: Mapping[str, int | str]) -> Demand:
    serving = demand.endpoint.serving
    overrides = serving.overrides.model_copy(update=fixed)
    serving = serving.model_copy(update={"overrides": overrides})
    return replace(demand, endpoint=demand.endpoint.model_copy(update={"serving": serving}))


def _why_not(demand: Demand, instance: Instance, cpu_cores: float) -> str:
    if cpu_cores > instance.vcpus:
        return f"it has {instance.vcpus} vCPUs; a copy reserves {cpu_cores:g}."
    found = list(candidates(demand, instance))
    if any(isinstance(each, Candidate) for each in found):
        return ""
    return " ".join(each.because for each in found if not isinstance(each, Candidate))
