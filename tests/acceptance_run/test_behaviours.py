"""The table of behaviours: each row names a test and a document that exist, and nothing that is there has no row."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import botocore.session
import pytest

from seatrial_laptop.aws.autoscaling.scalable_targets import OPERATIONS as OF_AUTOSCALING
from seatrial_laptop.aws.cloudformation.resource_types import (
    BUCKET,
    BUDGET,
    CHANNELS,
    HOOK,
    ROLE,
    autoscaling_types,
    service_catalog_types,
)
from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.control_plane.sagemaker import OPERATIONS as OF_SAGEMAKER
from seatrial_laptop.aws.faults import ControlSettings
from seatrial_laptop.aws.service_catalog import OPERATIONS as OF_SERVICE_CATALOG
from tests.acceptance.behaviours import KINDS, QUESTION, Behaviour, api_names, behaviours
from tests.acceptance.questions import QUESTIONS

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = behaviours()
COVERED: Final = {each for row in ROWS for each in row.covers}


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.behaviour)
def test_a_row_names_its_kind_its_document_and_a_test(row: Behaviour) -> None:
    file, _, name = row.test.partition("::")
    assert (ROOT / file).is_file(), file
    assert name in functions_of(file), row.test
    assert row.kind in KINDS
    if row.kind == "document":
        assert row.source.startswith(("https://docs.aws.amazon.com/", "api:")), row.behaviour
    if row.kind == "executed":
        assert row.source == ""


@pytest.mark.parametrize("row", [row for row in ROWS if api_names(row)], ids=lambda row: row.behaviour)
def test_an_api_reference_has_what_a_row_takes_from_it(row: Behaviour) -> None:
    for service, name in api_names(row):
        model = botocore.session.get_session().get_service_model(service)
        assert name in {*model.operation_names, *model.shape_names}, f"{service}: {name}"


@pytest.mark.parametrize("switch", ControlSettings.model_fields)
def test_a_setting_of_the_control_interface_has_a_row(switch: str) -> None:
    assert switch in COVERED


OPERATIONS: Final = [
    *(f"sagemaker:{name}" for name in OF_SAGEMAKER),
    *(f"sagemaker:{verb}" for kind in Kind for verb in (f"Describe{kind}", f"List{kind}s")),
    *(f"application-autoscaling:{name}" for name in OF_AUTOSCALING),
    *(f"servicecatalog:{name}" for name in OF_SERVICE_CATALOG),
    *(
        f"sagemaker-runtime:{name}"
        for name in ("InvokeEndpoint", "InvokeEndpointAsync", "InvokeEndpointWithResponseStream")
    ),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_is_supported_has_a_row(operation: str) -> None:
    assert operation in COVERED


NOTHING: Final[Any] = None
"""Instead of what the handlers of a type work with: their names alone are asked for."""
TYPES: Final = (
    *(f"AWS::SageMaker::{kind}" for kind in Kind),
    *autoscaling_types(NOTHING),
    *service_catalog_types(NOTHING),
    BUCKET,
    BUDGET,
    *CHANNELS,
    HOOK,
    ROLE,
)


@pytest.mark.parametrize("name", TYPES)
def test_a_resource_type_of_ours_has_a_row(name: str) -> None:
    assert name in COVERED


ANSWERED: Final = [f"{QUESTION}{each.name}" for each in QUESTIONS if each.assumed and not each.not_asked_because]


@pytest.mark.parametrize("question", ANSWERED)
def test_what_is_taken_for_the_answer_to_a_question_has_a_row(question: str) -> None:
    assert question in COVERED


def test_nothing_is_covered_that_is_not_there() -> None:
    there = {*OPERATIONS, *TYPES, *ControlSettings.model_fields, *ANSWERED}
    assert COVERED - there == set()


def test_no_behaviour_has_two_rows() -> None:
    assert [text for text, count in Counter(row.behaviour for row in ROWS).items() if count > 1] == []
