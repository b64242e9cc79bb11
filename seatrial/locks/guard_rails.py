"""Limits of environment and spec, checked again on a locked plan: they, or the lock, may have changed since."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.specs.environment import expired_waivers
from seatrial.specs.guardrails.checks import guard_rail_problems, waiver_name
from seatrial.specs.guardrails.fleets import InstanceFleet, ModelInstances, fleets_of, job_instance
from seatrial.specs.prices import list_price
from seatrial.specs.spec_files import lock_path
from seatrial_base.catalog import images
from seatrial_base.catalog.images import image_repository_uri
from seatrial_base.findings import Finding, Place
from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from seatrial.documents.plan import Plan
    from seatrial.specs.endpoint import Budget, EndpointSpec
    from seatrial.specs.guardrails.limits import GuardRails
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import FieldPath


_PRICE_STEP = 1e-4  # a locked price is rounded to it
_PER_TOKEN = ("usd_per_million_output_tokens", "blended_usd_per_million_tokens")
_LESS = "ask for less or cheaper instances, or change the guard rail"
_RAIL, _LIMIT, _IMAGE = "SEA413", "SEA414", "SEA415"


@dataclass(frozen=True, slots=True)
class BrokenRail:
    """A guard rail that what would be created breaks.

    Attributes:
        path: The field of the spec that requests it.
        field: The field of the plan that says so.
    """

    rail: str
    path: FieldPath
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Beside:
    """What an endpoint runs of other specs.

    Attributes:
        variants: The specs that variants run and their plans, by name.
        guests: The specs of the further models on its instances and their plans.
        guest_copies: Copies at most of those.
        instances: Instances at most with further models, an update's included; `None` without any.
    """

    variants: Mapping[str, tuple[EndpointSpec, Plan]] = field(default_factory=dict)
    guests: tuple[tuple[EndpointSpec, Plan], ...] = ()
    guest_copies: int = 0
    instances: int | None = None


ALONE = Beside()


def limit_problems(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return everything in which a plan is beyond the guard rails, its spec's limits or the known images."""
    checks = (*rail_problems(plan, loaded), *_spec_limits(plan, loaded), *_image(plan, loaded))
    return tuple(dict.fromkeys(checks))


