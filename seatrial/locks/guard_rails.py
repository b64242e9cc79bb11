"""What environment and spec allow, checked again on a locked plan: they, or the lock, may have changed since."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.locks.path import lock_path
from seatrial_base.catalog import images
from seatrial_base.catalog.images import image_repository_uri
from seatrial_base.findings import Finding, Place
from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial.specs.endpoint import Budget
    from seatrial.specs.guard_rails import GuardRails
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import FieldPath


_PRICE_STEP = 1e-4  # a locked price is rounded to it
_PER_TOKEN = ("usd_per_million_output_tokens", "blended_usd_per_million_tokens")
_RAIL, _LIMIT, _IMAGE = "SEA413", "SEA414", "SEA415"


def limit_problems(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return everything in which a plan is beyond the guard rails, its spec's limits or the known images."""
    checks = (*_rails(plan, loaded), *_spec_limits(plan, loaded), *_image(plan, loaded))
    return tuple(dict.fromkeys(checks))


def rail_problems(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return every guard rail of the environment that a plan breaks."""
    return tuple(_rails(plan, loaded))


def usd_per_hour_at_most(plan: Plan) -> float | None:
    """Return the cost per hour of a plan at its most copies, at the prices of the plan; `None` when none is known."""
    if plan.cost.usd_per_hour is None:
        return None
    return plan.cost.usd_per_hour / max(1, plan.instance_count.value) * _most_instances(plan)


def _most_instances(plan: Plan) -> int:
    copies = max(plan.max_copies, plan.copy_count.value)
    needed = math.ceil(copies / max(1, plan.copies_per_instance.value))
    return max(needed, plan.max_instances, plan.instance_count.value)


def _rails(plan: Plan, loaded: LoadedSpec) -> Iterator[Finding]:
    rails = loaded.environment.guard_rails
    instance_type, copies = plan.instance_type.value, max(plan.copy_count.value, plan.max_copies)
    for field, value, allowed in (
        ("instance_type", instance_type, rails.instance_types),
        ("engine", plan.engine.value, rails.engines),
    ):
        if allowed is not None and value not in allowed:
            message = f"{value} is not among {', '.join(allowed)}, {_of_rail(loaded, f'{field}s')}"
            yield _problem(loaded, field, _RAIL, message)
    if rails.max_copies is not None and copies > rails.max_copies:
        field = "max_copies" if copies == plan.max_copies else "copy_count"
        message = f"{copies} copies exceed {rails.max_copies}, {_of_rail(loaded, 'max_copies')}"
        yield _problem(loaded, field, _RAIL, message)
    if rails.usd_per_hour is not None:
        hourly, rail = usd_per_hour_at_most(plan), rails.usd_per_hour
        if hourly is None or hourly - rail > _PRICE_STEP * _most_instances(plan):
            price = "an unknown price" if hourly is None else f"{usd(hourly)} per hour at {copies} copies"
            message = f"{price} exceeds {usd(rail)}, {_of_rail(loaded, 'usd_per_hour')}"
            yield _problem(loaded, "cost.usd_per_hour", _RAIL, message)
    for name, price, bound in _beyond(plan, rails, _PER_TOKEN):
        yield _problem(loaded, f"cost.{name}", _RAIL, f"{price} exceeds {bound}, {_of_rail(loaded, name)}")


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
    for field, value in (("copy_count", copies), ("max_copies", plan.max_copies)):
        if value > scaling.max_copies:
            message = f"{value} exceeds {scaling.max_copies}, {_of_spec(loaded, ('scaling', 'max_copies'))}"
            yield _problem(loaded, field, _LIMIT, message)
    for name, price, bound in _beyond(plan, budget, ("usd_per_hour", *_PER_TOKEN)):
        message = f"{price} exceeds {bound}, {_of_spec(loaded, ('budget', name))}"
        yield _problem(loaded, f"cost.{name}", _LIMIT, message)


def _beyond(plan: Plan, bounds: Budget | GuardRails, names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield each price of a plan that is beyond its bound, or unknown: its name, itself and the bound, as shown."""
    for name in names:
        bound, price = getattr(bounds, name), getattr(plan.cost, name)
        if bound is not None and (price is None or price - bound > _PRICE_STEP):
            yield name, "an unknown price" if price is None else usd(price), usd(bound)


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
        ":" in _name(image.uri) and not _has_tag(image.uri, image.tag)
    ):
        message = f"{image.uri} and {image.repository}:{image.tag} name different images"
        yield _problem(loaded, "image", _IMAGE, message, "restore the committed lock, or plan again")


def _name(uri: str) -> str:
    return uri.rpartition("/")[2].partition("@")[0]


def _has_tag(uri: str, tag: str) -> bool:
    return _name(uri).partition(":")[2] == tag


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
