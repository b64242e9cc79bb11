"""Facts of one field of a document, on the field itself.

Digests and documents, bounds, options of a command line, and tables of the documentation are read off it. A field says
it where it says its default, a required field with its type:

    turns: int = data_field(1, "Mean number of turns of a conversation.", since="0.2", at_least=1)    # of a dataclass
    input_tokens: int = field(metadata=facts("Mean prompt length, in tokens.", above=0))
    turns: int = model_field(1, "Mean number of turns of a conversation.", since="0.2")    # of a pydantic model
    because: Annotated[str, Facts(explains=True)]

`frozen_model` has `model_field`: this module needs the standard library alone.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from _typeshed import DataclassInstance

T = TypeVar("T")
DocumentT = TypeVar("DocumentT", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Option:
    """How a field is set on a command line.

    Attributes:
        flag: As it is written, `--level-seconds`.
        group: Where the help lists it; empty for the group of the field's document.
        help: One sentence for users where the field's own first sentence is not it.
        metavar: What stands for the value in the help; empty for the type's.
        needs: Flags without one of which it says nothing.
        choices: The values that it takes; empty for all of the field's type.
        default: Its value where neither the command line nor a spec says it and the field has no default.
        unit: The option's unit over the field's: 60 for minutes of a field in seconds.
        repeats: Whether it may be written several times.
        sets: What the flag alone sets; None of an option that takes a value.
    """

    flag: str
    group: str = ""
    help: str = ""
    metavar: str = ""
    needs: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    default: object = None
    unit: float = 1
    repeats: bool = False
    sets: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of a field; the defaults are those of a field that was there from the beginning.

    Attributes:
        help: What users read of it: full sentences, the first of which says what it is.
        since: Release that added the field to a document that was written before, as `0.2`. Where it has its default,
            documents and digests leave it out: so they stay what earlier releases wrote, and no lock is stale.
        neutral: A value that counts as the default does.
        planned: Whether a plan is made for it. What is only deployed is in no digest, and plans nothing again; of a
            `presence` only whether there is one counts.
        explains: Whether it only explains what other fields decide: it is in no digest of a plan.
        above: Numbers are above it.
        at_least: They are it, or above.
        below: They are below it.
        at_most: They are it, or below; of a list, the greatest.
        stddev_of: The field whose standard deviation it is.
        of: What the field is a part of: without it, it has its default (`without`).
        option: How a command line sets it.
    """

    help: str = ""
    since: str | None = None
    neutral: object = None
    planned: bool | Literal["presence"] = True
    explains: bool = False
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    stddev_of: str = ""
    of: str = ""
    option: Option | None = None

    def leave_out(self, value: object, default: object) -> bool:
        """Return whether a value is written nowhere, since earlier releases had no such field."""
        return self.since is not None and (value == default or (self.neutral is not None and value == self.neutral))

    def wrong(self, number: float) -> str:
        """Return which bound a number breaks; empty where it breaks none, or is not finite."""
        if not -inf < number < inf:
            return ""
        if self.above is not None and number <= self.above:
            return f"{number:,.12g} is not above {self.above:,.12g}"
        if self.at_least is not None and number < self.at_least:
            return f"{number:,.12g} is below {self.at_least:,.12g}"
        if self.below is not None and number >= self.below:
            return f"{number:,.12g} is not below {self.below:,.12g}"
        if self.at_most is not None and number > self.at_most:
            return f"{number:,.12g} is more than {self.at_most:,.12g}"
        return ""


_NO_FACTS = Facts()


def facts(help: str = "", **known: Any) -> Mapping[str, Facts]:  # noqa: A002, ANN401 (as `Facts` has them)
    """Return facts as the metadata of a dataclass's field."""
    return {"facts": Facts(help=help, **known)}


def data_field(default: T, help: str = "", **known: Any) -> T:  # noqa: A002, ANN401 (as `Facts` has them)
    """Return a field of a dataclass with a default and its facts."""
    return field(default=default, metadata=facts(help, **known))


@cache
def facts_of(kind: type[Any]) -> Mapping[str, Facts]:
    """Return the facts of each field of a dataclass or of a pydantic model."""
    carried: Mapping[str, Iterable[object]]
    if is_dataclass(kind):
        carried = {each.name: tuple(each.metadata.values()) for each in fields(kind)}
    else:
        carried = {name: each.metadata for name, each in kind.model_fields.items()}
    return {
        name: next((each for each in known if isinstance(each, Facts)), _NO_FACTS) for name, known in carried.items()
    }


@cache
def defaults_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return the default of each field of a dataclass that has one."""
    made = {each.name: each.default_factory() for each in fields(kind) if each.default_factory is not MISSING}
    return made | {each.name: each.default for each in fields(kind) if each.default is not MISSING}


def without(document: DocumentT, *parts: str) -> DocumentT:
    """Return a dataclass without some parts: their fields (`Facts.of`) have their defaults."""
    defaults = defaults_of(type(document))
    left = {name: defaults[name] for name, known in facts_of(type(document)).items() if known.of in parts}
    return replace(document, **left)


def made_of(kind: type[DocumentT], *sources: object, **others: object) -> DocumentT:
    """Make a dataclass of the fields that other documents have by the same names.

    What neither they nor `others` have is left at its default. Which fields meet by their names is listed in a test.

    Args:
        sources: The documents; an earlier one goes before a later one.
        others: Fields with values of their own, which go before all.
    """
    names = [name for name in facts_of(kind) if name not in others]
    taken = {name: getattr(each, name) for each in reversed(sources) for name in names if hasattr(each, name)}
    return kind(**taken, **others)
