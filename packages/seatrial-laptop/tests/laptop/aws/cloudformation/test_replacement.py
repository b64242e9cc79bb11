"""Which changes replace a resource: what the schemas say, against the tables that were kept by hand before."""

from __future__ import annotations

from typing import Any

import pytest
from ministack.services.cloudformation import provisioners

from seatrial_base.catalog.resource_types import all_replacement_rules, find_resource_schema
from seatrial_laptop.aws.cloudformation.register import named_replacement_problem, replaces

FORMER = {
    "AWS::SageMaker::Model": {"Tags"},
    "AWS::SageMaker::EndpointConfig": {"Tags"},
    "AWS::SageMaker::InferenceComponent": None,
}
"""The properties that changed in place, of the types whose every other property replaced; `None`: nothing replaced."""
DIFFERENT = {
    "AWS::Lambda::Function": ({"DurableConfig"}, "replaces a function when it is switched, not when it changes"),
}
"""What replaces by the schemas and not by MiniStack's tables, with the reason: some changes of it do."""


@pytest.mark.parametrize("resource_type", FORMER)
def test_a_hosting_type_is_replaced_as_before(resource_type: str) -> None:
    schema, in_place = find_resource_schema(resource_type), FORMER[resource_type]
    assert schema is not None
    properties: Any = schema.document["properties"]
    writable = set(properties) - set(schema.read_only)
    fixed = {name for name in writable if replaces(resource_type, {name: "a"}, {name: "b"})}
    assert fixed == (set() if in_place is None else writable - in_place)


def test_ministacks_tables_agree() -> None:
    theirs: Any = provisioners._REPLACING_PROPERTIES  # noqa: SLF001 (the contract)
    both = [rule for rule in all_replacement_rules() if rule.resource_type in theirs]
    assert len(both) > 4
    different = {rule.resource_type: set(rule.replaced_by) ^ set(theirs[rule.resource_type]) for rule in both}
    assert {name: each for name, each in different.items() if each} == {
        name: each for name, (each, _) in DIFFERENT.items()
    }


def test_a_part_of_a_property_can_replace() -> None:
    def budget(name: str, amount: int) -> dict[str, object]:
        return {"Budget": {"BudgetName": name, "BudgetLimit": {"Amount": amount, "Unit": "USD"}}}

    assert not replaces("AWS::Budgets::Budget", budget("a", 1), budget("a", 2))
    assert replaces("AWS::Budgets::Budget", budget("a", 1), budget("b", 1))


def test_a_name_of_its_own_keeps_a_resource_from_its_successor() -> None:
    def policy(name: str, target: str) -> dict[str, object]:
        return {"PolicyName": name, "ScalingTargetId": target}

    scaling = "AWS::ApplicationAutoScaling::ScalingPolicy"
    assert named_replacement_problem(scaling, policy("a", "t"), policy("a", "u")) is None
    assert named_replacement_problem(scaling, policy("a", "t"), policy("b", "t")) is None
    named = {"ModelName": "m", "ExecutionRoleArn": "a"}
    told = named_replacement_problem("AWS::SageMaker::Model", named, {**named, "ExecutionRoleArn": "b"})
    assert told is not None
    assert told.endswith("Rename m and update the stack again.")
    unnamed = {"ExecutionRoleArn": "a"}
    assert named_replacement_problem("AWS::SageMaker::Model", unnamed, {"ExecutionRoleArn": "b"}) is None
