"""Requests that are split over the components of an endpoint: the alias, the rights of callers, the router."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, cast

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Match, Template
from botocore.exceptions import ClientError, ReadTimeoutError
from cdk_nag import AwsSolutionsChecks

from seatrial.specs.hosting import HostingSpec
from seatrial_cdk.endpoint.endpoint_parts import HANDLER, router_archive
from seatrial_cdk.endpoint.router_function import Answer, UrlEvent, route
from seatrial_stacks.endpoint_stack import EndpointStack
from tests.stacks.test_guests import hosting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

    from seatrial.deployment.document import Deployment

SHARES = [{"spec": "chat", "weight": 9}, {"spec": "summarize", "weight": 1}]
WEIGHTS = {"dev-chat-model": 9.0, "dev-chat-summarize": 1.0}
NAMES = ["endpoint/dev-chat", "inference-component/dev-chat-model", "inference-component/dev-chat-summarize"]


def split() -> Deployment:
    base = hosting()
    fields = HostingSpec.model_validate({"more_models": ["summarize"], "traffic": SHARES, "router": True})
    return replace(base, endpoint=base.endpoint.model_copy(update={"hosting": fields}))


@pytest.fixture(scope="module")
def stack() -> EndpointStack:
    stack = EndpointStack(App(), "Traffic", deployment=split())
    caller = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    stack.endpoint.grant_invoke(caller)
    return stack


@pytest.fixture(scope="module")
def template(stack: Stack) -> Template:
    return Template.from_stack(stack)


def test_the_alias_has_the_weights_and_waits_for_every_component(template: Template) -> None:
    (alias,) = template.find_resources(
        "AWS::SSM::Parameter", {"Properties": {"Name": "/seatrial/dev/chat/alias"}}
    ).values()
    assert json.loads(alias["Properties"]["Value"])["weights"] == WEIGHTS
    components = template.find_resources("AWS::SageMaker::InferenceComponent")
    serving = {name for name, each in components.items() if "RuntimeConfig" in each["Properties"]}
    assert serving <= set(alias["DependsOn"])


def test_a_caller_may_invoke_every_component_of_the_traffic(template: Template) -> None:
    policies = template.find_resources("AWS::IAM::Policy", {"Properties": {"PolicyName": Match.any_value()}})
    text = next(json.dumps(each) for name, each in policies.items() if name.startswith("Caller"))
    assert all(f":{name}" in text for name in NAMES)


def test_the_router_may_invoke_these_components_only_and_its_url_needs_iam(template: Template) -> None:
    template.has_resource_properties("AWS::Lambda::Url", {"AuthType": "AWS_IAM"})
    (function,) = template.find_resources("AWS::Lambda::Function", {"Properties": {"Handler": HANDLER}}).values()
    assert json.loads(function["Properties"]["Environment"]["Variables"]["WEIGHTS"]) == WEIGHTS
    role = template.to_json()["Resources"][function["Properties"]["Role"]["Fn::GetAtt"][0]]
    (policy,) = role["Properties"]["Policies"]
    invoking, logging = policy["PolicyDocument"]["Statement"]
    assert invoking["Action"] == "sagemaker:InvokeEndpoint"
    assert [json.dumps(arn).rpartition(":")[2].rstrip('"]}') for arn in invoking["Resource"]] == NAMES
    assert logging["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]


def test_cdk_nag_finds_nothing_in_it(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    Validations.of(app).add_plugins(AwsSolutionsChecks())
    EndpointStack(app, "Traffic", deployment=split())
    app.synth()  # fails on a finding
    (pack,) = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert pack["violations"] == []


def test_the_archive_imports_without_our_other_packages() -> None:
    with zipfile.ZipFile(BytesIO(router_archive())) as archive:
        names = archive.namelist()
    assert f"{HANDLER.rpartition('.')[0].replace('.', '/')}.py" in names
    assert {name for name in names if name.startswith("seatrial/")} == {
        "seatrial/__init__.py",
        "seatrial/deployment/__init__.py",
        "seatrial/deployment/traffic.py",
    }
    assert router_archive() == router_archive()


class Endpoint:
    """SageMaker's runtime as the router calls it."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.seen: list[Mapping[str, object]] = []

    def invoke_endpoint(self, **asked: object) -> Mapping[str, object]:
        self.seen.append(asked)
        if self.failure is not None:
            raise self.failure
        return {"Body": BytesIO(b"answer"), "ContentType": "text/plain"}

    def route(self, event: UrlEvent, fraction: Callable[[], float] = lambda: 0.0) -> Answer:
        return route(event, cast("SageMakerRuntimeClient", self), "dev-chat", WEIGHTS, fraction)


def test_a_request_goes_to_the_component_of_its_fraction_as_it_is() -> None:
    endpoint = Endpoint()
    event: UrlEvent = {"body": "eyJhIjogMX0=", "isBase64Encoded": True, "headers": {"Content-Type": "application/x"}}
    answer = endpoint.route(event, lambda: 0.95)
    assert answer["statusCode"] == 200
    (asked,) = endpoint.seen
    assert asked["InferenceComponentName"] == "dev-chat-summarize"
    assert asked["Body"] == b'{"a": 1}'
    assert asked["ContentType"] == "application/x"


def test_a_session_stays() -> None:
    endpoint = Endpoint()
    for fraction in ((0.0).__float__, (0.99).__float__):
        endpoint.route({"headers": {"x-seatrial-session": "user-3"}}, fraction)
    assert len({asked["InferenceComponentName"] for asked in endpoint.seen}) == 1


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (ClientError({"Error": {"Code": "ThrottlingException"}}, "InvokeEndpoint"), 429),
        (ClientError({"Error": {"Code": "ModelError"}, "OriginalStatusCode": 424}, "InvokeEndpoint"), 424),  # type: ignore[typeddict-unknown-key]
        (ClientError({"Error": {"Code": "Other"}}, "InvokeEndpoint"), 502),
        (ReadTimeoutError(endpoint_url="https://x"), 502),
    ],
)
def test_an_error_of_the_endpoint_is_the_answers_status(failure: Exception, status: int) -> None:
    assert Endpoint(failure).route({"body": "{}"})["statusCode"] == status


def test_a_body_that_is_not_base64_is_a_bad_request() -> None:
    endpoint = Endpoint()
    assert endpoint.route({"body": "#", "isBase64Encoded": True})["statusCode"] == 400
    assert not endpoint.seen
