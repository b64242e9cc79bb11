from __future__ import annotations

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from seatrial.specs.endpoint import Slo
from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
from seatrial_cdk.observability.endpoint_alarms import EndpointAlarms, longest_latency_ms


@pytest.mark.parametrize(
    ("slo", "longest_ms"),
    [
        ({"e2e_latency_ms": {"p95": 9000}, "ttft_ms": {"p95": 1}, "tpot_ms": {"p95": 1}}, 9000),
        ({"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 100}}, 2000 + 255 * 100),
        ({"ttft_ms": {"p95": 2000}}, None),
        ({"tpot_ms": {"p95": 100}}, None),
        ({"e2e_latency_ms": {"p50": 9000}}, None),
        ({}, None),
    ],
)
def test_the_longest_latency_that_an_slo_allows(slo: dict[str, object], longest_ms: float | None) -> None:
    assert longest_latency_ms(Slo.model_validate(slo), output_tokens=256) == longest_ms


@pytest.fixture(scope="module")
def told() -> Template:
    """Two sets of alarms on a topic of the app that allows nobody else, and one on an imported topic."""
    stack = Stack(App(analytics_reporting=False), "Stack")
    endpoint = ILlmEndpoint(stack, "Endpoint", endpoint_name="chat")
    topic = sns.Topic(stack, "Topic", master_key=kms.Key(stack, "Key"), enforce_ssl=True)
    imported = sns.Topic.from_topic_arn(stack, "Imported", "arn:aws:sns:us-east-1:123456789012:others")
    for name, each in {"One": topic, "Two": topic, "Others": imported}.items():
        EndpointAlarms(stack, name, endpoint=endpoint, slo=Slo(), output_tokens=256, topic=each)
    return Template.from_stack(stack)


@pytest.mark.parametrize(
    ("resource", "policy", "action"),
    [
        ("AWS::SNS::TopicPolicy", "PolicyDocument", "sns:Publish"),
        ("AWS::KMS::Key", "KeyPolicy", ["kms:Decrypt", "kms:GenerateDataKey*"]),
    ],
)
def test_cloudwatch_may_publish_to_a_topic_of_the_app(
    told: Template, resource: str, policy: str, action: object
) -> None:
    told.resource_count_is(resource, 1)
    (found,) = told.find_resources(resource).values()
    allowed = [
        each
        for each in found["Properties"][policy]["Statement"]
        if each["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    ]
    assert [(each["Effect"], each["Action"]) for each in allowed] == [("Allow", action)]
    assert allowed[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
