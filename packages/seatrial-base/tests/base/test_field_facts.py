from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field
from math import inf, nan
from typing import Annotated

import pytest
from pydantic import ValidationError

from seatrial_base.field_facts import Facts, data_field, defaults_of, facts, facts_of, made_of, without
from seatrial_base.frozen_model import FrozenModel, SealedModel, digested, model_field, same_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    name: str = field(metadata=facts("Its name."))
    turns: int = data_field(1, "Turns of a talk.", since="0.2", at_least=1, at_most=9, of="a talk")
    rates: tuple[float, ...] = data_field((), of="an open loop")


class Inner(FrozenModel):
    kind: str = model_field("plain", since="0.2")
    note: str = model_field("", planned=False)


class Spec(FrozenModel):
    name: str
    turns: int = same_as(Twin, "turns", "Of users.", since="0.1", at_most=5)
    backend: str | None = model_field(None, "Which.", since="0.2", neutral="auto")
    tags: tuple[str, ...] = model_field((), planned=False)
    queue: Inner | None = model_field(None, planned="presence", since="0.2")
    inner: Inner = model_field(Inner(), since="0.2")
    several: tuple[Inner, ...] = ()


class Lock(SealedModel):
    because: Annotated[str, Facts(explains=True)]
    chance: float | None = model_field(None, since="0.2")


@pytest.mark.parametrize(
    ("bounds", "number", "wrong"),
    [
        (Facts(above=0), 0, "0 is not above 0"),
        (Facts(above=0), 0.1, ""),
        (Facts(at_least=1), 0, "0 is below 1"),
        (Facts(at_least=1), 1, ""),
        (Facts(below=1), 1.0, "1 is not below 1"),
        (Facts(below=1), 0.9, ""),
        (Facts(at_most=10_000), 10_001, "10,001 is more than 10,000"),
        (Facts(at_most=10_000), 10_000, ""),
        (Facts(above=0, at_most=1), nan, ""),
        (Facts(above=0, at_most=1), inf, ""),
    ],
)
def test_a_number_is_held_to_the_bounds_of_its_field(bounds: Facts, number: float, wrong: str) -> None:
    assert bounds.wrong(number) == wrong


def test_facts_are_read_of_dataclasses_and_of_models_alike() -> None:
    assert facts_of(Twin)["turns"].since == "0.2"
    assert facts_of(Twin)["name"].help == "Its name."
    assert (facts_of(Spec)["turns"].since, facts_of(Spec)["name"]) == ("0.1", Facts())
    assert facts_of(Lock)["because"].explains
    assert defaults_of(Twin) == {"turns": 1, "rates": ()}


def test_a_field_has_text_bounds_and_default_of_its_twin_and_what_it_says_itself() -> None:
    schema = Spec.model_json_schema()["properties"]["turns"]
    assert schema == {
        "type": "integer",
        "title": "Turns",
        "default": 1,
        "minimum": 1,
        "maximum": 5,
        "description": "Turns of a talk. Of users.",
    }
    with pytest.raises(ValidationError):
        Spec(name="a", turns=6)


def test_a_dataclass_takes_fields_by_their_names_and_others_go_before_them() -> None:
    assert made_of(Twin, Spec(name="a", turns=3)) == Twin(name="a", turns=3)
    assert made_of(Twin, Spec(name="a", turns=3), name="b") == Twin(name="b", turns=3)
    assert made_of(Twin, Spec(name="a"), Spec(name="b", turns=2)) == Twin(name="a", turns=1)
    with pytest.raises(TypeError):
        made_of(Twin, Spec(name="a"), other=1)


def test_a_document_without_a_part_has_the_defaults_of_its_fields() -> None:
    talk = Twin(name="a", turns=3, rates=(1.0,))
    assert without(talk, "a talk") == Twin(name="a", rates=(1.0,))
    assert without(talk, "a talk", "an open loop") == Twin(name="a")
    with pytest.raises(FrozenInstanceError):
        talk.turns = 1  # type: ignore[misc]  # it is frozen


@pytest.mark.parametrize(
    ("spec", "counted"),
    [
        (Spec(name="a"), {}),
        (Spec(name="a", tags=("b",)), {}),
        (Spec(name="a", backend="auto"), {}),
        (Spec(name="a", backend="vllm"), {"backend": "vllm"}),
        (Spec(name="a", queue=Inner(kind="other")), {"queue": True}),
        (Spec(name="a", inner=Inner(note="b")), {}),
        (Spec(name="a", inner=Inner(kind="b", note="c")), {"inner": {"kind": "b"}}),
        (Spec(name="a", several=(Inner(), Inner(kind="b"))), {"several": [{}, {"kind": "b"}]}),
    ],
)
def test_a_digest_counts_what_is_planned_and_no_later_default(spec: Spec, counted: dict[str, object]) -> None:
    assert digested(spec) == {"name": "a", "several": [], **counted}


def test_a_lock_holds_a_later_field_only_where_it_says_something() -> None:
    assert Lock(because="so").model_dump(mode="json") == {"because": "so"}
    assert Lock(because="so", chance=0.5).model_dump(mode="json") == {"because": "so", "chance": 0.5}
