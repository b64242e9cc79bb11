"""The JSON schema of a result: it is current, it takes real results, and it refuses what the strict reader refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from seatrial.report.document.page import render_json
from seatrial.report.result_schema import result_schema_text
from seatrial_load.documents.result import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import TrialResult

COMMITTED = Path(__file__).parents[2] / "docs" / "schema" / "trial-result.schema.json"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(result_schema_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_committed_schema_is_current() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == result_schema_text(), "run: seatrial schema --write"


def test_the_schema_names_its_version() -> None:
    schema = json.loads(result_schema_text())
    assert schema["title"] == f"Trial result, schema {SCHEMA_VERSION}"
    assert schema["properties"]["schema_version"]["const"] == SCHEMA_VERSION


def test_every_property_of_a_level_is_described() -> None:
    level = json.loads(result_schema_text())["$defs"]["LevelResult"]["properties"]
    told = "Time to first token, of an open loop from the time that the request was due; None when nothing streamed."
    assert level["ttft_ms"]["description"] == told
    assert [name for name, one in level.items() if "description" not in one] == []


@pytest.mark.parametrize("name", ["real", "rich", "local", "empty", "hopeless"])
def test_every_result_is_valid(name: str, request: pytest.FixtureRequest, validator: Draft202012Validator) -> None:
    result: TrialResult = request.getfixturevalue(name)
    assert [error.message for error in validator.iter_errors(json.loads(render_json(result)))] == []


def spoilt(spoil: Callable[[dict[str, object]], object], result: TrialResult) -> dict[str, object]:
    document: dict[str, object] = json.loads(result.to_json())
    spoil(document)
    return document


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda result: result.pop("levels"), "'levels' is a required property"),
        (lambda result: result.update(schema_version="1"), "'3' was expected"),
        (lambda result: result.update(speed=3), "Additional properties are not allowed ('speed' was unexpected)"),
        (lambda result: result.update(duration_s="4"), "'4' is not of type 'number'"),
        (
            lambda result: result["verdict"].update(status="maybe"),
            "'maybe' is not one of ['pass', 'fail', 'inconclusive']",
        ),
    ],
)
def test_what_is_no_result_is_refused(
    spoil: Callable[[dict[str, object]], object], message: str, rich: TrialResult, validator: Draft202012Validator
) -> None:
    assert [error.message for error in validator.iter_errors(spoilt(spoil, rich))] == [message]
