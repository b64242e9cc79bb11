"""What the launch role of products may do: everything that the handlers of their types ask for, and why not the rest.

The rights are those that the embedded AWS asks; MiniStack's evaluator of IAM policies decides, with conditions.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_base.catalog.resource_types import HANDLERS, handler_actions
from seatrial_cdk.vending.launch_role import NOT_ALLOWED, PRODUCT_TYPES, is_left_out
from seatrial_laptop.aws.cloudformation.deployer import reference_rights
from seatrial_laptop.aws.rights import Right
from tests.launch_rights import (
    ACCOUNT,
    PARAMETERS,
    Template,
    account_of,
    allows,
    denied_rights,
    launch_policy,
    needed,
    published,
    resolved,
)
from tests.resource_types import resolved_resources

if TYPE_CHECKING:
    from collections.abc import Mapping


KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
GATED = {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True, "hub_token_secret": "seatrial/hub-token"}
NETWORK = {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
SECURITY = {"permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/every-role", "role_path": "/platform/"}
ZERO = {"sizes": {"small": {"scaling": {"min_copies": 0, "max_copies": 2}}}}
METRICS = {"hosting": {"metrics": {"detailed": True}}}
ASYNCHRONOUS = {"kind": "single_model", "asynchronous": {"output_s3_uri": "s3://out/answers/"}}
CAPTURED = {"kind": "single_model", "data_capture": {"s3_uri": "s3://out/captures/"}}
DEBUGGED = {"ssm_access": True, "core_dump_s3_uri": "s3://out/dumps/"}
LORA = {"max_model_len": 512, "max_num_seqs": 8, "lora": {"max_adapters": 2, "max_rank": 16}}
ADAPTERS = {
    "instance_types": ["ml.g5.2xlarge"],
    "overrides": LORA,
    "adapters": [{"name": "legal", "s3_uri": "s3://adapters/legal.tar.gz"}],
}
CHANGED: dict[str, tuple[Mapping[str, object], Mapping[str, object], Mapping[str, object]]] = {
    "plain": ({}, {}, {}),
    "gated": ({"model": GATED}, {}, {}),
    "encrypted": ({"serving": {"instance_types": ["ml.inf2.8xlarge"]}}, {"kms_key_arn": KEY}, {}),
    "scheduled": (
        {},
        {"trial_schedule": "rate(7 days)", "observability": {"dashboards": "both"}, "outputs": "both"},
        {},
    ),
    "single model": ({"hosting": {"kind": "single_model"}, "trial": {"mode": "off"}}, {"network": NETWORK}, {}),
    "bounded": ({}, {"security": SECURITY, "network": NETWORK}, {}),
    "zero": (METRICS, {"outputs": "both"}, ZERO),
    "asynchronous": ({"hosting": ASYNCHRONOUS, "trial": {"mode": "off"}}, {}, ZERO),
    "captured": ({"hosting": CAPTURED, "trial": {"mode": "off"}}, {"outputs": "both"}, {}),
    "debugged": (
        {"hosting": DEBUGGED, "serving": {"instance_types": ["ml.inf2.8xlarge"]}},
        {"kms_key_arn": KEY, "guard_rails": {"ssm_access": "allowed"}},
        {},
    ),
    "adapters": ({"serving": ADAPTERS}, {"observability": {"dashboards": "endpoint"}}, {}),
}
"""What differs of the product and its environment; only instances without a disk of their own have one with a key."""


@pytest.fixture(scope="module", params=CHANGED, name="published")
def published_product(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Template, Template]:
    return published(tmp_path_factory.mktemp(request.param), *CHANGED[request.param])


def test_every_right_that_a_launch_an_update_and_a_termination_need_is_allowed(
    published: tuple[Template, Template],
) -> None:
    template, vending = published
    assert len(needed(template)) > 100
    assert denied_rights(template, launch_policy(vending)) == []


def test_a_launch_needs_no_visible_tag(published: tuple[Template, Template]) -> None:
    template, vending = published
    denied = denied_rights(template, launch_policy(vending), sees_tags=False)
    assert [each for each in denied if " create: " in each] == []
    assert any(each.startswith("AWS::SageMaker::Model delete: sagemaker:DeleteModel on ") for each in denied)


def test_every_right_that_a_handler_lists_is_granted_or_left_out_with_a_reason(
    published: tuple[Template, Template],
) -> None:
    template, vending = published
    types = {each["Type"] for each in template["Resources"].values() if not each["Type"].startswith("Custom::")}
    assert types <= set(PRODUCT_TYPES)
    statements = launch_policy(vending)["Statement"]
    granted = {
        action
        for each in statements
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    has_key = any("KmsKeyId" in each["Properties"] for each in template["Resources"].values())
    assert has_key is (KEY in json.dumps(statements))
    without_key = set[str]() if has_key else {"kms:CreateGrant", "kms:DescribeKey"}
    listed = {action for each in types for handler in HANDLERS for action in handler_actions(each, handler)}
    assert sorted(action for action in listed - granted - without_key if not is_left_out(action)) == []
    assert all(NOT_ALLOWED.values())
    assert not {action for action in granted if is_left_out(action)}


def test_the_boundary_allows_what_the_roles_of_the_product_may_do(published: tuple[Template, Template]) -> None:
    """A right beyond the boundary is none: captures and answers of products were never written."""
    template, vending = published
    with account_of(template):
        made: list[tuple[str, Any]] = [each[1:] for each in resolved_resources(template, PARAMETERS)]
    held = [one for kind, properties in made if kind == "AWS::IAM::Role" for one in properties["Policies"]]
    held += [properties for kind, properties in made if kind == "AWS::IAM::Policy"]
    may = {
        (action, resource.replace("*", "x"))
        for each in held
        for statement in each["PolicyDocument"]["Statement"]
        for action in _texts(statement["Action"])
        if action != "cloudwatch:DescribeAlarms"  # by the logical IDs of alarms here, by their names in the boundary
        for resource in _texts(statement["Resource"])
    }
    assert may
    for boundary in vending["Resources"].values():
        if boundary["Type"] == "AWS::IAM::ManagedPolicy":
            flat = json.dumps(boundary["Properties"]["PolicyDocument"]).replace('{"Ref": "AWS::Partition"}', '"aws"')
            document, named = json.loads(resolved(json.loads(flat))), {"cloudwatch:namespace": "AWS/SageMaker"}
            assert sorted(each for each in may if not allows(document, Right(*each, named))) == []


def _texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_secrets_are_read_by_their_names_alone(published: tuple[Template, Template]) -> None:
    template, vending = published
    policy = json.loads(resolved(launch_policy(vending)))
    literals = set(re.findall(r"\{\{resolve:[^}]+\}\}", json.dumps(template)))
    named = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:"
    for literal in literals:
        with account_of(template):
            (asked,) = reference_rights(literal)
        assert asked.resource == f"{named}seatrial/hub-token"
        for ending, allowed in (("-AbCdEf", True), ("-of-others-AbCdEf", False)):
            assert allows(policy, replace(asked, resource=f"{asked.resource}{ending}")) is allowed
    assert ("secretsmanager:GetSecretValue" in json.dumps(policy)) is bool(literals)


def test_the_trust_of_the_role_has_no_condition(published: tuple[Template, Template]) -> None:
    """Neither service is documented to send `aws:SourceAccount` when it assumes a role."""
    _, vending = published
    roles = [each["Properties"] for each in vending["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    (trust,) = [each["AssumeRolePolicyDocument"]["Statement"] for each in roles if "RoleName" in each]
    services = {name for each in trust for name in each["Principal"]["Service"]}
    assert services == {"servicecatalog.amazonaws.com", "cloudformation.amazonaws.com"}
    assert not any("Condition" in each for each in trust)
