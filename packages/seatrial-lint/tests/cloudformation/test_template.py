"""A template knows on which line a value of a resource stands."""

from __future__ import annotations

import json

import pytest

from seatrial_lint.cloudformation.template import read_template

YAML = """\
Resources:
  Config:
    Type: AWS::SageMaker::EndpointConfig
    Properties:
      Tags: !Ref Tags
      ProductionVariants:
        - VariantName: A
          InstanceType: !Ref Type
        - {VariantName: B}
"""
DOCUMENT = {
    "Resources": {
        "Model": {
            "Type": "AWS::SageMaker::Model",
            "Properties": {"PrimaryContainer": {"Environment": {"a.b": "1", "a": "2"}}},
        }
    }
}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("Properties.ProductionVariants.0.InstanceType", 8),
        ("Properties.ProductionVariants.1.VariantName", 9),
        ("Properties.ProductionVariants.1.InstanceType", 9),
        ("Properties.ProductionVariants.7", 6),
        ("Properties.Tags.0.Key", 5),
        ("Properties.ExecutionRoleArn", 4),
        ("", 3),
    ],
)
def test_the_line_is_that_of_the_innermost_part_that_is_written(path: str, line: int) -> None:
    template = read_template(YAML, name="a.yaml")
    assert template.line("Config", path) == line


def test_a_name_with_dots_is_one_name() -> None:
    template = read_template(json.dumps(DOCUMENT, indent=1), name="a.json")
    environment = "Properties.PrimaryContainer.Environment"
    assert [template.line("Model", f"{environment}.{name}") for name in ("a.b", "a")] == [8, 9]


def test_what_the_template_lacks_has_no_line() -> None:
    assert read_template(YAML, name="a.yaml").line("Other", "Properties") == 0
