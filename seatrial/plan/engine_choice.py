"""Which engine and backend serve a model best, by a table of rules, each with its reason and source.

An option is an engine with a backend. A rule speaks for an option, against it, or excludes it, where the facts of the
case fit. The first option that nothing excludes is chosen; they are sorted by preference. The table follows the LMI
backend guide (djl-serving, backend-selection.md) and the state of each container's releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from seatrial.catalog.table import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Family
    from seatrial.catalog.images import Flavour
    from seatrial.catalog.instances import Instance
    from seatrial.spec.endpoint import ServingSpec

Fact = Literal["accelerators", "architecture", "quantization", "speculation"]
Facts = dict[Fact, str]
_TABLE = "engine_choice.json"
_UNKNOWN_FAMILY = "inline"  # a shape that is written in the spec names no architecture


@dataclass(frozen=True, slots=True)
class Option:
    """An engine with a backend.

    Attributes:
        name: Its name in the rules.
        title: Its name for people.
        engine: The container.
        backends: What `serving.backend` says for it.
        flavours: The lines of images that run it.
        last_lmi: Number of the last LMI build that has it; `None` where the lines themselves say it.
        automatic: It may be chosen where the spec fixes nothing.
    """

    name: str
    title: str
    engine: Family
    backends: tuple[str, ...]
    flavours: tuple[Flavour, ...]
    last_lmi: int | None
    automatic: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    Attributes:
        id: Its name.
        options: The options that it speaks of.
        verdict: What it says of them.
        when: Values of facts, all of which must fit; nothing fits every case.
        unless: Values of facts with which it says nothing; it says nothing either where such a fact is unknown.
        because: The reason, a sentence; `{title}`, `{instances}` and the facts are filled in.
        source: Where it was read.
        date: When that was written.
    """

    id: str
    options: tuple[str, ...]
    verdict: Literal["for", "against", "excludes"]
    when: Mapping[Fact, tuple[str, ...]]
    unless: Mapping[Fact, tuple[str, ...]]
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Case:
    """What the rules look at.

    Attributes:
        facts: `accelerators` (`gpu`, `neuron` or `both`), `architecture` (its family), `quantization` and
            `speculation` (the method); one that is unknown or not asked for is absent.
        instances: The allowed instance types, for people.
    """

    facts: Facts
    instances: str = "the instance type"


def case_of(serving: ServingSpec, architecture: Architecture, allowed: Iterable[Instance]) -> Case:
    """Return the case of an endpoint."""
    types = tuple(allowed)
    neuron = {instance.link == "neuron" for instance in types}
    drafted = serving.overrides.speculative_decoding
    found: dict[Fact, str | None] = {
        "accelerators": "both" if len(neuron) > 1 else "neuron" if neuron == {True} else "gpu",
        "architecture": None if architecture.family == _UNKNOWN_FAMILY else architecture.family,
        "quantization": serving.overrides.quantization or architecture.checkpoint_quantization,
        "speculation": drafted.method if drafted else None,
    }
    named = types[0].instance_type if len(types) == 1 else "every allowed instance type"
    return Case({name: value for name, value in found.items() if value is not None}, named)


def best_option(case: Case, among: Iterable[Option] | None = None) -> Option:
    """Return the first option that no rule excludes; the first of all when every one is excluded."""
    candidates = tuple(among) if among is not None else automatic()
    free = [option for option in candidates if not reasons(case, option, "excludes")]
    return (free or list(candidates))[0]


def reasons(case: Case, option: Option, *verdicts: str) -> list[str]:
    """Return the sentences of the rules that fit a case and say one of the verdicts of an option."""
    words = {"title": option.title, "instances": case.instances} | {
        str(name): fact for name, fact in case.facts.items()
    }
    fitting = [rule for rule in rules() if option.name in rule.options and rule.verdict in verdicts]
    return [rule.because.format_map(words) for rule in fitting if _fits(rule, case.facts)]


def why(case: Case, option: Option) -> str:
    """Return why an option is chosen: what speaks for it, and what against those that were passed over."""
    others = [other for other in automatic() if other != option]
    preferred = automatic()[: automatic().index(option)] if option in automatic() else ()
    passed = [other for other in others if other in preferred or not reasons(case, other, "excludes")]
    against = [sentence for other in passed for sentence in reasons(case, other, "excludes", "against")[:1]]
    return " ".join([*reasons(case, option, "for"), *against])


def opinion(case: Case, option: Option, fixed_by: str) -> tuple[str, ...]:
    """Return a warning of what speaks against an option, in one piece; none when nothing does.

    Args:
        case: The case.
        option: The option that is taken.
        fixed_by: The fields of the spec that fix it, as `serving.engine`; empty when it was chosen.
    """
    against, best = reasons(case, option, "excludes", "against"), best_option(case)
    if not against:
        return ()
    if option == best:
        return (" ".join(against),)
    favour = reasons(case, option, "for")
    started = f"SEA353: {fixed_by} fixes {option.title}; Seatrial would take {best.title}."
    return (" ".join([started, *against, *(f"In its favour: {sentence}" for sentence in favour)]),)


def status_of(engine: str, flavour: str) -> str | None:
    """Return how an engine's line of images stands when it gets no new versions; `None` when it does."""
    line = (engine, flavour)
    option = next((option for option in options() if (option.engine, option.flavours[0]) == line), None)
    fitting = (rule for rule in rules() if option is not None and option.name in rule.options)
    return next((rule.because for rule in fitting if rule.id.endswith("-status")), None)


def automatic() -> tuple[Option, ...]:
    """Return the options that are chosen among unless the spec fixes one, best first."""
    return tuple(option for option in options() if option.automatic)


@cache
def options() -> tuple[Option, ...]:
    """Return every option, by preference."""
    return read_rows(_TABLE, Option, part="options")


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule."""
    return read_rows(_TABLE, Rule, part="rules")


def _fits(rule: Rule, facts: Facts) -> bool:
    within = all(facts.get(fact) in values for fact, values in rule.when.items())
    return within and all(fact in facts and facts[fact] not in values for fact, values in rule.unless.items())
