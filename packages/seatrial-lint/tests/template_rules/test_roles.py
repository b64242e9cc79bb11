"""Rights of execution roles, when they have them, and statements too small for their action."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.template_rules.sample import DELETE, changed, components, found, single
from tests.template_rules.test_kinds import Template, serverless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import JsonValue

    from seatrial_base.findings import Finding

ACCOUNT = "us-east-1:123456789012"
HOSTING = f"arn:aws:sagemaker:{ACCOUNT}"
OUTPUT = "Config.Properties.AsyncInferenceConfig.OutputConfig"
CONTAINER = "Model.Properties.PrimaryContainer"
STATEMENTS = "Role.Properties.Policies.0.PolicyDocument.Statement"
ROLE_ARN: JsonValue = {"Fn::GetAtt": ["Role", "Arn"]}


def allow(action: JsonValue, *resources: JsonValue) -> dict[str, JsonValue]:
    return {"Effect": "Allow", "Action": action, "Resource": [*resources] or "*"}


CASES = json.loads(Path(__file__).with_name("roles.json").read_text("utf-8"))
PULL, TOKEN, READ, LIST, LOGS, ALARMS = CASES["statements"].values()
EVERY = (PULL, TOKEN, READ, LIST, LOGS, ALARMS)


def role(*statements: JsonValue, service: JsonValue = "sagemaker.amazonaws.com") -> dict[str, JsonValue]:
    trust: JsonValue = {
        "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}]
    }
    policies: list[JsonValue] = [{"PolicyName": "a", "PolicyDocument": {"Statement": [*statements]}}]
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust, "Policies": policies}}


def hosted(*statements: JsonValue, service: JsonValue = "sagemaker.amazonaws.com") -> dict[str, JsonValue]:
    """Return the template of components, whose model and configuration have a role of the template."""
    document = changed(components(), "Role", role(*statements, service=service))
    changed(document, "Config.Properties.ExecutionRoleArn", ROLE_ARN)
    return changed(document, "Model.Properties.ExecutionRoleArn", ROLE_ARN)


def queued(*statements: JsonValue) -> dict[str, JsonValue]:
    """Return the template of an asynchronous endpoint, whose model has a role of the template."""
    document = changed(single(), "Role", role(PULL, TOKEN, LOGS, *statements))
    changed(document, f"{OUTPUT}.S3OutputPath", "s3://answers/out/")
    return changed(document, "Model.Properties.ExecutionRoleArn", ROLE_ARN)


def without(lacking: str, instead: JsonValue) -> list[JsonValue]:
    """Return every statement but one, and another in its place."""
    kept = [each for name, each in CASES["statements"].items() if name != lacking]
    return kept if instead is None else [*kept, instead]


def alone(*statements: JsonValue) -> dict[str, JsonValue]:
    return {"Resources": {"Role": role(*statements, service="states.amazonaws.com")}}


def one(document: dict[str, JsonValue], rule: str) -> Finding:
    (finding,) = found(document)
    assert finding.rule == rule
    return finding


def test_a_role_that_allows_everything_asked_for_breaks_no_rule() -> None:
    assert found(hosted(*EVERY)) == ()
    assert found(hosted(allow("*"))) == ()
    assert found(queued(allow("s3:PutObject", "arn:aws:s3:::answers/*"))) == ()


@pytest.mark.parametrize("service", CASES["untrusted"])
def test_a_role_that_trusts_another_service_is_not_assumed(service: JsonValue) -> None:
    told = [each for each in found(hosted(*EVERY, service=service)) if each.rule == "SEA789"]
    assert [each.place.resource for each in told] == ["Config", "Model"]
    assert told[0].message.startswith("Role trusts ec2.amazonaws.com")


@pytest.mark.parametrize("service", CASES["trusted"])
def test_a_role_that_may_trust_sagemaker_is_not_judged(service: JsonValue) -> None:
    assert found(hosted(*EVERY, service=service)) == ()


@pytest.mark.parametrize(("lacking", "instead", "action", "severity"), CASES["lacking"])
def test_a_right_that_the_role_lacks_is_told_once_a_value(
    lacking: str, instead: JsonValue, action: str, severity: str
) -> None:
    told = [each for each in found(hosted(*without(lacking, instead))) if each.rule == "SEA790"]
    assert [(each.place.resource, each.severity) for each in told] == [("Model", severity)]
    assert f"Role may not {action}" in told[0].message


@pytest.mark.parametrize(("lacking", "instead"), CASES["may_give"])
def test_a_right_that_a_statement_may_give_is_not_missed(lacking: str, instead: JsonValue) -> None:
    assert [each for each in found(hosted(*without(lacking, instead))) if each.rule == "SEA790"] == []


def test_a_role_with_a_policy_outside_the_template_is_not_judged() -> None:
    document = changed(hosted(), "Role.Properties.ManagedPolicyArns", ["arn:aws:iam::aws:policy/AmazonS3FullAccess"])
    assert found(document) == ()


@pytest.mark.parametrize(("path", "value"), CASES["places"])
def test_a_place_that_only_the_deployment_knows_asks_for_no_right_on_another(path: str, value: JsonValue) -> None:
    document = changed(hosted(*EVERY), "Made", {"Type": "Custom::Bucket", "Properties": {}})
    assert found(changed(document, path, value)) == ()


def test_an_image_and_a_bucket_of_the_template_are_known_by_reference_and_by_name() -> None:
    pull, read = allow("ecr:*", {"Fn::GetAtt": ["Images", "Arn"]}), allow("s3:*", {"Fn::Sub": "${Weights.Arn}/*"})
    listing = allow("s3:ListBucket", {"Fn::GetAtt": ["Weights", "Arn"]})
    document = hosted(pull, TOKEN, read, listing, LOGS, ALARMS)
    changed(document, "Images", {"Type": "AWS::ECR::Repository", "Properties": {"RepositoryName": "own"}})
    changed(document, "Weights", {"Type": "AWS::S3::Bucket", "Properties": {}})
    changed(document, f"{CONTAINER}.Image", {"Fn::Sub": "${Images.RepositoryUri}:3"})
    changed(document, f"{CONTAINER}.ModelDataSource.S3DataSource.S3Uri", {"Fn::Sub": "s3://${Weights}/chat/"})
    assert found(document) == ()
    by_name = changed(document, f"{STATEMENTS}.0.Resource", "arn:aws:ecr:us-east-1:1:repository/own")
    assert found(by_name) == ()
    other = changed(by_name, f"{STATEMENTS}.0.Resource", "arn:aws:ecr:us-east-1:1:repository/other")
    assert one(other, "SEA790").place.field == "Properties.PrimaryContainer.Image"


def test_a_bucket_under_a_key_needs_the_key_too() -> None:
    document = hosted(*EVERY, allow("s3:*", {"Fn::GetAtt": ["Weights", "Arn"]}, {"Fn::Sub": "${Weights.Arn}/*"}))
    default: JsonValue = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": {"Fn::GetAtt": ["Key", "Arn"]}}
    encryption: JsonValue = {"ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": default}]}
    changed(document, "Weights", {"Type": "AWS::S3::Bucket", "Properties": {"BucketEncryption": encryption}})
    root: JsonValue = {"AWS": {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:root"}}
    every: JsonValue = {"Effect": "Allow", "Action": "kms:*", "Principal": root, "Resource": "*"}
    changed(document, "Key", {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": {"Statement": [every]}}})
    changed(document, f"{CONTAINER}.ModelDataSource.S3DataSource.S3Uri", {"Fn::Sub": "s3://${Weights}/chat/"})
    assert "Role may not kms:Decrypt" in one(document, "SEA790").message
    # The key's own policy names the role.
    changed(document, "Key.Properties.KeyPolicy.Statement.0.Principal", {"AWS": ROLE_ARN})
    assert found(document) == ()


@pytest.mark.parametrize(("path", "value", "statement", "action"), CASES["writes"])
def test_what_an_endpoint_writes_is_a_right_of_its_models_role(
    path: str, value: JsonValue, statement: JsonValue, action: str
) -> None:
    document = changed(queued(CASES["statements"].get(f"{statement}", statement)), path, value)
    changed(document, "Done", {"Type": "AWS::SNS::Topic", "Properties": {}})
    told = [each.message for each in found(document) if each.rule == "SEA790"]
    assert any(f"Role may not {action}" in message for message in told), told
    document = changed(queued(allow("*")), path, value)
    assert found(changed(document, "Done", {"Type": "AWS::SNS::Topic", "Properties": {}})) == ()


def separate(*statements: JsonValue, kind: str = "AWS::IAM::Policy") -> dict[str, JsonValue]:
    """Return the template of components, whose role has its rights by a policy of its own."""
    document = changed(hosted(), "Role.Properties.Policies", DELETE)
    document_of: JsonValue = {"Statement": [*statements]}
    properties: JsonValue = {"PolicyName": "p", "Roles": [{"Ref": "Role"}], "PolicyDocument": document_of}
    return changed(document, "Rights", {"Type": kind, "Properties": properties})


@pytest.mark.parametrize("kind", ["AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"])
def test_a_model_waits_for_the_policies_of_its_role(kind: str) -> None:
    document = separate(*EVERY, kind=kind)
    told = one(document, "SEA791")
    assert (told.place.resource, told.hint) == ("Model", "set DependsOn: Rights")
    assert found(changed(document, "Model.DependsOn", "Rights")) == ()
    changed(document, "Model.DependsOn", DELETE)
    # Through another resource.
    assert (
        found(changed(changed(document, "Model.DependsOn", "Topic"), "Topic", {"Type": "A", "DependsOn": "Rights"}))
        == ()
    )


def test_a_policy_without_a_right_of_the_model_is_not_waited_for() -> None:
    document = changed(separate(allow("sqs:SendMessage"), LOGS), "Role.Properties.Policies", [])
    own: JsonValue = [{"PolicyName": "a", "PolicyDocument": {"Statement": [*EVERY]}}]
    assert found(changed(document, "Role.Properties.Policies", own)) == ()


def test_a_policy_whose_role_only_the_deployment_knows_may_be_of_any() -> None:
    assert {each.rule for each in found(separate())} == {"SEA786", "SEA790"}
    assert found(changed(separate(), "Rights.Properties.Roles", [{"Ref": "Parameter"}])) == ()


def test_a_policy_that_names_its_role_by_name_is_of_the_role() -> None:
    document = changed(separate(*EVERY), "Rights.Properties.Roles", ["hosting"])
    changed(document, "Model.DependsOn", "Rights")
    assert found(changed(document, "Role.Properties.RoleName", "hosting")) == ()


@pytest.mark.parametrize(("statements", "told"), CASES["two_types"])
def test_a_call_on_two_resources_is_allowed_on_both(statements: list[JsonValue], told: str) -> None:
    findings = [each.message for each in found(alone(*statements)) if each.rule == "SEA792"]
    assert [f"on a resource of type {told}, " in each for each in findings] == [True] * bool(told)


DELETING = allow("sagemaker:DeleteEndpoint", f"{HOSTING}:endpoint/chat-*")


def test_who_deletes_an_endpoint_deregisters_its_target_and_who_makes_a_model_passes_its_role() -> None:
    assert one(alone(DELETING), "SEA793").severity == "note"
    assert "and not iam:PassRole" in one(alone(allow("sagemaker:CreateModel")), "SEA793").message
    with_target = changed(alone(DELETING), "Target", single()["Resources"]["Target"])  # type: ignore[index,call-overload]
    assert "SEA793" in {each.rule for each in found(with_target)}
    of_target = [each for each in found(with_target) if each.rule == "SEA793"]
    assert [each.severity for each in of_target] == ["warning"]


@pytest.mark.parametrize("statements", CASES["companions"])
def test_who_may_deregister_or_not_delete_is_not_told(statements: list[JsonValue]) -> None:
    assert [each for each in found(alone(*statements)) if each.rule == "SEA793"] == []


def test_who_deletes_an_endpoint_of_the_template_that_nothing_scales_is_not_told() -> None:
    assert found(changed(hosted(*EVERY), "Cleaner", role(DELETING))) == ()


@pytest.mark.parametrize(("resources", "told"), CASES["capitals"])
def test_an_arn_of_an_endpoint_has_no_capital_letters(resources: list[JsonValue], told: str) -> None:
    findings = [each.message for each in found(alone(allow("sagemaker:InvokeEndpoint", *resources)))]
    assert [told in each for each in findings] == [True] * bool(told)


def paths(value: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every value of a template."""
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, below in named:
        yield (*above, f"{name}")
        yield from paths(below, (*above, f"{name}"))


@pytest.mark.parametrize("sample", [lambda: hosted(*EVERY), lambda: separate(*EVERY), single, serverless])
def test_a_value_that_only_the_deployment_knows_breaks_none_of_these_rules(sample: Callable[[], Template]) -> None:
    kinds = {f"SEA{number}" for number in range(789, 804)} - {"SEA791"}
    for path in paths(sample()["Resources"]):
        resource, *below = path
        if below and below[0] == "Properties" and below[-1] != "Ref":
            *above, last = below
            document = json.loads(json.dumps(sample()))
            at = document["Resources"][resource]
            for name in above:
                at = at[int(name)] if isinstance(at, list) else at[name]
            at[int(last) if isinstance(at, list) else last] = {"Ref": "Parameter"}
            assert [each for each in found(document) if each.rule in kinds] == [], path
