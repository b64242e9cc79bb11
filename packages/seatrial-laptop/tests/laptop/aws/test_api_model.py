from __future__ import annotations

import re

import pytest
from botocore.model import ListShape, MapShape, Shape, StructureShape

from seatrial_laptop.aws.api import ApiError, check_api_request, coerced, input_shape, python_pattern
from seatrial_laptop.aws.autoscaling.scalable_targets import OPERATIONS as AUTOSCALING
from seatrial_laptop.aws.control_plane.sagemaker import OPERATIONS as SAGEMAKER


def shapes_below(shape: Shape, seen: dict[str, Shape]) -> None:
    if shape.name in seen:
        return
    seen[shape.name] = shape
    if isinstance(shape, StructureShape):
        for member in shape.members.values():
            shapes_below(member, seen)
    elif isinstance(shape, ListShape):
        shapes_below(shape.member, seen)
    elif isinstance(shape, MapShape):
        shapes_below(shape.value, seen)


@pytest.mark.parametrize(
    ("service", "operations"), [("sagemaker", SAGEMAKER), ("application-autoscaling", AUTOSCALING)]
)
def test_every_pattern_of_every_request_compiles_in_python(service: str, operations: dict[str, object]) -> None:
    seen: dict[str, Shape] = {}
    for operation in operations:
        shapes_below(input_shape(service, operation), seen)
    patterns = [shape.metadata["pattern"] for shape in seen.values() if "pattern" in shape.metadata]
    assert len([re.compile(python_pattern(pattern)) for pattern in patterns]) == len(patterns) > 5


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"EndpointName": "-x", "EndpointConfigName": "c"},
            "Value '-x' at 'EndpointName' failed to satisfy constraint: Member must satisfy regular expression "
            "pattern: [a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}",
        ),
        ({"EndpointName": "x"}, 'Missing required parameter in input: "EndpointConfigName"'),
        (
            {"EndpointName": "x", "EndpointConfigName": 1},
            "Invalid type for parameter EndpointConfigName, value: 1, type: <class 'int'>, valid types: <class 'str'>",
        ),
    ],
)
def test_a_request_is_held_against_the_services_model(request_: dict[str, object], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_api_request("sagemaker", "CreateEndpoint", request_)
    assert (refused.value.code, refused.value.message) == ("ValidationException", message)


def test_the_scalars_of_a_template_take_the_types_of_the_api() -> None:
    shape = input_shape("sagemaker", "CreateEndpointConfig")
    variant = {
        "VariantName": "A",
        "InitialInstanceCount": "2",
        "InitialVariantWeight": "0.5",
        "EnableSSMAccess": "true",
    }
    assert coerced(shape, {"ProductionVariants": [variant], "Unknown": "1"}) == {
        "ProductionVariants": [
            {"VariantName": "A", "InitialInstanceCount": 2, "InitialVariantWeight": 0.5, "EnableSSMAccess": True}
        ],
        "Unknown": "1",
    }
    assert coerced(input_shape("sagemaker", "CreateModel"), {"PrimaryContainer": {"Environment": {"N": 4}}}) == {
        "PrimaryContainer": {"Environment": {"N": "4"}}
    }


def test_what_is_no_number_stays_for_the_check_to_refuse() -> None:
    shape = input_shape("sagemaker", "CreateEndpointConfig")
    assert coerced(shape, {"ProductionVariants": [{"InitialInstanceCount": "two"}]}) == {
        "ProductionVariants": [{"InitialInstanceCount": "two"}]
    }


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        (r"\p{Print}+", "concurrency-per-copy", "a\nb"),
        (r"[\p{Alnum}\-]+", "aws-cn", "aws cn"),
        (r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)", "stage: dev", "a;b"),
        (r"[\p{L}\p{M}\p{S}\p{N}\p{P}]+", "a-b$[c]", "a b"),
    ],
)
def test_java_s_character_classes_mean_the_same_in_python(pattern: str, accepted: str, refused: str) -> None:
    assert re.fullmatch(python_pattern(pattern), accepted)
    assert not re.fullmatch(python_pattern(pattern), refused)
