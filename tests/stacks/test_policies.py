"""Each policy of the stacks, of workflows and of the CDK's bootstrap names what IAM has, and fits into its quota."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_ssm as ssm
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk.assertions import Annotations, Match, Template

from seatrial.repository.answers import Answers, new_targets
from seatrial.repository.write import repository_files
from seatrial_cdk import HostingChecks
from seatrial_cdk.vending.launch_role import LaunchRole
from seatrial_lint.template_rules.checks.policies import MANAGED_CHARACTERS, least_characters
from tests.policy_findings import policy_findings
from tests.stacks.conftest import KEY_ARN, ROOT, prod

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.repository.answers import Ci

BOOTSTRAP = ROOT / "node_modules" / "aws-cdk" / "lib" / "api" / "bootstrap" / "bootstrap-template.yaml"


def test_policies_of_endpoints_and_trials(assembly: Path) -> None:
    assert policy_findings([assembly]) == []


def test_policies_of_the_cdks_bootstrap() -> None:
    assert policy_findings([BOOTSTRAP]) == []


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_policies_of_workflows(ci: Ci, tmp_path: Path) -> None:
    targets = new_targets({"dev": "111111111111", "prod": "222222222222"}, "us-east-1")
    answers = Answers(name="team", ci=ci, targets=targets, source="acme/team", owner="@acme/platform")
    template = tmp_path / "roles.yaml"
    template.write_text(repository_files(answers)["bootstrap/roles.yaml"], encoding="utf-8")
    assert policy_findings([template]) == []


def launch_role(*weights: str) -> Stack:
    place = Environment(account="123456789012", region="eu-west-1")
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    stack = Stack(App(analytics_reporting=False, context=context), "Products", env=place)
    LaunchRole(
        stack,
        "LaunchRole",
        environment="prod",
        network=prod().environment.network,
        weights=weights,
        kms_key_arns=(KEY_ARN,),
    )
    return stack


def test_policies_of_products_with_a_network_and_a_key(tmp_path: Path) -> None:
    template = Template.from_stack(launch_role("arn:aws:s3:::weights/llama/7b/*"))
    file = tmp_path / "Products.template.json"
    file.write_text(json.dumps(template.to_json()), encoding="utf-8")
    assert policy_findings([file]) == []


def test_the_boundary_of_products_with_many_weights_fits_and_tells_what_it_names() -> None:
    weights = [f"arn:aws:s3:::weights-{number % 3}/family-{number % 9}/model-{number:03}/*" for number in range(200)]
    assert least_characters([*weights]) > MANAGED_CHARACTERS
    stack = launch_role(*weights)
    (boundary,) = Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy").values()
    document = boundary["Properties"]["PolicyDocument"]
    assert least_characters(document) < MANAGED_CHARACTERS
    (read,) = (each for each in document["Statement"] if each["Action"] == "s3:GetObject")
    assert read["Resource"] == [
        f"arn:aws:s3:::weights-{bucket}/family-{family}/*" for bucket in range(3) for family in range(bucket, 9, 3)
    ]
    warned = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("SEA784: .* 200 prefixes"))
    assert len(warned) == 1


def test_weights_that_fit_are_named_one_by_one_without_a_warning() -> None:
    weights = [f"arn:aws:s3:::weights/model-{number}/*" for number in range(9)]
    stack = launch_role(*weights)
    (boundary,) = Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy").values()
    statements = boundary["Properties"]["PolicyDocument"]["Statement"]
    assert [each["Resource"] for each in statements if each["Action"] == "s3:GetObject"] == [weights]
    assert Annotations.from_stack(stack).find_warning("*", Match.any_value()) == []


def test_what_the_cdk_grants_is_no_error_and_no_warning(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), analytics_reporting=False)
    stack = Stack(app, "Others", env=Environment(account="123456789012", region="us-east-1"))
    hub = iam.OpenIdConnectPrincipal(
        iam.OpenIdConnectProvider(stack, "Hub", url="https://token.actions.githubusercontent.com")
    )
    subject = {"StringLike": {"token.actions.githubusercontent.com:sub": "repo:acme/team"}}
    role = iam.Role(stack, "Role", assumed_by=iam.SessionTagsPrincipal(hub.with_conditions(subject)))
    key = kms.Key(stack, "Key")
    bucket = s3.Bucket(stack, "Bucket", encryption_key=key, enforce_ssl=True)
    bucket.grant_read_write(role)
    bucket.grant_delete(role, "old/*")
    topic = sns.Topic(stack, "Topic", master_key=key, enforce_ssl=True)
    topic.grant_publish(role)
    queue = sqs.Queue(stack, "Queue", encryption_master_key=key, enforce_ssl=True)
    queue.grant_consume_messages(role)
    topic.add_subscription(subscriptions.SqsSubscription(queue))
    table = dynamodb.Table(
        stack,
        "Table",
        partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
        stream=dynamodb.StreamViewType.NEW_IMAGE,
    )
    table.grant_stream_read(role)
    table.grant_full_access(role)
    machine = sfn.StateMachine(
        stack, "Machine", definition_body=sfn.DefinitionBody.from_chainable(sfn.Pass(stack, "Pass"))
    )
    machine.grant_start_execution(role)
    machine.grant_task_response(role)
    machine.grant_read(role)
    ssm.StringParameter(stack, "Parameter", string_value="text").grant_read(role)
    secretsmanager.Secret(stack, "Secret", encryption_key=key).grant_read(role)
    ecr.Repository(stack, "Repository").grant_pull(role)
    logs.LogGroup(stack, "Logs", encryption_key=key).grant_write(role)
    HostingChecks.add_to(app)
    app.synth()
    (report,) = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert {(each["ruleName"], each["severity"]) for each in report["violations"]} == {("SEA783", "info")}


def test_synthesis_refuses_a_policy_that_is_larger_than_its_quota(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), analytics_reporting=False)
    stack = Stack(app, "Chat", env=Environment(region="us-east-1"))
    objects = [f"arn:aws:s3:::bucket-{number:04}/*" for number in range(300)]
    statement = iam.PolicyStatement(actions=["s3:GetObject"], resources=objects)
    iam.ManagedPolicy(stack, "Large", statements=[statement])
    HostingChecks.add_to(app)
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    (report,) = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert [each["ruleName"] for each in report["violations"]] == ["SEA784"]