def rail_problems(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return every guard rail of the environment that a locked plan breaks, by the fields of the lock.

    What it runs of other specs is judged with them (`created_problems`).
    """
    return tuple(
        _problem(loaded, each.field, _RAIL, f"{each.message}, {_of_rail(loaded, each.rail)}")
        for each in broken_rails(plan, loaded)
    )


def created_problems(plan: Plan, loaded: LoadedSpec, beside: Beside = ALONE) -> tuple[Finding, ...]:
    """Return every guard rail that what would be created breaks, by the fields of the spec: SEA111."""
    return tuple(
        loaded.problem(each.path, "SEA111", f"{each.message}, {_of_rail(loaded, each.rail)}", _LESS)
        for each in broken_rails(plan, loaded, beside)
    )


def waived_findings(loaded: LoadedSpec, plan: Plan | None = None) -> tuple[Finding, ...]:
    """Return what an endpoint breaks of the guard rails that are waived for it, as notes: SEA647.

    `plan`: the plan that is judged with the spec; `None` without one.
    """
    rails = loaded.environment.guard_rails
    notes: dict[Finding, None] = {}
    for waiver in rails.waived(waiver_name(loaded.endpoint, loaded.document)):
        others = tuple(each for each in rails.waivers if each.rail != waiver.rail)
        place = loaded.environment.model_copy(update={"guard_rails": rails.model_copy(update={"waivers": others})})
        kept = set(_every_problem(loaded, plan))
        text = f"waived until {waiver.expires}: {waiver.reason} (approved by {waiver.approver})"
        for each in _every_problem(replace(loaded, environment=place), plan):
            if each not in kept:
                notes[replace(each, rule="SEA647", message=f"{each.message}; {text}", hint="", severity="note")] = None
    return tuple(notes)


def waiver_findings(loaded: LoadedSpec, today: date, plan: Plan | None = None) -> tuple[Finding, ...]:
    """Return each waiver of an endpoint that has ended, SEA645, then what is waived (`waived_findings`).

    `today`: in UTC.
    """
    name = waiver_name(loaded.endpoint, loaded.document)
    ended = expired_waivers(loaded.environment, loaded.place, today, name)
    return (*ended, *waived_findings(loaded, plan))


def _every_problem(loaded: LoadedSpec, plan: Plan | None) -> tuple[Finding, ...]:
    by_itself = guard_rail_problems(loaded.endpoint, loaded.environment, loaded.document, loaded.place)
    return (*by_itself, *(created_problems(plan, loaded) if plan is not None else ()))


def broken_rails(plan: Plan, loaded: LoadedSpec, beside: Beside = ALONE) -> Iterator[BrokenRail]:
    """Yield every guard rail that what would be created breaks; what can't be judged breaks its rail."""
    rails, fleets = loaded.rails, created_fleets(plan, loaded, beside)
    if rails.engines is not None and plan.engine.value not in rails.engines:
        message = f"{plan.engine.value} is not among {', '.join(rails.engines)}"
        yield BrokenRail("engines", ("serving", "engine"), "engine", message)
    if rails.instance_types is not None:
        for name, path in ((name, fleet.path) for fleet in fleets for name in fleet.types):
            if name not in rails.instance_types:
                message = f"{name} is not among {', '.join(rails.instance_types)}"
                yield BrokenRail("instance_types", path, "instance_type", message)
    yield from _copies(plan, rails, fleets, beside)
    yield from _cost(plan, loaded, fleets)
    yield from _jobs(plan, loaded, beside)


def created_fleets(plan: Plan, loaded: LoadedSpec, beside: Beside = ALONE) -> tuple[InstanceFleet, ...]:
    """Return the instances that would be created of an endpoint, as the constructs create them."""
    others = {name: (spec, _size(other, spec)) for name, (spec, other) in beside.variants.items()}
    fleets = fleets_of(loaded.endpoint, _size(plan, loaded.endpoint), others)
    if beside.instances is None:
        return fleets
    return tuple(replace(each, instances=beside.instances, updating=beside.instances) for each in fleets)


def _size(plan: Plan, spec: EndpointSpec) -> ModelInstances:
    copies = max(plan.max_copies, plan.copy_count.value, spec.scaling.max_copies)
    needed = math.ceil(copies / max(1, plan.copies_per_instance.value))
    return ModelInstances(
        instance_type=plan.instance_type.value,
        instance_count=plan.instance_count.value,
        most_copies=copies,
        most_instances=max(needed, plan.max_instances, plan.instance_count.value),
        surge_instances=plan.surge_instances.value,
    )


def _copies(plan: Plan, rails: GuardRails, fleets: Sequence[InstanceFleet], beside: Beside) -> Iterator[BrokenRail]:
    copies = sum(fleet.copies for fleet in fleets) + beside.guest_copies
    if rails.max_copies is None or copies <= rails.max_copies:
        return
    alone = len(fleets) == 1 and not beside.guest_copies
    whose = "" if alone else " of all models and variants"
    path: FieldPath = max(fleets, key=lambda fleet: fleet.copies).path
    path = ("hosting", "more_models") if beside.guest_copies else path
    field = "copy_count" if alone and plan.copy_count.value > plan.max_copies else "max_copies"
    yield BrokenRail("max_copies", path, field, f"{copies} copies{whose} exceed {rails.max_copies}")


def _cost(plan: Plan, loaded: LoadedSpec, fleets: Sequence[InstanceFleet]) -> Iterator[BrokenRail]:
    """Yield each rail on money: prices are list prices, whatever discount the spec says it has."""
    rails = loaded.rails
    costs = [fleet.usd_per_hour(lambda name: list_price(name, loaded)) for fleet in fleets]
    hourly = _total(costs)
    if rails.usd_per_hour is not None and _exceeds(hourly, rails.usd_per_hour):
        price = _priced(hourly, " per hour")
        dearest = max(fleets, key=lambda fleet: fleet.usd_per_hour(lambda name: list_price(name, loaded)) or math.inf)
        message = f"{price} at list prices for {_instances(fleets)} exceeds {usd(rails.usd_per_hour)}"
        yield BrokenRail("usd_per_hour", dearest.path, "cost.usd_per_hour", message)
    # The price of the catalog or of the team's file counts, not what the lock says: whoever writes a spec writes it
    # too.
    listed, planned = list_price(plan.instance_type.value, loaded), plan.cost.usd_per_hour
    above = None if listed is None or not planned else listed * plan.instance_count.value / planned
    for name, price, bound in _beyond(plan, rails, _PER_TOKEN, above):
        message = f"{price} at list prices exceeds {bound}"
        yield BrokenRail(name, ("budget", name), f"cost.{name}", message)


def _jobs(plan: Plan, loaded: LoadedSpec, beside: Beside) -> Iterator[BrokenRail]:
    """Yield each rail on money that optimization jobs break: per hour each by itself, as it runs before the instances.

    What other specs ask for is reported where the endpoint names them.
    """
    rails = loaded.rails
    specs: list[tuple[FieldPath, EndpointSpec, Plan]] = [((), loaded.endpoint, plan)]
    specs += [(("hosting", "more_models"), *guest) for guest in beside.guests]
    specs += [(("hosting", "variants"), *variant) for variant in beside.variants.values()]
    jobs = [
        (place or job.path, job)
        for place, spec, other in specs
        if (job := job_instance(spec, other.instance_type.value)) is not None
    ]
    costs: list[float | None] = []
    for path, job in jobs:
        hourly, types = job.usd_per_hour(lambda name: list_price(name, loaded)), " or ".join(job.types)
        costs.append(None if hourly is None else hourly * job.hours)
        if rails.usd_per_hour is not None and _exceeds(hourly, rails.usd_per_hour):
            price = _priced(hourly, " per hour")
            message = f"{price} at list prices for an optimization job of {types} exceeds {usd(rails.usd_per_hour)}"
            yield BrokenRail("usd_per_hour", path, "instance_type", message)
    total = _total(costs)
    if jobs and rails.job_usd is not None and _exceeds(total, rails.job_usd):
        counts = Counter(f"{job.hours:g} h of {' or '.join(job.types)}" for _, job in jobs)
        what = ", ".join(f"{count} x {each}".removeprefix("1 x ") for each, count in counts.items())
        message = f"{_priced(total)} at list prices for {what} exceeds {usd(rails.job_usd)}"
        dearest = max(range(len(jobs)), key=lambda at: costs[at] or math.inf)
        yield BrokenRail("job_usd", jobs[dearest][0], "instance_type", message)


def _total(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def _exceeds(price: float | None, bound: float) -> bool:
    return price is None or price - bound > _PRICE_STEP


def _priced(price: float | None, per: str = "") -> str:
    return "an unknown price" if price is None else f"{usd(price)}{per}"


def _instances(fleets: Iterable[InstanceFleet]) -> str:
    """Return the instances that may run, by type: `2 x ml.g5.2xlarge, 1 more during an update`."""
    steady, updating = Counter[str](), Counter[str]()
    for fleet in fleets:
        name = " or ".join(fleet.types)
        steady[name] += fleet.instances
        updating[name] += fleet.updating
    parts = (
        f"{count} x {name}" + (f" and {updating[name] - count} more in an update" if updating[name] > count else "")
        for name, count in steady.items()
    )
    return ", ".join(parts)


def _spec_limits(plan: Plan, loaded: LoadedSpec) -> Iterator[Finding]:
    serving, scaling, budget = loaded.endpoint.serving, loaded.endpoint.scaling, loaded.endpoint.budget
    instance_type, copies = plan.instance_type.value, plan.copy_count.value
    if serving.instance_types is not None and instance_type not in serving.instance_types:
        path = ("serving", "instance_types")
        message = f"{instance_type} is not among {', '.join(serving.instance_types)}, {_of_spec(loaded, path)}"
        yield _problem(loaded, "instance_type", _LIMIT, message)
    if copies < scaling.min_copies:
        message = f"{copies} is below {scaling.min_copies}, {_of_spec(loaded, ('scaling', 'min_copies'))}"
        yield _problem(loaded, "copy_count", _LIMIT, message)
    for name, value in (("copy_count", copies), ("max_copies", plan.max_copies)):
        if value > scaling.max_copies:
            message = f"{value} exceeds {scaling.max_copies}, {_of_spec(loaded, ('scaling', 'max_copies'))}"
            yield _problem(loaded, name, _LIMIT, message)
    # Of a rate, what is in flight is predicted; in a closed loop the spec says it, so that no lock can say less.
    gate, peak = plan.gate_concurrency_per_copy.value, loaded.endpoint.workload.concurrency
    if peak is not None and gate * copies < peak:
        where = loaded.document.where(("workload", "concurrency"))
        message = f"{gate} on {copies} copies is below workload.concurrency, {peak} ({where})"
        yield _problem(loaded, "gate_concurrency_per_copy", _LIMIT, message)
    for name, price, bound in _beyond(plan, budget, ("usd_per_hour", *_PER_TOKEN)):
        message = f"{price} exceeds {bound}, {_of_spec(loaded, ('budget', name))}"
        yield _problem(loaded, f"cost.{name}", _LIMIT, message)


def _beyond(
    plan: Plan, bounds: Budget | GuardRails, names: tuple[str, ...], above: float | None = 1.0
) -> Iterator[tuple[str, str, str]]:
    """Yield each price of a plan that is beyond its bound, or unknown: its name, itself and the bound, as shown."""
    for name in names:
        bound, planned = getattr(bounds, name), getattr(plan.cost, name)
        price = None if planned is None or above is None else planned * above
        if bound is not None and _exceeds(price, bound):
            yield name, _priced(price), usd(bound)


def _image(plan: Plan, loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield an image of a registry that is neither the spec's nor known for the engine in the region."""
    image, pinned, region = plan.image.value, loaded.endpoint.serving.image, loaded.environment.region
    place = image_repository_uri(image.uri)
    if pinned is not None:
        if place != image_repository_uri(pinned):
            path = ("serving", "image")
            message = f"{image.uri} is not {pinned}, {_of_spec(loaded, path)}"
            yield _problem(loaded, "image", _IMAGE, message)
        return
    registry = images.registry(region)
    known = [f"{registry}/{repository}" for repository in images.repositories(plan.engine.value) if registry]
    if place not in known:
        where = ", ".join(known) or "none"
        message = f"{image.uri} is not in a known registry for {plan.engine.value} in {region}: {where}"
        hint = "set serving.image in the spec for an image of your own, and plan again"
        yield _problem(loaded, "image", _IMAGE, message, hint)
    elif image.repository != place.rpartition("/")[2] or (
        ":" in _name(image.uri) and _name(image.uri).partition(":")[2] != image.tag
    ):
        message = f"{image.uri} and {image.repository}:{image.tag} name different images"
        yield _problem(loaded, "image", _IMAGE, message, "restore the committed lock, or plan again")


def _name(uri: str) -> str:
    return uri.rpartition("/")[2].partition("@")[0]


def _of_spec(loaded: LoadedSpec, path: FieldPath) -> str:
    return _by(loaded.document.where(path), path)


def _of_rail(loaded: LoadedSpec, rail: str) -> str:
    where = loaded.place.where(("guard_rails", rail))
    return _by(where if loaded.environment.owner is None else loaded.set_by(rail), ("guard_rails", rail))


def _by(where: str, path: FieldPath) -> str:
    return f"which {'.'.join(map(str, path))} allows ({where})"


def _problem(loaded: LoadedSpec, field: str, rule: str, message: str, hint: str = "") -> Finding:
    where, name = lock_path(loaded.path).as_posix(), loaded.environment.name
    again = f"plan again (`seatrial plan {loaded.path.as_posix()} --environment {name} --write`), or change the limit"
    return Finding(rule, Place.at(where, f"{name}.{field}"), message, hint or again)
