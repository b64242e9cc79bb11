"""The catalog has the schema of every resource type that a construct makes."""

from __future__ import annotations

import ast
import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]  # no type information published

from seatrial.repository.answers import Answers, new_targets
from seatrial.repository.write import repository_files
from seatrial_base.catalog.resource_types import WITHOUT_HANDLERS, find_resource_schema
from seatrial_laptop.aws.cloudformation.property_checks import property_problem
from tests.resource_types import resolved_resources, unknown_types
from tests.stacks.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Template = Any  # a document of CloudFormation
BASELINES = sorted((ROOT / "tests" / "examples" / "baselines").glob("*.json"))


def test_stacks_of_endpoints_and_trials(assembly: Path) -> None:
    templates = [json.loads(file.read_text()) for file in assembly.glob("*.template.json")]
    assert len(templates) > 3
    assert unknown_types(each for template in templates for each in template["Resources"].values()) == []


def test_the_properties_of_every_resource_are_valid(assembly: Path) -> None:
    for file in sorted(assembly.glob("*.template.json")):
        template = json.loads(file.read_text())
        problems = [property_problem(*each) for each in resolved_resources(template, {})]
        assert [each for each in problems if each] == [], file.name


@pytest.mark.parametrize("file", BASELINES, ids=lambda file: file.stem)
def test_stacks_of_examples(file: Path) -> None:
    stacks = json.loads(file.read_text())
    assert unknown_types(each for resources in stacks.values() for each in resources.values()) == []


def test_roles_of_workflows() -> None:
    targets = new_targets({"dev": "123456789012"}, "us-east-1")
    answers = Answers(name="team", ci="github", targets=targets, source="acme/team", owner="@acme/platform")
    template: Template = cfn_yaml.loads(repository_files(answers)["bootstrap/roles.yaml"])
    assert unknown_types(template["Resources"].values()) == []


def test_resources_that_constructs_name_one_by_one() -> None:
    made = {name for file in (ROOT / "constructs").rglob("*.py") for name in _made(ast.parse(file.read_text()))}
    assert len(made) > 20
    assert unknown_types({"Type": name} for name in made) == []


def _made(module: ast.Module) -> Iterator[str]:
    """Yield the types of the `Cfn…` classes that a module names."""
    modules = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == "aws_cdk"
        for alias in node.names
        if alias.name.startswith("aws_")
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            named = getattr(importlib.import_module(f"aws_cdk.{modules[node.value.id]}"), node.attr)
            if name := getattr(named, "CFN_RESOURCE_TYPE_NAME", None):
                yield name


def test_a_type_without_rights_is_listed_once() -> None:
    assert not any(schema.permissions for name in WITHOUT_HANDLERS if (schema := find_resource_schema(name)))
    assert all(WITHOUT_HANDLERS.values())
