"""Schemas and rights of resource types: kept as cfn-lint ships them, and needed only where a property asks for them."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from scripts import build_resource_schemas
from seatrial_base.catalog.resource_types import (
    ADDED_RIGHTS,
    CONDITIONS,
    EVERY_TYPE,
    HANDLERS,
    NAMED_KEYS,
    PASSED_ROLES,
    RESOURCE_SCHEMAS,
    WITHOUT_HANDLERS,
    HandlerCondition,
    ResourceSchema,
    conditions_of,
    find_resource_schema,
    handler_actions,
    needed_actions,
    values_at,
)

ROLE = "AWS::IAM::Role"


def test_the_file_is_what_the_script_writes() -> None:
    assert build_resource_schemas.OUTPUT.read_text(encoding="utf-8") == build_resource_schemas.document()


@pytest.mark.parametrize("schema", RESOURCE_SCHEMAS.rows, ids=lambda schema: schema.resource_type)
def test_a_type_without_rights_has_a_reason(schema: ResourceSchema) -> None:
    assert bool(schema.permissions) != (schema.resource_type in WITHOUT_HANDLERS)
    assert {"create", "delete"} <= schema.permissions.keys() or not schema.permissions


@pytest.mark.parametrize("condition", CONDITIONS.rows, ids=lambda row: f"{row.resource_type} {row.actions[0]}")
def test_a_condition_is_of_rights_and_properties_that_there_are(condition: HandlerCondition) -> None:
    every = condition.resource_type == EVERY_TYPE
    types = [schema.resource_type for schema in RESOURCE_SCHEMAS.rows] if every else [condition.resource_type]
    handlers = condition.handlers or HANDLERS
    listed = {action for each in types for handler in handlers for action in handler_actions(each, handler)}
    unused = [one for one in condition.actions if not any(fnmatchcase(action, one) for action in listed)]
    assert unused == []
    schema = find_resource_schema(condition.resource_type)
    names = {path.partition(".")[0] for path in condition.properties if not path.startswith("@")}
    assert not names or schema is not None
    assert schema is None or names <= _property_names(schema)
    assert condition.reason


def _property_names(schema: ResourceSchema) -> set[str]:
    properties = schema.document["properties"]
    assert isinstance(properties, dict)
    return set(properties)


def test_roles_and_keys_are_properties_of_their_types() -> None:
    for schema in RESOURCE_SCHEMAS.rows:
        paths = [row.path for row in PASSED_ROLES.having(schema.resource_type)]
        paths += [row.path for row in NAMED_KEYS.having(schema.resource_type)]
        assert {path.partition(".")[0] for path in paths} <= _property_names(schema)
        if any("iam:PassRole" in actions for actions in schema.permissions.values()):
            assert PASSED_ROLES.having(schema.resource_type), schema.resource_type


def test_what_a_schema_leaves_out_is_added_with_its_source() -> None:
    for row in ADDED_RIGHTS.rows:
        schema = find_resource_schema(row.resource_type)
        assert schema is not None
        assert not {*row.actions} & {*schema.permissions[row.handler]}
        assert {*row.actions} <= {*handler_actions(row.resource_type, row.handler)}
        assert row.source


def test_a_role_without_inline_policies_writes_none() -> None:
    plain = {"AssumeRolePolicyDocument": {}, "PermissionsBoundary": "arn:aws:iam::aws:policy/b"}
    assert [*needed_actions(ROLE, "create", {}, plain)] == ["iam:CreateRole", "iam:GetRolePolicy", "iam:GetRole"]
    tagged = {**plain, "Policies": [{"PolicyName": "p"}], "Tags": [{"Key": "a", "Value": "b"}]}
    assert {"iam:PutRolePolicy", "iam:TagRole"} <= {*needed_actions(ROLE, "create", {}, tagged)}
    assert "iam:DeleteRolePolicy" in needed_actions(ROLE, "delete", tagged, {})
    assert "iam:DeleteRolePolicy" not in needed_actions(ROLE, "delete", plain, {})


@pytest.mark.parametrize(
    ("before", "after", "needed"),
    [
        ("a", "a", set[str]()),
        ("a", "b", {"iam:PutRolePermissionsBoundary"}),
        ("", "b", {"iam:PutRolePermissionsBoundary"}),
        ("a", "", {"iam:DeleteRolePermissionsBoundary"}),
    ],
)
def test_a_boundary_is_put_or_removed_where_it_changes(before: str, after: str, needed: set[str]) -> None:
    old, new = ({"Path": "/", "PermissionsBoundary": name} for name in (before, after))
    found = {*needed_actions(ROLE, "update", old, new)}
    assert {action for action in found if action.endswith("PermissionsBoundary")} == needed


def test_a_value_can_be_the_condition() -> None:
    target = "AWS::ApplicationAutoScaling::ScalableTarget"
    ours, theirs = ({"ServiceNamespace": name} for name in ("sagemaker", "lambda"))
    concurrency = "lambda:PutProvisionedConcurrencyConfig"
    assert concurrency not in needed_actions(target, "create", {}, ours)
    assert concurrency in needed_actions(target, "create", {}, theirs)
    (condition,) = conditions_of(target, "create", concurrency)
    assert (condition.properties, condition.value) == (("ServiceNamespace",), "lambda")


def test_a_path_reaches_into_lists() -> None:
    rule: dict[str, object] = {"Targets": [{"RoleArn": "a"}, {"Arn": "b"}, {"RoleArn": "c"}]}
    assert values_at(rule, "Targets.*.RoleArn") == ["a", "c"]
    assert values_at(rule, "Targets.RoleArn") == []
    assert values_at({}, "Targets.*.RoleArn") == []


def test_a_custom_resource_has_no_schema_of_its_own() -> None:
    assert find_resource_schema("Custom::SmokeBenchmark") is None
    assert [*needed_actions("Custom::SmokeBenchmark", "create", {}, {"ServiceToken": "f"})] == []
