from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import SpecError
from seatrial_lint.cloudformation.template import read_template, read_templates
from seatrial_lint.template_rules.check import check_templates
from tests.template_rules.sample import components

if TYPE_CHECKING:
    from pathlib import Path

YAML = """\
AWSTemplateFormatVersion: 2010-09-09
Resources:
  Config:
    Type: AWS::SageMaker::EndpointConfig
    Properties:
      EndpointConfigName: !Sub "${AWS::StackName}-config"
      ExecutionRoleArn: !GetAtt Role.Arn
      ProductionVariants:
        - {VariantName: A, InstanceType: !Ref Type, InitialInstanceCount: !If [Large, 2, 1]}
"""


def stack(template: str, place: str) -> dict[str, object]:
    return {"type": "aws:cloudformation:stack", "environment": place, "properties": {"templateFile": template}}


def test_the_short_forms_of_yaml_are_read_as_their_long_ones(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(YAML)
    (group,) = read_templates([tmp_path / "a.yaml"], "us-east-1")
    ((name, template),) = group.templates.items()
    assert (name, group.region) == ((tmp_path / "a.yaml").as_posix(), "us-east-1")
    properties = template.resources["Config"].properties
    assert properties["ExecutionRoleArn"] == {"Fn::Sub": "${Role.Arn}"}
    (variant,) = template.resources["Config"].at("ProductionVariants").items
    assert variant.raw == {
        "VariantName": "A",
        "InstanceType": {"Fn::Sub": "${Type}"},
        "InitialInstanceCount": {"Fn::If": ["Large", 2, 1]},
    }
    assert [each.rule for each in check_templates(group.templates, group.region)] == ["SEA701"]


def test_a_folder_of_the_cdk_is_grouped_by_account_and_region_of_its_manifest(tmp_path: Path) -> None:
    artifacts = {
        "A": stack("A.template.json", "aws://111111111111/us-east-1"),
        "B": stack("B.template.json", "aws://111111111111/eu-west-3"),
        "C": stack("C.template.json", "aws://unknown-account/unknown-region"),
        "D": {"type": "cdk:asset-manifest", "properties": {"file": "A.assets.json"}},
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    for name in "ABC":
        (tmp_path / f"{name}.template.json").write_text(json.dumps(components()))
    groups = read_templates([tmp_path])
    assert [group.region for group in groups] == ["us-east-1", "eu-west-3", None]
    assert [len(check_templates(group.templates, group.region)) for group in groups] == [0, 3, 0]


def test_a_folder_without_a_manifest_is_searched(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "a.template.json").write_text(json.dumps(components()))
    (group,) = read_templates([tmp_path])
    assert list(group.templates) == [(tmp_path / "stage" / "a.template.json").as_posix()]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("{}", "no Resources"),
        ("- a\n", "it is no mapping"),
        ("a: &b 1\nResources: *b\n", "CloudFormation takes no YAML aliases"),
        ("a: " + "[" * 101, "nested deeper than 64"),
        ('{"Resources":' + "[" * 100_000, "it is nested too deeply"),
        ("a: [\n", "did not find expected node content"),
    ],
)
def test_what_is_no_template_is_told_with_its_reason(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        read_templates([tmp_path / "a.yaml"])
    (problem,) = caught.value.problems
    assert (problem.rule, why in problem.message) == ("SEA451", True)


def test_every_resource_without_a_type_is_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        read_template('{"Resources": {"A": 1, "B": {}, "C": {"Type": "T"}}}', name="a.json")
    assert [problem.message.rpartition(": ")[2] for problem in caught.value.problems] == [
        "the resource A has no Type",
        "the resource B has no Type",
    ]


@pytest.mark.parametrize("scalar", ["!!int '[1'", "!!int 2020-13-45", "!!float x", f"{'9' * 5000}", f"{'1:' * 5000}0"])
def test_a_scalar_that_is_no_number_is_a_text(scalar: str) -> None:
    text = f"Resources: {{A: {{Type: T, Properties: {{X: {scalar}}}}}}}"
    assert isinstance(read_template(text, name="a.yaml").resources["A"].properties["X"], str)


def test_every_path_that_cant_be_read_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError) as caught:
        read_templates([tmp_path / "empty", tmp_path / "missing", tmp_path / "binary"])
    assert [problem.rule for problem in caught.value.problems] == ["SEA101", "SEA101", "SEA451"]
