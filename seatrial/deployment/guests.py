"""The models that share an endpoint's instances: their specs and locks, and whether all of them fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.deployment.document import LONGEST_NAME, endpoint_name, guest_component
from seatrial.deployment.packing import copies_of, misfits, pack, reservable, smallest_type
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.specs.load import load_spec
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.deployment.packing import Packing
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import FieldPath
    from seatrial_base.findings import Finding

_RULE = "SEA128"
# Fields of `hosting` that the endpoint decides for all of its models.
_OF_THE_HOST = (
    *("kind", "more_models", "traffic", "router", "instance_pools", "routing", "ssm_access", "core_dump_s3_uri"),
    *(f"capacity_reservation_{part}" for part in ("arn", "ends_at", "notice_days")),
)


@dataclass(frozen=True, slots=True)
class Guest:
    """A model that shares an endpoint's instances: its spec and its locked plan."""

    loaded: LoadedSpec
    plan: Plan


def absent_specs(loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield each spec that the hosting of an endpoint names and that is not in its folder."""
    hosting = loaded.endpoint.hosting
    named: list[tuple[FieldPath, str | None, str]] = [
        *((("hosting", "more_models", index), name, _RULE) for index, name in enumerate(hosting.more_models)),
        *(
            (("hosting", "variants", row, "spec"), each.spec, "SEA130")
            for row, each in enumerate(hosting.variants or ())
        ),
        *((("hosting", "shadow", "spec"), each.spec, "SEA130") for each in (hosting.shadow,) if each is not None),
    ]
    for path, name, rule in named:
        file = loaded.path.parent / f"{name}.yaml"
        if name is not None and not file.is_file():
            yield loaded.problem(path, rule, f"there is no spec {file.name} beside this one", f"write {file}")


def read_guests(loaded: LoadedSpec, plan: Plan) -> tuple[Guest, ...]:
    """Read the specs and locks of an endpoint's further models.

    Raises:
        SpecError: With every problem of every one of them.
    """
    guests: list[Guest] = []
    problems: list[Finding] = []
    for index, name in enumerate(loaded.endpoint.hosting.more_models):
        file = loaded.path.parent / f"{name}.yaml"
        path = ("hosting", "more_models", index)
        if not file.is_file():
            problems.append(
                loaded.problem(path, _RULE, f"there is no spec {file.name} beside this one", f"write {file}")
            )
            continue
        try:
            guest = load_spec(file, loaded.environment.name, environments=Path(loaded.place.path).parent)
            problems += _unfit(loaded, plan, guest)
            guests.append(Guest(guest, read_locked_plan(guest)))
            problems += _elsewhere(plan, guests[-1])
        except SeatrialError as error:
            problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return tuple(guests)


def _unfit(host: LoadedSpec, plan: Plan, guest: LoadedSpec) -> Iterator[Finding]:
    """Yield what a guest can't have of its own."""
    spec, name = guest.endpoint, host.endpoint.name
    if spec.name != guest.path.stem:
        message = f"the name {spec.name} differs from the file name, by which {name} names it"
        yield guest.problem(("name",), _RULE, message, f"write `name: {guest.path.stem}`")
    for field in _OF_THE_HOST:
        if field in spec.hosting.model_fields_set:
            message = f"{name} hosts this model, so {field} is its to set"
            yield guest.problem(("hosting", field), _RULE, message, "remove it")
    if spec.trial.mode != "off":
        message = f"{name} hosts this model, and the trial service tries one component of an endpoint"
        hint = 'write `mode: "off"` below trial; try the model on an endpoint of its own first'
        yield guest.problem(("trial", "mode"), _RULE, message, hint)
    component = guest_component(endpoint_name(host.environment.name, name, plan.generation), spec.name)
    if len(component) > LONGEST_NAME:
        message = f"its component {component} has more than {LONGEST_NAME} characters"
        yield guest.problem(("name",), "SEA107", message, "give the endpoint or the model a shorter name")


def _elsewhere(plan: Plan, guest: Guest) -> Iterator[Finding]:
    planned, needed = guest.plan.instance_type.value, plan.instance_type.value
    if planned != needed:
        file, environment = guest.loaded.path.as_posix(), guest.loaded.environment.name
        hint = (
            f"write `instance_types: [{needed}]` below serving, "
            f"then run `seatrial plan {file} --environment {environment} --write`"
        )
        message = f"it is planned for {planned}; {plan.endpoint}, which hosts it, has {needed}"
        yield guest.loaded.problem(("serving", "instance_types"), "SEA214", message, hint)


def packing_of(loaded: LoadedSpec, plan: Plan, guests: Sequence[Guest]) -> Packing:
    """Place the copies of an endpoint's models on its instances.

    Raises:
        SpecError: SEA213 with every model of which a copy does not fit on an instance; SEA110 when the catalog does not
            know the instance type.
    """
    name, path = plan.instance_type.value, ("hosting", "more_models")
    instance = find_instance(name)
    if instance is None:
        hint = "name a type of the catalog: what copies can reserve must be known"
        raise SpecError([loaded.problem(path, "SEA110", f"{name} is not in the catalog", hint)])
    models = [copies_of(plan), *(copies_of(guest.plan) for guest in guests)]
    room = reservable(instance)
    if lacking := misfits(models, room):
        larger = smallest_type(models, instance, INSTANCES.rows)
        hint = f"plan all of them for {larger}" if larger else f"no type with the {instance.accelerator} holds them"
        texts = [
            f"a copy of {model} does not fit on {name}: it reserves {', '.join(what)}"
            for model, what in lacking.items()
        ]
        raise SpecError([loaded.problem(path, "SEA213", text, hint) for text in texts])
    return pack(models, room)


def packing_lines(packing: Packing) -> tuple[str, ...]:
    """Return a packing as text, a line for each state."""
    states = (
        ("planned copies", packing.planned),
        ("most copies", packing.most),
        ("most copies while all are updated", packing.updating),
    )
    return tuple(f"{title} on {counted(len(placed), 'instance')}: {_instances(placed)}" for title, placed in states)


def _instances(placed: Sequence[Sequence[str]]) -> str:
    alike = Counter(map(tuple, placed))
    texts = {names: ", ".join(f"{count} {name}" for name, count in Counter(names).items()) for names in alike}
    return "; ".join(f"{number} with {texts[names]}" for names, number in alike.items())
