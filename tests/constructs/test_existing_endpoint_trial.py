"""The trial of an endpoint that something else made: rights for it alone, beside its users, nothing to prove."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Annotations, Match, Template

from seatrial.specs.endpoint import Percentiles, Slo
from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.trials.endpoint_trial import ExistingEndpointTrial
from seatrial_cdk.trials.runtime.order import Order
from seatrial_cdk.trials.runtime.properties import read_properties
from seatrial_cdk.trials.trial_service import TrialService

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent

SLO = Slo(ttft_ms=Percentiles(p95=2000))


def define(*, component: str | None = "Older-model", revision: str = "", **changed: Any) -> Stack:  # noqa: ANN401 (wrong)
    stack = Stack(App(), "Own")
    older = LlmEndpoint.from_attributes(stack, "Older", endpoint_name="Older", inference_component_name=component)
    service = TrialService(stack, "Trials", environment="dev")
    given = {"input_tokens": 128, "output_tokens": 64, "concurrency_levels": [1, 4], "manner": "in_place", **changed}
    ExistingEndpointTrial(stack, "OlderTrial", endpoint=older, trials=service, slo=SLO, revision=revision, **given)
    return stack


@pytest.fixture(scope="module")
def template() -> Template:
    return Template.from_stack(define())


def properties(template: Template) -> dict[str, str]:
    (resource,) = template.find_resources("Custom::SmokeBenchmark").values()
    found: dict[str, str] = resource["Properties"]
    return found


def test_the_service_may_invoke_this_endpoint_and_scale_its_component(template: Template) -> None:
    for name, actions in (
        ("endpoint/older", ["sagemaker:InvokeEndpoint", "sagemaker:DescribeEndpoint"]),
        ("inference-component/older-model", ["sagemaker:UpdateInferenceComponentRuntimeConfig"]),
    ):
        arn = {"Fn::Join": ["", Match.array_with([Match.string_like_regexp(f":{name}$")])]}
        for action in actions:
            statement = {"Action": Match.array_with([action]), "Effect": "Allow", "Resource": arn}
            document = {"PolicyDocument": {"Statement": Match.array_with([Match.object_like(statement)])}}
            template.has_resource_properties("AWS::IAM::Policy", document)


def test_it_is_loaded_beside_its_users_and_nothing_is_to_be_proven(template: Template) -> None:
    told = {name: value if isinstance(value, str) else "" for name, value in properties(template).items()}
    read = read_properties(told)
    assert (read.is_existing, read.update, read.endpoint_name) == (True, "in_place", "Older")
    event: CustomResourceEvent = json.loads(json.dumps({"RequestId": "1", "ResourceProperties": told}))
    request = Order(event, 0.0, "in_place").trial_request("us-east-1")
    assert (request.expected, request.manner, request.gate_concurrency) == (None, "in_place", 4)
    assert request.target.inference_component == "Older-model"


def test_another_revision_repeats_it(template: Template) -> None:
    again = properties(Template.from_stack(define(revision="2026-12")))
    assert again["PlanDigest"] != properties(template)["PlanDigest"]


def test_an_endpoint_without_a_component_is_refused_with_the_others() -> None:
    told = Annotations.from_stack(define(component=None))
    told.has_error("/Own/OlderTrial", Match.string_like_regexp("SEA448: .*LlmEndpoint.from_attributes"))


def test_every_wrong_argument_is_told_at_once() -> None:
    with pytest.raises(SpecError) as refused:
        define(manner="hard", mode="off", schema="grpc", budget_minutes=80, input_tokens=0, concurrency_levels=[4, 1])
    told = [(problem.rule, problem.field) for problem in refused.value.problems]
    assert told[:4] == [("SEA439", "manner"), ("SEA439", "mode"), ("SEA439", "schema"), ("SEA505", "budget_minutes")]
    assert set(told[4:]) == {("SEA501", "workload.input_tokens"), ("SEA501", "load.concurrency_levels")}
