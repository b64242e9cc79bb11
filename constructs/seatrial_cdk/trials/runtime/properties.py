"""The properties of the two custom resources of an endpoint: synthesis writes them, the function reads them.

Older stacks call a newer function, and a deployment is rolled back to older properties. So a property keeps its name
and its meaning, and one that came later has the default that stands for its absence.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Phase: TypeAlias = Literal["candidate", "deployed"]
"""Before endpoint and component are updated, or after."""
Update: TypeAlias = Literal["candidate", "in_place", "verify_only"]

PROPERTY: Final = "property"


@dataclass(frozen=True, slots=True)
class Property:
    """How one field is written and read.

    Attributes:
        name: The property's name in templates and events.
        write: Returns its text.
        read: Reads its text.
        empty: Its text where a deletion has none that can be read.
        left_out: Where a value that is the default is not written: a property more updates the custom resource of every
            stack that is there, and what serves is tried again. `existing`: of an endpoint that something else made.
    """

    name: str
    write: Callable[[Any], str]
    read: Callable[[str], Any]
    empty: str = ""
    left_out: Literal["nowhere", "existing", "everywhere"] = "nowhere"


def _number(value: float) -> str:
    """Write a number as `seatrial_base.units.exported` does, and with every digit where six lose some."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _text(name: str, **options: Any) -> dict[str, Property]:  # noqa: ANN401 (fields of Property)
    return {PROPERTY: Property(name, str, str, **options)}


def _float(name: str, **options: Any) -> dict[str, Property]:  # noqa: ANN401 (likewise)
    return {PROPERTY: Property(name, _number, float, empty="0", **options)}


def _int(name: str, **options: Any) -> dict[str, Property]:  # noqa: ANN401 (likewise)
    return {PROPERTY: Property(name, str, int, empty="0", **options)}


def _list(name: str, **options: Any) -> dict[str, Property]:  # noqa: ANN401 (likewise)
    return {PROPERTY: Property(name, ",".join, lambda text: tuple(filter(None, text.split(","))), **options)}


def _word(name: str, *choices: str) -> dict[str, Property]:
    # A word that this release does not know is the first.
    return {PROPERTY: Property(name, str, lambda text: text if text in choices else choices[0])}


def _flag(name: str) -> dict[str, Property]:
    written = Property(name, lambda on: "on" if on else "off", lambda text: text != "off", left_out="everywhere")
    return {PROPERTY: written}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProperties:
    """What must be live, how it is tried, and what hangs on it, in the order of templates.

    Attributes:
        specification: What a copy of the component is, as JSON.
        component: A digest of what else than its specification makes CloudFormation update the component.
        copy_count: Copies where nothing serves yet.
        most_copies: Copies that the endpoint has room for.
        request: The trial's request as JSON, without `target` and `expected`.
        budget_s: The trial measures no longer than this.
        start_s: How long a candidate may download and start on an instance.
        instance_s: How long the instance for it may take; only where no accelerators are free.
        accelerators: Of one instance; 0 where that is not known.
        alarms: Names of the alarms that stop a load beside users.
        replaces: Components of the endpoint's former generations, the newest first.
        alias: Name of the SSM parameter that names the endpoint that serves; empty without one.
        removal: Whether the logs of containers are deleted with the stack.
        release_s: How long a deletion waits until AWS has released what a deleted endpoint leaves behind.
        rolls_back: Whether the alarms roll this deployment back.
        topics: ARNs of topics of the endpoint alone that are told of findings of its scheduled trials.
        attributes: Names of the attributes that are answered: CloudFormation keeps those of a resource that it does not
            update, so a release with more of them must change a property.
    """

    phase: Phase = field(default="deployed", metadata=_word("Phase", "deployed", "candidate"))
    endpoint_name: str = field(metadata=_text("EndpointName"))
    inference_component_name: str = field(metadata=_text("InferenceComponentName"))
    endpoint_config_name: str = field(metadata=_text("EndpointConfigName"))
    model_name: str = field(metadata=_text("ModelName"))
    specification: str = field(default="{}", metadata=_text("Specification", left_out="existing"))
    component: str = field(default="", metadata=_text("Component", left_out="existing"))
    copy_count: int = field(default=1, metadata=_int("CopyCount"))
    most_copies: int = field(default=1_000_000, metadata=_int("MostCopies", left_out="existing"))
    plan_digest: str = field(metadata=_text("PlanDigest"))
    request: str = field(metadata=_text("Request"))
    mode: str = field(metadata=_text("Mode"))
    update: Update = field(default="candidate", metadata=_word("Update", "candidate", "in_place", "verify_only"))
    budget_s: float = field(metadata=_float("BudgetSeconds"))
    start_s: float = field(default=0.0, metadata=_float("StartSeconds", left_out="existing"))
    instance_s: float = field(default=0.0, metadata=_float("InstanceSeconds", left_out="existing"))
    accelerators: int = field(default=0, metadata=_int("InstanceAccelerators", left_out="existing"))
    fallback_target: float = field(metadata=_float("FallbackTarget"))
    alarms: Sequence[str] = field(default=(), metadata=_list("Alarms"))
    replaces: Sequence[str] = field(default=(), metadata=_list("Replaces", left_out="existing"))
    alias: str = field(default="", metadata=_text("Alias", left_out="existing"))
    removal: str = field(default="retain", metadata=_text("Removal", left_out="existing"))
    release_s: float = field(default=0, metadata=_float("ReleaseSeconds", left_out="existing"))
    rolls_back: bool = field(default=True, metadata=_flag("RollbackAlarms"))
    topics: Sequence[str] = field(default=(), metadata=_list("Topics", left_out="everywhere"))
    attributes: Sequence[str] = field(default=(), metadata=_list("Attributes", left_out="everywhere"))

    @property
    def is_existing(self) -> bool:
        """Whether something else made the endpoint: what is live can't be proven, and users are there already."""
        return not self.endpoint_config_name

    @property
    def environment(self) -> str:
        """The environment's name."""
        return f"{json.loads(self.request).get('environment', '')}"


def write_properties(properties: TrialProperties) -> dict[str, str]:
    """Write properties as templates have them; `read_properties` returns the same."""
    left_out = {"everywhere", "existing"} if properties.is_existing else {"everywhere"}
    values = ((each, getattr(properties, each.name)) for each in fields(TrialProperties))
    return {
        _of(each).name: _of(each).write(value)
        for each, value in values
        if not (_of(each).left_out in left_out and value == each.default)
    }


def read_properties(document: Mapping[str, str]) -> TrialProperties:
    """Read the properties of a request; what is unknown in them is left out.

    Raises:
        KeyError: With the name of one that is missing and has no default.
        ValueError: One is no number.
    """
    values: dict[str, Any] = {}
    for each in fields(TrialProperties):
        name = _of(each).name
        if name in document or each.default is MISSING:
            values[each.name] = _of(each).read(document[name])
    return TrialProperties(**values)


def read_what_is_there(document: Mapping[str, object]) -> TrialProperties:
    """Read properties of which nothing is required, those of a deletion: the stack must go, whatever they are."""
    values: dict[str, Any] = {}
    for each in fields(TrialProperties):
        known, text = _of(each), document.get(_of(each).name)
        values[each.name] = known.read(known.empty) if each.default is MISSING else each.default
        with suppress(ValueError):
            values[each.name] = known.read(text) if isinstance(text, str) else values[each.name]
    return TrialProperties(**values)


def _of(each: Any) -> Property:  # noqa: ANN401 (a field of a dataclass)
    facts: Property = each.metadata[PROPERTY]
    return facts
