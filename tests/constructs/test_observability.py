"""Dashboards and budget: one resource each, whose metrics exist, and whose body is the same at each synthesis."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from seatrial.specs.endpoint import Slo
from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
from seatrial_cdk.observability.endpoint_alarms import AlarmTopic
from seatrial_cdk.observability.endpoint_dashboard import DashboardInstances, DashboardTrials, EndpointDashboard
from seatrial_cdk.observability.environment_dashboard import (
    MOST_ENDPOINTS,
    EnvironmentBudget,
    EnvironmentDashboard,
    ShownEndpoint,
)
from seatrial_cdk.observability.widgets import MOST_METRICS, WIDTH
from seatrial_cdk.trials.runtime.report import DIMENSIONS, NAMESPACE, UNITS
from tests.stacks.test_assembly import LINT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOUR_GPUS = DashboardInstances(instance_type="ml.g6e.12xlarge", accelerators=4, usd_per_hour=13.12)
ONE_GPU = DashboardInstances(instance_type="ml.g5.2xlarge", accelerators=1, usd_per_hour=1.515)
SLO = Slo.model_validate({"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 100}})
PUBLISHED = {
    "AWS/SageMaker": {
        "Invocations",
        "Invocation4XXErrors",
        "Invocation5XXErrors",
        "InvocationModelErrors",
        "ModelLatency",
        "OverheadLatency",
        "FirstChunkModelLatency",
        "InvocationsPerInstance",
        "InvocationsPerCopy",
        "ConcurrentRequestsPerModel",
        "ConcurrentRequestsPerCopy",
        "NoCapacityInvocationFailures",
    },
    "/aws/sagemaker/Endpoints": {
        "CPUUtilization",
        "MemoryUtilization",
        "DiskUtilization",
        "GPUUtilization",
        "GPUMemoryUtilization",
    },
    "/aws/sagemaker/InferenceComponents": {
        "CPUUtilizationNormalized",
        "MemoryUtilizationNormalized",
        "GPUUtilizationNormalized",
        "GPUMemoryUtilizationNormalized",
    },
    NAMESPACE: set(UNITS),
}
"""What Amazon SageMaker documents, and what trials publish."""


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = Stack(App(), "Stack", env=Environment(account="123456789012", region="eu-west-1"))
    component = ILlmEndpoint(stack, "Chat", endpoint_name="prod-chat", inference_component_name="prod-chat-model")
    EndpointDashboard(
        stack,
        "Full",
        endpoint=component,
        instances=FOUR_GPUS,
        trials=DashboardTrials(endpoint="chat", environment="prod", results_bucket="results"),
        slo=SLO,
        target_concurrency_per_copy=12.5,
    )
    single = ILlmEndpoint(stack, "Single", endpoint_name="single")
    EndpointDashboard(stack, "Plain", endpoint=single, dashboard_name="plain")
    shown = [
        ShownEndpoint(
            endpoint_name=f"prod-{number:03}", spec_name=f"{number:03}", instances=(FOUR_GPUS, ONE_GPU)[number % 2]
        )
        for number in range(MOST_ENDPOINTS + 3)
    ]
    EnvironmentDashboard(stack, "Prod", environment="prod", endpoints=shown[::-1])
    EnvironmentDashboard(stack, "Empty", environment="empty", endpoints=[])
    topic = AlarmTopic(stack, "Alarms", environment="prod", key=kms.Key(stack, "Key"))
    EnvironmentBudget(stack, "Budget", environment="prod", usd_per_month=5000, emails=["a@b.c"], topic=topic)
    return stack


@pytest.fixture(scope="module")
def template(stack: Stack) -> Template:
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def bodies(template: Template) -> dict[str, Any]:
    found = template.find_resources("AWS::CloudWatch::Dashboard").values()
    return {each["Properties"]["DashboardName"]: json.loads(each["Properties"]["DashboardBody"]) for each in found}


def metrics(body: Any) -> Iterator[list[Any]]:  # noqa: ANN401 (a document)
    for widget in body["widgets"]:
        for row in widget["properties"].get("metrics", ()):
            if isinstance(row[0], str):
                yield row


def titles(body: Any) -> list[str]:  # noqa: ANN401 (likewise)
    return [widget["properties"]["title"] for widget in body["widgets"] if widget["type"] == "metric"]


def test_every_dashboard_is_one_resource(bodies: dict[str, Any]) -> None:
    assert set(bodies) == {"prod-chat", "plain", "seatrial-prod", "seatrial-empty"}


def test_every_metric_is_published_under_dimensions_that_it_has(bodies: dict[str, Any]) -> None:
    seen = set()
    for body in bodies.values():
        for row in metrics(body):
            namespace, name, *pairs = row[:-1]
            assert name in PUBLISHED[namespace]
            assert not (name.startswith("FirstChunk") and "InferenceComponentName" in pairs)
            seen.add((namespace, tuple(pairs[::2])))
    assert seen == {
        ("AWS/SageMaker", ("InferenceComponentName",)),
        ("AWS/SageMaker", ("EndpointName", "VariantName")),
        ("/aws/sagemaker/Endpoints", ("EndpointName", "VariantName")),
        ("/aws/sagemaker/InferenceComponents", ("InferenceComponentName",)),
        (NAMESPACE, DIMENSIONS),
    }


def test_the_rows_of_a_full_dashboard(bodies: dict[str, Any]) -> None:
    assert titles(bodies["prod-chat"]) == [
        "Requests per minute",
        "Failures per minute",
        "Latency at SageMaker (ms)",
        "Latency at a client, in trials (ms)",
        "Output tokens per second at the knee",
        "USD per million output tokens",
        "Last trials",
        "Requests in flight per copy",
        "Copies and instances",
        "Cost (USD)",
        "Utilization of the instances (%)",
        "Utilization of the copies (%)",
    ]
    assert titles(bodies["plain"]) == [
        "Requests per minute",
        "Failures per minute",
        "Latency at SageMaker (ms)",
        "Requests in flight per copy",
        "Copies and instances",
    ]


def test_rows_fill_the_grid_without_overlap(bodies: dict[str, Any]) -> None:
    for body in bodies.values():
        taken = [
            (w["x"] + x, w["y"] + y) for w in body["widgets"] for x in range(w["width"]) for y in range(w["height"])
        ]
        assert len(taken) == len(set(taken))
        assert all(x < WIDTH for x, _ in taken)


def expressions(body: Any, title: str) -> list[str]:  # noqa: ANN401 (likewise)
    (widget,) = (each for each in body["widgets"] if each["properties"].get("title") == title)
    return [row[0]["expression"] for row in widget["properties"]["metrics"] if isinstance(row[0], dict)]


def test_utilization_is_divided_by_the_accelerators_and_cost_multiplied_by_the_price(bodies: dict[str, Any]) -> None:
    full = bodies["prod-chat"]
    assert expressions(full, "Utilization of the instances (%)") == ["gpu_1/4", "gpu_2/4"]
    assert DashboardInstances(instance_type="ml.g6.xlarge", accelerators=1, points_per_minute=6).count == "running/6"
    assert expressions(full, "Cost (USD)") == ["running*13.12", "running*13.12*730"]
    assert expressions(full, "Copies and instances") == ["requests/share", "running"]
    assert [len(expressions(bodies[name], "Latency at SageMaker (ms)")) for name in ("prod-chat", "plain")] == [4, 6]


def test_bounds_are_drawn(bodies: dict[str, Any]) -> None:
    drawn = {
        widget["properties"]["title"]: [mark["value"] for mark in widget["properties"]["annotations"]["horizontal"]]
        for widget in bodies["prod-chat"]["widgets"]
        if "annotations" in widget["properties"]
    }
    assert drawn == {
        "Latency at a client, in trials (ms)": [2000, 100],
        "Requests in flight per copy": [12.5],
    }


def test_the_keys_of_every_graph_are_different_and_valid(bodies: dict[str, Any]) -> None:
    for body in bodies.values():
        for widget in body["widgets"]:
            rows = widget["properties"].get("metrics", ())
            keys = [row[-1]["id"] for row in rows if "id" in row[-1]]
            assert len(keys) == len(set(keys))
            assert all(re.fullmatch(r"[a-z][a-zA-Z0-9_]*", key) for key in keys)


def test_a_large_environment_stays_within_the_quotas_and_says_what_is_left_out(bodies: dict[str, Any]) -> None:
    body = bodies["seatrial-prod"]
    graphs = [widget["properties"]["metrics"] for widget in body["widgets"] if widget["type"] == "metric"]
    assert max(sum(isinstance(row[0], str) for row in rows) for rows in graphs) <= MOST_METRICS
    assert len([*metrics(body)]) <= 2500
    assert "200 endpoints; 3 more are not drawn" in body["widgets"][0]["properties"]["markdown"]
    assert expressions(body, "Cost (USD per hour)")[-1] == (
        'FILL(SUM(METRICS("p0_")),0)*1.515+FILL(SUM(METRICS("p1_")),0)*13.12'
    )
    assert len(bodies["seatrial-empty"]["widgets"]) == 1


def test_the_variants_of_an_endpoint_have_a_dashboard_each() -> None:
    stack = Stack(App(analytics_reporting=False), "Stack")
    for name in ("AllTraffic", "old", "new"):
        endpoint = ILlmEndpoint(stack, name, endpoint_name="chat", variant_name=name)
        EndpointDashboard(stack, f"{name}Dashboard", endpoint=endpoint)
    found = Template.from_stack(stack).find_resources("AWS::CloudWatch::Dashboard").values()
    assert sorted(each["Properties"]["DashboardName"] for each in found) == ["chat", "chat-new", "chat-old"]


def test_tokens_stay_tokens_and_a_number_is_no_text() -> None:
    stack = Stack(App(), "Tokens")
    endpoint = ILlmEndpoint(stack, "Chat", endpoint_name=stack.stack_name, inference_component_name=stack.stack_id)
    EndpointDashboard(stack, "Dashboard", endpoint=endpoint, target_concurrency_per_copy=stack.url_suffix)
    (found,) = Template.from_stack(stack).find_resources("AWS::CloudWatch::Dashboard").values()
    body = found["Properties"]["DashboardBody"]["Fn::Join"][1]
    assert {"Ref": "AWS::Region"} in body
    place = body.index({"Ref": "AWS::URLSuffix"})
    assert (body[place - 1][-8:], body[place + 1][:1]) == ('"value":', "}")


def test_the_budget_counts_the_environments_tag_and_tells_topic_and_address(template: Template) -> None:
    (budget,) = template.find_resources("AWS::Budgets::Budget").values()
    limits = budget["Properties"]["Budget"]
    assert limits["BudgetLimit"] == {"Amount": 5000, "Unit": "USD"}
    assert limits["CostFilters"] == {"TagKeyValue": ["user:seatrial:environment$prod"]}
    told = budget["Properties"]["NotificationsWithSubscribers"]
    assert [(each["Notification"]["NotificationType"], each["Notification"]["Threshold"]) for each in told] == [
        ("ACTUAL", 80),
        ("ACTUAL", 100),
        ("FORECASTED", 100),
    ]
    assert {each["SubscriptionType"] for each in told[0]["Subscribers"]} == {"EMAIL", "SNS"}


@pytest.mark.parametrize(
    ("kind", "action"), [("AWS::SNS::TopicPolicy", "sns:Publish"), ("AWS::KMS::Key", "kms:Decrypt")]
)
def test_budgets_of_this_account_alone_may_use_topic_and_key(template: Template, kind: str, action: str) -> None:
    statement = Match.object_like(
        {
            "Action": action if kind.endswith("Policy") else Match.array_with([action]),
            "Principal": {"Service": "budgets.amazonaws.com"},
            "Condition": {"StringEquals": {"aws:SourceAccount": "123456789012"}},
        }
    )
    name = "PolicyDocument" if kind.endswith("Policy") else "KeyPolicy"
    template.has_resource_properties(kind, {name: {"Statement": Match.array_with([statement])}})


def test_cfn_lint_finds_nothing(template: Template, tmp_path: Path) -> None:
    file = tmp_path / "watched.template.json"
    file.write_text(json.dumps(template.to_json()))
    linted = subprocess.run([*LINT, str(file)], capture_output=True, text=True, check=False)
    assert (linted.stdout, linted.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"usd_per_month": 5}, "notifies nobody"),
        ({"usd_per_month": 0, "emails": ["a@b.c"]}, "more than 0"),
        ({"usd_per_month": 5, "emails": ["a@b.c"] * 11}, "11 e-mail addresses"),
    ],
)
def test_a_budget_that_can_not_work_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EnvironmentBudget(Stack(), "Budget", environment="prod", **wrong)
