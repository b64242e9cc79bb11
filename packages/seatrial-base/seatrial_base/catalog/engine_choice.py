"""Which engine serves a model best: the engines with their backends, and the rules that speak for and against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.catalog.rows import CatalogTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial_base.catalog.images import Flavour, ImageFamily

Fact = Literal["accelerators", "architecture", "quantization", "speculation"]
Facts = dict[Fact, str]


@dataclass(frozen=True, slots=True)
class EngineCandidate:
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
    engine: ImageFamily
    backends: tuple[str, ...]
    flavours: tuple[Flavour, ...]
    last_lmi: int | None
    automatic: bool


@dataclass(frozen=True, slots=True)
class EngineRule:
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


ENGINE_CANDIDATES: Final = CatalogTable(EngineCandidate, "engine_choice.json#options", key="name")
"""By preference."""
ENGINE_RULES: Final = CatalogTable(EngineRule, "engine_choice.json#rules", key="options")


@dataclass(frozen=True, slots=True)
class EngineCase:
    """What the rules look at.

    Attributes:
        facts: `accelerators` (`gpu`, `neuron` or `both`), `architecture` (its family), `quantization` and
            `speculation` (the method); one that is unknown or not asked for is absent.
        instances: The allowed instance types, for people.
    """

    facts: Facts
    instances: str = "the instance type"


def best_candidate(case: EngineCase, among: Iterable[EngineCandidate] | None = None) -> EngineCandidate:
    """Return the first option that no rule excludes; the first of all when every one is excluded."""
    candidates = tuple(among) if among is not None else automatic_candidates()
    free = [option for option in candidates if not rule_reasons(case, option, "excludes")]
    return (free or list(candidates))[0]


def rule_reasons(case: EngineCase, option: EngineCandidate, *verdicts: str) -> list[str]:
    """Return the sentences of the rules that fit a case and say one of the verdicts of an option."""
    words = {"title": option.title, "instances": case.instances} | {
        str(name): fact for name, fact in case.facts.items()
    }
    fitting = [rule for rule in ENGINE_RULES.having(option.name) if rule.verdict in verdicts]
    return [rule.because.format_map(words) for rule in fitting if _fits(rule, case.facts)]


def why_chosen(case: EngineCase, option: EngineCandidate) -> str:
    """Return why an option is chosen: what speaks for it, and what against those that were passed over."""
    others = [other for other in automatic_candidates() if other != option]
    preferred = (
        automatic_candidates()[: automatic_candidates().index(option)] if option in automatic_candidates() else ()
    )
    passed = [other for other in others if other in preferred or not rule_reasons(case, other, "excludes")]
    against = [sentence for other in passed for sentence in rule_reasons(case, other, "excludes", "against")[:1]]
    return " ".join([*rule_reasons(case, option, "for"), *against])


def choice_warnings(case: EngineCase, option: EngineCandidate, fixed_by: str) -> tuple[str, ...]:
    """Return a warning of what speaks against an option, in one piece; none when nothing does.

    Args:
        case: The case.
        option: The option that is taken.
        fixed_by: The fields of the spec that fix it, as `serving.engine`; empty when it was chosen.
    """
    against, best = rule_reasons(case, option, "excludes", "against"), best_candidate(case)
    if not against:
        return ()
    if option == best:
        return (" ".join(against),)
    favour = rule_reasons(case, option, "for")
    started = f"SEA353: {fixed_by} fixes {option.title}; Seatrial would take {best.title}."
    return (" ".join([started, *against, *(f"Advantage: {sentence}" for sentence in favour)]),)


def status_of(engine: str, flavour: str) -> str | None:
    """Return how an engine's line of images stands when it gets no new versions; `None` when it does."""
    line = (engine, flavour)
    option = next((option for option in ENGINE_CANDIDATES.rows if (option.engine, option.flavours[0]) == line), None)
    fitting = ENGINE_RULES.having(option.name) if option else ()
    return next((rule.because for rule in fitting if rule.id.endswith("-status")), None)


def automatic_candidates() -> tuple[EngineCandidate, ...]:
    """Return the options that are chosen among unless the spec fixes one, best first."""
    return tuple(option for option in ENGINE_CANDIDATES.rows if option.automatic)


def _fits(rule: EngineRule, facts: Facts) -> bool:
    within = all(facts.get(fact) in values for fact, values in rule.when.items())
    return within and all(fact in facts and facts[fact] not in values for fact, values in rule.unless.items())
