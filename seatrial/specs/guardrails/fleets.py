"""The instances that may run of an endpoint and its optimization job, as guard rails on types and money count them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.hosting import HostingSpec, ShadowSpec, VariantSpec
    from seatrial.specs.yaml_source import FieldPath


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInstances:
    """What a plan says of the instances of one model.

    Attributes:
        instance_type: The instance type; the first of the pools.
        instance_count: Instances at the start.
        most_copies: Copies at most.
        most_instances: Instances at the most copies.
        surge_instances: Instances more during an update.
    """

    instance_type: str
    instance_count: int
    most_copies: int
    most_instances: int
    surge_instances: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFleet:
    """The instances of one variant.

    Attributes:
        path: The field of the spec that requests them.
        types: Every instance type that may run, in order of priority.
        copies: Copies at most, an update's left out.
        instances: Instances at most, an update's left out.
        updating: Instances at most while the endpoint is updated.
    """

    path: FieldPath
    types: tuple[str, ...]
    copies: int
    instances: int
    updating: int

    def usd_per_hour(self, price: Callable[[str], float | None]) -> float | None:
        """Return what all of them cost at the price of the dearest type; `None` where a price is unknown."""
        dearest = _dearest(self.types, price)
        return None if dearest is None else dearest * self.updating


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInstance:
    """What the optimization job of a recipe may use: a recipe has one for all its entries.

    SageMaker chooses the instance that a job runs on, and tells it only when the job is paid; what is known before is
    the type that the artifacts are made for.

    Attributes:
        path: The field of the spec that requests it: the entry that allows the longest time.
        types: Instance types that the artifacts are made for; a job takes one, so several are a mistake of the recipe.
        hours: When it is stopped; of one attempt.
    """

    path: FieldPath
    types: tuple[str, ...]
    hours: float

    def usd_per_hour(self, price: Callable[[str], float | None]) -> float | None:
        """Return the price of the dearest type; `None` where a price is unknown."""
        return _dearest(self.types, price)


def job_instance(endpoint: EndpointSpec, planned: str) -> JobInstance | None:
    """Return what the optimization job of a spec may use; `None` when its recipe needs none.

    `planned`: the plan's instance type, which a job that names none is for.
    """
    jobs = [(index, entry, entry.job) for index, entry in enumerate(endpoint.optimization)]
    needed = [(index, entry, job) for index, entry, job in jobs if job is not None]
    if not needed:
        return None
    index, entry, longest = max(needed, key=lambda each: each[2].max_hours)
    is_written = getattr(getattr(entry, entry.name), "job", None) is not None
    named = dict.fromkeys(job.instance_type for _, _, job in needed if job.instance_type is not None)
    return JobInstance(
        path=("optimization", index, entry.name, *(("job",) if is_written else ())),
        types=tuple(named) or (planned,),
        hours=longest.max_hours,
    )


def _dearest(types: Iterable[str], price: Callable[[str], float | None]) -> float | None:
    """Return the highest price of some types; `None` where one is unknown."""
    prices = [price(name) for name in types]
    known = [each for each in prices if each is not None]
    return max(known) if len(known) == len(prices) else None


NO_OTHERS: Mapping[str, tuple[EndpointSpec, ModelInstances]] = MappingProxyType({})


def fleets_of(
    endpoint: EndpointSpec, size: ModelInstances, others: Mapping[str, tuple[EndpointSpec, ModelInstances]] = NO_OTHERS
) -> tuple[InstanceFleet, ...]:
    """Return the instances of every variant of an endpoint, its shadow included.

    A variant of another spec that is not given is left out. Further models (`more_models`) are none of a variant's:
    their copies are packed on the same instances, and the size has to count them.

    An update of one variant starts its surge; one of several starts a second fleet beside all of them, as SageMaker
    rolls no endpoint of several variants (developer guide, deployment guardrails, exclusions).

    `others`: specs that variants run, with their plans' sizes, by name.
    """
    hosting, scaling, shadow = endpoint.hosting, endpoint.scaling, endpoint.hosting.shadow
    named: list[tuple[FieldPath, VariantSpec | ShadowSpec]] = [
        (("hosting", "variants", index), variant) for index, variant in enumerate(hosting.variants or ())
    ]
    if shadow is not None:
        named.append((("hosting", "shadow"), shadow))
    alone = InstanceFleet(
        path=("scaling", "max_copies"),
        types=_types(hosting, size),
        copies=size.most_copies,
        instances=size.most_instances,
        updating=size.most_instances + size.surge_instances,
    )
    if hosting.kind == "inference_component" or not named:
        return (alone,)
    sources: dict[str | None, tuple[EndpointSpec, ModelInstances]] = {None: (endpoint, size)}
    sources.update(others)
    fleets = [] if hosting.variants else [replace(alone, updating=2 * alone.instances)]
    # Production variants are scaled to the endpoint's own limits. A shadow is not scaled: it gets copies of requests,
    # and its count is fixed.
    scaled = 0 if scaling.is_fixed else scaling.max_copies
    for path, variant in named:
        if variant.spec in sources:
            source, planned = sources[variant.spec]
            start = planned.instance_count if variant.instance_count is None else variant.instance_count
            most = start if variant is shadow else max(start, scaled)
            types = _types(source.hosting, planned)
            fleets.append(InstanceFleet(path=path, types=types, copies=most, instances=most, updating=2 * most))
    return tuple(fleets)


def _types(hosting: HostingSpec, size: ModelInstances) -> tuple[str, ...]:
    return tuple(dict.fromkeys((size.instance_type, *(hosting.instance_pools or ()))))


def least_size(endpoint: EndpointSpec) -> ModelInstances:
    """Return the smallest size that any plan of a spec has, for what can be told without one."""
    fewest, most = max(1, endpoint.scaling.min_copies), endpoint.scaling.max_copies
    kinds = (*(endpoint.hosting.instance_pools or ()), *(endpoint.serving.instance_types or ()))
    return ModelInstances(
        instance_type=next(iter(kinds), ""),
        instance_count=fewest,
        most_copies=most,
        most_instances=most if endpoint.hosting.kind == "single_model" else 1,
        surge_instances=0,
    )
