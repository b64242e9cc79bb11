"""IAM policies of templates: what does not exist, what can never be allowed, and what is too large."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from seatrial_lint.template_rules.checks.policies import least_characters
from tests.template_rules.sample import changed, components, found

if TYPE_CHECKING:
    from pydantic import JsonValue

    from seatrial_base.findings import Finding

ACCOUNT = "us-east-1:123456789012"
ENDPOINT = f"arn:aws:sagemaker:{ACCOUNT}:endpoint/chat"
BUCKET = "arn:aws:s3:::weights"
TRUST: JsonValue = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"aws:SourceAccount": "123456789012"}},
        }
    ],
}


def statement(action: JsonValue, resource: JsonValue = "*", **fields: JsonValue) -> dict[str, JsonValue]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **fields}


def policy(*statements: JsonValue) -> dict[str, JsonValue]:
    return {"Version": "2012-10-17", "Statement": [*statements]}


def managed(*statements: JsonValue) -> dict[str, JsonValue]:
    """Return a template of one managed policy."""
    properties: JsonValue = {"PolicyDocument": policy(*statements)}
    return {"Resources": {"Policy": {"Type": "AWS::IAM::ManagedPolicy", "Properties": properties}}}


def told(*statements: JsonValue) -> list[tuple[str, str, str]]:
    return [(each.rule, each.severity, each.message) for each in found(managed(*statements))]


def one(document: dict[str, JsonValue]) -> Finding:
    (finding,) = found(document)
    return finding


@pytest.mark.parametrize(
    ("action", "message", "hint"),
    [
        ("sagemaker:CreateEndpiont", "sagemaker:CreateEndpiont is no action of IAM", "sagemaker:CreateEndpoint"),
        ("s3:ListObjectsV2", "s3:ListObjectsV2 is no action of IAM", "did you mean"),
        ("lambda:Invoke", "lambda:Invoke is no action of IAM", "did you mean"),
        ("sagemaker:Sail*", "sagemaker:Sail* matches no action", "name actions that exist"),
        ("CreateEndpoint", "CreateEndpoint is no action: the service is missing", "write SERVICE:ACTION"),
    ],
)
def test_an_action_that_does_not_exist_is_refused(action: str, message: str, hint: str) -> None:
    finding = one(managed(statement(action)))
    assert (finding.rule, finding.severity, finding.message) == ("SEA780", "error", message)
    assert hint in finding.hint
    assert finding.place.field == "Properties.PolicyDocument.Statement.0.Action"


def test_a_service_that_iam_does_not_have_is_warned_of() -> None:
    finding = one(managed(statement(["sagemakr:CreateEndpoint", "a4b:GetAnything"])))
    assert (finding.rule, finding.severity) == ("SEA780", "warning")
    assert finding.message == "sagemakr is no service of IAM (sagemakr:CreateEndpoint)"
    assert "sagemaker" in finding.hint


def test_an_unknown_action_is_found_in_exceptions_and_refusals_too() -> None:
    excepted: JsonValue = {"Effect": "Deny", "NotAction": ["iam:GetRolle"], "Resource": "*"}
    assert [rule for rule, *_ in told(excepted)] == ["SEA780"]
    assert [rule for rule, *_ in told({**statement("iam:GetRolle"), "Effect": "Deny"})] == ["SEA780"]


@pytest.mark.parametrize(
    ("type_", "properties", "field"),
    [
        ("AWS::IAM::Role", {"AssumeRolePolicyDocument": policy(statement("sts:Assume"))}, "AssumeRolePolicyDocument"),
        (
            "AWS::IAM::Role",
            {"Policies": [{"PolicyDocument": policy(statement("s3:Gett"))}]},
            "Policies.0.PolicyDocument",
        ),
        (
            "AWS::IAM::User",
            {"Policies": [{"PolicyDocument": policy(statement("s3:Gett"))}]},
            "Policies.0.PolicyDocument",
        ),
        ("AWS::IAM::Policy", {"PolicyDocument": policy(statement("s3:Gett"))}, "PolicyDocument"),
        ("AWS::IAM::RolePolicy", {"PolicyDocument": policy(statement("s3:Gett"))}, "PolicyDocument"),
        ("AWS::S3::BucketPolicy", {"PolicyDocument": policy(statement("s3:Gett"))}, "PolicyDocument"),
        ("AWS::KMS::Key", {"KeyPolicy": policy(statement("kms:Decript"))}, "KeyPolicy"),
        ("AWS::SQS::QueuePolicy", {"PolicyDocument": policy(statement("sqs:Sent"))}, "PolicyDocument"),
        ("AWS::SNS::TopicPolicy", {"PolicyDocument": policy(statement("sns:Publisch"))}, "PolicyDocument"),
        ("AWS::ECR::Repository", {"RepositoryPolicyText": policy(statement("ecr:Pull"))}, "RepositoryPolicyText"),
        ("AWS::Logs::ResourcePolicy", {"PolicyDocument": json.dumps(policy(statement("logs:Puut")))}, "PolicyDocument"),
    ],
)
def test_policies_are_found_wherever_they_stand(type_: str, properties: dict[str, JsonValue], field: str) -> None:
    finding = one({"Resources": {"Its": {"Type": type_, "Properties": properties}}})
    assert (finding.rule, finding.place.resource) == ("SEA780", "Its")
    assert finding.place.field == f"Properties.{field}.Statement.0.Action"


def test_a_single_statement_needs_no_list() -> None:
    document = changed(managed(), "Policy.Properties.PolicyDocument.Statement", statement("s3:Gett"))
    assert one(document).place.field == "Properties.PolicyDocument.Statement.Action"


def test_a_condition_on_a_key_that_no_action_carries_never_allows() -> None:
    tagged: JsonValue = {"StringEquals": {"aws:ResourceTag/team": "search"}}
    assert told(statement("sagemaker:ListEndpoints", Condition=tagged)) == [
        (
            "SEA781",
            "error",
            "aws:ResourceTag/team is no condition key of sagemaker:ListEndpoints: the statement never allows anything",
        )
    ]


def test_a_condition_that_holds_without_its_key_always_allows() -> None:
    other: JsonValue = {"StringNotEquals": {"s3:prefix": "private/"}}
    ((rule, severity, message),) = told(statement("s3:GetObject", f"{BUCKET}/*", Condition=other))
    assert (rule, severity) == ("SEA781", "warning")
    assert message == "s3:prefix is no condition key of s3:GetObject: the statement always allows"


def test_a_refusal_with_a_key_that_is_not_carried_is_warned_of() -> None:
    condition: JsonValue = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
    ((rule, severity, message),) = told({**statement("sagemaker:CreateModel", Condition=condition), "Effect": "Deny"})
    assert (rule, severity) == ("SEA781", "warning")
    assert message.endswith("the statement never denies anything")


def test_an_action_beside_others_that_carry_the_key_is_never_allowed() -> None:
    condition: JsonValue = {"StringLike": {"s3:prefix": "llama/*"}}
    ((rule, severity, message),) = told(
        statement(["s3:ListBucket", "s3:GetBucketLocation"], BUCKET, Condition=condition)
    )
    assert (rule, severity) == ("SEA781", "warning")
    assert message == (
        "s3:prefix is no condition key of s3:GetBucketLocation, which the statement therefore never allows"
    )


@pytest.mark.parametrize(
    ("action", "resource", "condition"),
    [
        ("sagemaker:DescribeEndpoint", ENDPOINT, {"StringEquals": {"aws:ResourceTag/team": "a"}}),
        ("sagemaker:ListEndpoints", "*", {"StringEqualsIfExists": {"aws:ResourceTag/team": "a"}}),
        ("sagemaker:ListEndpoints", "*", {"Null": {"aws:ResourceTag/team": "true"}}),
        ("sagemaker:ListEndpoints", "*", {"StringEquals": {"aws:PrincipalTag/team": "a"}}),
        ("s3:*", "*", {"StringLike": {"s3:prefix": "a/*"}}),
        ("*", "*", {"StringEquals": {"anything:Key": "a"}}),
        ("sagemaker:CreateAIBenchmarkJob", "*", {"StringEquals": {"sagemaker:AnyKey": "a"}}),
        ("a4b:GetDevice", "*", {"StringEquals": {"a4b:AnyKey": "a"}}),
        ("sts:AssumeRoleWithWebIdentity", "*", {"StringEquals": {"token.actions.githubusercontent.com:aud": "sts"}}),
        ("sagemaker:ListEndpoints", "*", {"Fn::If": ["A", {}, {}]}),
        ({"Ref": "Action"}, "*", {"StringEquals": {"aws:RequestTag/team": "a"}}),
    ],
)
def test_conditions_that_can_hold_or_are_not_known_break_no_rule(
    action: JsonValue, resource: JsonValue, condition: JsonValue
) -> None:
    assert told(statement(action, resource, Condition=condition)) == []


def test_a_role_is_assumed_and_its_session_tagged_by_one_request() -> None:
    condition: JsonValue = {"StringEquals": {"token.actions.githubusercontent.com:sub": "repo:acme/team"}}
    actions: JsonValue = ["sts:AssumeRoleWithWebIdentity", "sts:TagSession"]
    trust = policy({"Effect": "Allow", "Principal": {"Federated": "a"}, "Action": actions, "Condition": condition})
    assert found(changed(role(1), "Role.Properties.AssumeRolePolicyDocument", trust)) == ()


@pytest.mark.parametrize(
    ("action", "resource", "message"),
    [
        ("s3:GetObject", BUCKET, "s3:GetObject is on accesspointobject, object, not on these resources"),
        ("s3:ListBucket", f"{BUCKET}/*", "s3:ListBucket is on accesspoint, bucket, not on these resources"),
        ("s3:GetObject", {"Fn::GetAtt": ["Bucket", "Arn"]}, "s3:GetObject is on accesspointobject, object"),
        ("sagemaker:InvokeEndpoint", f"arn:aws:sagemaker:{ACCOUNT}:model/chat", "is on endpoint, inference-component"),
    ],
)
def test_an_action_on_resources_of_another_type_is_warned_of(action: str, resource: JsonValue, message: str) -> None:
    document = changed(managed(statement(action, resource)), "Bucket", {"Type": "AWS::S3::Bucket"})
    finding = one(document)
    assert (finding.rule, finding.severity) == ("SEA782", "warning")
    assert message in finding.message


def test_a_resource_that_no_action_is_on_is_noted() -> None:
    finding = one(managed(statement("s3:GetObject", [f"{BUCKET}/*", BUCKET])))
    assert (finding.rule, finding.severity) == ("SEA782", "note")
    assert finding.place.field == "Properties.PolicyDocument.Statement.0.Resource.1"
    assert finding.message == f"no action of the statement is on a resource as {BUCKET}"


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        (["s3:GetObject", "s3:ListBucket"], [BUCKET, f"{BUCKET}/*"]),
        ("s3:GetObject", {"Fn::Join": ["", [{"Fn::GetAtt": ["Bucket", "Arn"]}, "/*"]]}),
        ("s3:GetObject", {"Fn::Sub": "arn:${AWS::Partition}:s3:::${Name}/*"}),
        ("s3:GetObject", {"Ref": "Parameter"}),
        ("s3:GetObject", {"Fn::ImportValue": "objects"}),
        ("s3:*", BUCKET),
        ("logs:DescribeLogGroups", f"arn:aws:logs:{ACCOUNT}:log-group:*"),
        ("s3:ListAllMyBuckets", "arn:aws:s3:::*"),
        ("dynamodb:GetItem", "arn:aws:dynamodb:*:*:table/${aws:username}"),
        ("dynamodb:GetRecords", {"Fn::GetAtt": ["Table", "StreamArn"]}),
    ],
)
def test_resources_of_an_action_or_unknown_ones_break_no_rule(action: JsonValue, resource: JsonValue) -> None:
    document = changed(managed(statement(action, resource)), "Bucket", {"Type": "AWS::S3::Bucket"})
    assert found(changed(document, "Table", {"Type": "AWS::DynamoDB::Table"})) == ()


@pytest.mark.parametrize(
    ("rule", "action", "condition"),
    [
        ("SEA782", ["s3:GetObject", "s3:ListBucket"], {}),
        ("SEA781", ["s3:ListBucket", "s3:GetBucketLocation"], {"StringLike": {"s3:prefix": "llama/*"}}),
    ],
)
def test_what_s3_refuses_in_the_policy_of_a_bucket_is_an_error(
    rule: str, action: JsonValue, condition: JsonValue
) -> None:
    document = policy(statement(action, BUCKET, Principal="*", Condition=condition))
    properties: JsonValue = {"Bucket": "weights", "PolicyDocument": document}
    finding = one({"Resources": {"Its": {"Type": "AWS::S3::BucketPolicy", "Properties": properties}}})
    assert (finding.rule, finding.severity) == (rule, "error")


def test_an_action_without_resource_level_on_an_arn_is_noted() -> None:
    finding = one(managed(statement(["sagemaker:ListEndpoints", "sagemaker:DescribeEndpoint"], ENDPOINT)))
    assert (finding.rule, finding.severity) == ("SEA783", "note")
    assert finding.message == "sagemaker:ListEndpoints has no resource level: the statement does not allow it"
    assert finding.hint == "allow it in a statement with Resource *"


def test_a_passed_role_without_its_service_is_noted() -> None:
    role = "arn:aws:iam::123456789012:role/hosting"
    finding = one(managed(statement("iam:passrole", role)))
    assert (finding.rule, finding.severity) == ("SEA785", "note")
    bound: JsonValue = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    assert told(statement("iam:PassRole", role, Condition=bound)) == []


def buckets(count: int) -> JsonValue:
    return [f"arn:aws:s3:::bucket-{number:04}/*" for number in range(count)]


def test_a_managed_policy_of_more_than_6144_characters_is_refused() -> None:
    least = least_characters(policy(statement("s3:GetObject", buckets(200))))
    assert least == len(json.dumps(policy(statement("s3:GetObject", buckets(200))), separators=(",", ":")))
    assert [each.rule for each in found(managed(statement("s3:GetObject", buckets(200))))] == []
    finding = one(managed(statement("s3:GetObject", buckets(220))))
    assert (finding.rule, finding.severity) == ("SEA784", "error")
    assert finding.message.startswith("the managed policy has at least 6,")
    assert finding.message.endswith(" characters, more than 6,144")


def role(*sizes: int) -> dict[str, JsonValue]:
    policies: JsonValue = [
        {"PolicyName": f"{number}", "PolicyDocument": policy(statement("s3:GetObject", buckets(size)))}
        for number, size in enumerate(sizes)
    ]
    properties: dict[str, JsonValue] = {"AssumeRolePolicyDocument": TRUST, "Policies": policies}
    return {"Resources": {"Role": {"Type": "AWS::IAM::Role", "Properties": properties}}}


def test_the_inline_policies_of_a_role_count_together() -> None:
    assert found(role(150, 150)) == ()
    attached: JsonValue = {
        "PolicyDocument": policy(statement("s3:GetObject", buckets(100))),
        "Roles": [{"Ref": "Role"}],
    }
    finding = one(changed(role(150, 150), "More", {"Type": "AWS::IAM::Policy", "Properties": attached}))
    assert (finding.rule, finding.place.resource) == ("SEA784", "Role")
    assert finding.message.endswith("characters, more than 10,240")
    assert "More 2," in finding.hint


def test_the_inline_policies_of_a_user_have_2048_characters() -> None:
    inline: JsonValue = [{"PolicyName": "a", "PolicyDocument": policy(statement("s3:GetObject", buckets(80)))}]
    finding = one({"Resources": {"User": {"Type": "AWS::IAM::User", "Properties": {"Policies": inline}}}})
    assert finding.message.endswith("more than 2,048")


def test_a_trust_policy_of_more_than_2048_characters_is_refused() -> None:
    trusted: JsonValue = [f"arn:aws:iam::123456789012:role/deploys-{number:03}" for number in range(60)]
    trust = policy({"Effect": "Allow", "Principal": {"AWS": trusted}, "Action": "sts:AssumeRole"})
    finding = one(changed(role(1), "Role.Properties.AssumeRolePolicyDocument", trust))
    assert (finding.rule, finding.place.field) == ("SEA784", "Properties.AssumeRolePolicyDocument")


def test_a_bucket_policy_of_more_than_20_kilobytes_is_refused() -> None:
    properties: JsonValue = {"Bucket": "a", "PolicyDocument": policy(statement("s3:GetObject", buckets(800)))}
    finding = one({"Resources": {"Its": {"Type": "AWS::S3::BucketPolicy", "Properties": properties}}})
    assert finding.message.endswith("more than 20,480")


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ("a b", 4),
        ({"Fn::Sub": "arn:${AWS::Partition}:${AWS::AccountId}"}, len('"arn:aws:123456789012"')),
        ({"Fn::Sub": "${Topic.TopicArn}"}, len('"arn:aws:s3:::abc"')),
        ({"Fn::If": ["A", "long text", {"Ref": "AWS::NoValue"}]}, 0),
        ({"Fn::If": ["A", "abc", "ab"]}, 4),
        ({"Fn::ImportValue": "a"}, 0),
        ([1, True, None, {"Ref": "AWS::NoValue"}], len("[1,true,null]")),
    ],
)
def test_a_reference_counts_with_its_shortest_text(value: JsonValue, least: int) -> None:
    assert least_characters(value) == least


def alarmed(*policies: JsonValue, alarms: str = "Alarm") -> dict[str, JsonValue]:
    """Return the template of components, with a rollback alarm and a role that has policies."""
    document = components()
    rights = role(1)["Resources"]
    rollback: JsonValue = {"Alarms": [{"AlarmName": {"Ref": alarms}}]}
    changed(document, "Role", cast("dict[str, JsonValue]", rights)["Role"])
    of_model = policy(statement(["ecr:*", "s3:*", "logs:*"]))
    given: JsonValue = [{"PolicyName": "a", "PolicyDocument": each} for each in (*policies, of_model)]
    changed(document, "Role.Properties.Policies", given)
    changed(document, "Alarm", {"Type": "AWS::CloudWatch::Alarm", "Properties": {}})
    changed(document, "Config.Properties.ExecutionRoleArn", {"Fn::GetAtt": ["Role", "Arn"]})
    changed(document, "Model.Properties.ExecutionRoleArn", {"Fn::GetAtt": ["Role", "Arn"]})
    changed(document, "Component.Properties.DeploymentConfig.AutoRollbackConfiguration", rollback)
    return changed(document, "Endpoint.Properties.DeploymentConfig.AutoRollbackConfiguration", rollback)


def test_rollback_alarms_that_no_role_may_describe_are_refused() -> None:
    findings = found(alarmed(policy(statement("cloudwatch:PutMetricData"))))
    assert [(each.rule, each.severity, each.place.resource) for each in findings] == [
        ("SEA786", "error", "Component"),
        ("SEA786", "error", "Endpoint"),
    ]
    assert findings[0].message == "Role may not describe the alarms of the rollback: ${Alarm}"


@pytest.mark.parametrize(
    ("action", "resource", "refused"),
    [
        ("cloudwatch:DescribeAlarms", "*", 0),
        ("cloudwatch:Describe*", {"Fn::GetAtt": ["Alarm", "Arn"]}, 0),
        ("cloudwatch:DescribeAlarms", {"Fn::Sub": "arn:aws:cloudwatch:*:*:alarm:${Alarm}"}, 0),
        ("cloudwatch:DescribeAlarms", {"Fn::ImportValue": "alarm"}, 0),
        ("cloudwatch:DescribeAlarms", {"Fn::GetAtt": ["Other", "Arn"]}, 2),
        ("cloudwatch:DescribeAlarmHistory", "*", 2),
    ],
)
def test_a_role_that_may_describe_them_breaks_no_rule(action: str, resource: JsonValue, refused: int) -> None:
    document = alarmed(policy(statement(action, resource)))
    changed(document, "Other", {"Type": "AWS::CloudWatch::Alarm", "Properties": {}})
    assert [each.rule for each in found(document)] == ["SEA786"] * refused


def test_a_named_alarm_is_held_against_the_names_that_are_allowed() -> None:
    prefix = f"arn:aws:cloudwatch:{ACCOUNT}:alarm:seatrial-dev-*"
    document = alarmed(policy(statement("cloudwatch:DescribeAlarms", prefix)))
    changed(document, "Alarm.Properties.AlarmName", "seatrial-dev-chat-errors")
    assert found(document) == ()
    changed(document, "Alarm.Properties.AlarmName", "Chat-errors")
    assert {each.rule for each in found(document)} == {"SEA786"}


def test_rights_that_the_template_does_not_have_are_not_judged() -> None:
    document = alarmed()
    changed(document, "Role.Properties.ManagedPolicyArns", ["arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"])
    assert found(document) == ()
    imported = changed(alarmed(), "Config.Properties.ExecutionRoleArn", "arn:aws:iam::123456789012:role/hosting")
    assert found(imported) == ()


@pytest.mark.parametrize(
    "written", ["text", [], {"Statement": "text"}, {"Statement": [{"Action": {"a": 1}}]}, {"Fn::If": []}]
)
def test_policies_of_another_form_break_nothing(written: JsonValue) -> None:
    assert found(changed(managed(), "Policy.Properties.PolicyDocument", written)) == ()
