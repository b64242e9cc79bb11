"""Relations of fields: judged by what validated, whatever else is wrong; every row names fields of the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.specs.contradictions import RULES, contradictions
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.relations import Fields, Relation, UnknownValueError, at_most, needs
from seatrial.specs.yaml_source import Document
from seatrial_base.frozen_model import models_in

if TYPE_CHECKING:
    from pydantic import BaseModel

    from seatrial.specs.yaml_source import Yaml

VALID: dict[str, Yaml] = {
    "name": "chat",
    "model": {"hub_id": "org/model"},
    "workload": {"input_tokens": 512, "output_tokens": 128, "concurrency": 8},
}
BROKEN: tuple[dict[str, Yaml], ...] = (
    {"scaling": {"min_copies": 4}},
    {"trial": {"requests_per_concurrency": 9, "max_requests_per_concurrency": 3}},
    {"trial": {"max_requests_per_concurrency": 2}},  # the other is 3 where it is not written
    {"hosting": {"kind": "single_model"}},
    {"hosting": {"shadow": {"spec": "other"}, "provision_timeout_s": 600}},
    {"hosting": {"routing": {"strategy": "prefix_aware", "prefix_length": 2048}}},
    {"serving": {"adapters": [{"name": "sql", "s3_uri": "s3://bucket/sql.tar.gz"}]}},
    {"model": {"hub_id": "org/model", "jumpstart_metadata": "chat.json", "hub_content_arn": None}},
)
ROWS = [rule for rule in RULES if isinstance(rule, Relation)]


def document_of(*parts: dict[str, Yaml]) -> Document:
    data = VALID
    for part in parts:
        data = {**data, **part}
    return Document("chat.yaml", data, {}, {})


def findings_of(document: Document) -> list[str]:
    return [str(problem) for problem in contradictions(document)]


@pytest.mark.parametrize("part", BROKEN, ids=lambda part: next(iter(part)))
def test_a_mistake_elsewhere_hides_no_relation_and_no_default(part: dict[str, Yaml]) -> None:
    alone = findings_of(document_of(part))

    assert alone
    assert findings_of(document_of(part, {"description": 5, "unknown": 1})) == alone


def test_a_value_that_did_not_validate_is_not_compared() -> None:
    assert findings_of(document_of({"scaling": {"min_copies": 4, "max_copies": 2_000}})) == []
    assert findings_of(document_of({"scaling": {"min_copies": "4"}})) == []


def test_a_field_that_did_not_validate_is_written_all_the_same() -> None:
    (problem,) = contradictions(document_of({"hosting": {"provision_timeout_s": "long"}}))

    assert (problem.rule, problem.place.field) == ("SEA127", "hosting.provision_timeout_s")


@pytest.mark.parametrize("wrong", [{}, {"unknown": 1}], ids=["valid", "with-a-mistake"])
def test_a_value_is_the_default_where_nothing_is_written(wrong: dict[str, Yaml]) -> None:
    fields = Fields(document_of(wrong, {"model": {"hub_id": "org/model"}}), EndpointSpec)

    assert fields.value("scaling.max_copies") == EndpointSpec.model_validate(VALID).scaling.max_copies
    assert fields.value("hosting.kind") == "inference_component"
    assert fields.value("model.shape.layers") is None
    assert fields.written("scaling.max_copies") is None


def test_what_is_in_a_wrong_mapping_is_unknown() -> None:
    with pytest.raises(UnknownValueError):
        Fields(document_of({"scaling": 5}), EndpointSpec).value("scaling.max_copies")


def test_texts_show_the_values() -> None:
    low, high = "scaling.min_copies", "scaling.max_copies"
    fields = Fields(document_of({"scaling": {"min_copies": 2}}), EndpointSpec)

    assert [str(each) for each in at_most("SEA108", low, high, hint="at most {1}")(fields)] == [
        "chat.yaml: scaling.min_copies: SEA108: min_copies 2 exceeds max_copies 1\n  hint: at most 1"
    ]
    assert [str(each) for each in needs("SEA108", low, high, hint="give it")(fields)] == [
        "chat.yaml: scaling.min_copies: SEA108: min_copies needs max_copies\n  hint: give it"
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.rule}-{row.place}")
def test_each_row_names_fields_of_the_spec(row: Relation) -> None:
    conditions = [condition.path for condition in (*row.when, *row.unless)]
    for path in (row.place, *conditions, *row.ordered, *row.shown):
        model: type[BaseModel] = EndpointSpec
        for part in path.split("."):
            assert part in model.model_fields, path
            model = next(models_in(model.model_fields[part].annotation), model)


def test_most_rules_of_a_spec_are_rows() -> None:
    assert len(ROWS) > 2 * (len(RULES) - len(ROWS))
