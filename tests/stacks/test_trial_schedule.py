"""The schedule of an environment's trials: one rule per endpoint, one permission, one topic; nothing without it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial_cdk.trial_schedule import LONGEST_RULE_NAME, rule_name
from seatrial_stacks.app_stacks import add_stacks
from tests.stacks.conftest import dev

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

CRON = "cron(0 6 ? * MON *)"


@pytest.fixture(scope="module")
def templates() -> tuple[Template, Template]:
    """Return the endpoint's and the service's template."""
    deployment = dev()
    environment = deployment.environment.model_copy(update={"trial_schedule": CRON})
    app = App()
    add_stacks(app, [replace(deployment, environment=environment)])
    endpoint, trials = (app.node.find_child(name) for name in ("seatrial-dev-chat", "seatrial-dev-trials"))
    return Template.from_stack(endpoint), Template.from_stack(trials)  # type: ignore[arg-type]  # they are stacks


def test_the_endpoint_has_a_rule_that_asks_the_service_by_its_name(templates: tuple[Template, Template]) -> None:
    (rule,) = templates[0].find_resources("AWS::Events::Rule").values()
    properties = rule["Properties"]
    assert (properties["Name"], properties["ScheduleExpression"]) == ("seatrial-dev-chat", CRON)
    (target,) = properties["Targets"]
    assert json.dumps(target["Arn"]).endswith('":function:seatrial-dev-trials"]]}')
    transformer = target["InputTransformer"]
    parts = transformer["InputTemplate"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else part["Ref"] for part in parts)
    assert transformer["InputPathsMap"] == {"id": "$.id"}
    assert json.loads(text) == {
        "Scheduled": {
            "EndpointName": "dev-chat",
            "InferenceComponentName": "dev-chat-model",
            "StackId": "AWS::StackId",
            "Id": "<id>",
        }
    }
    templates[0].resource_count_is("AWS::Lambda::Permission", 0)


def test_the_service_may_be_called_by_these_rules_and_tell_the_alarm_topic(
    templates: tuple[Template, Template],
) -> None:
    trials = templates[1]
    rules = {"Fn::Join": ["", Match.array_with([":rule/seatrial-dev-*"])]}
    account = {"Ref": "AWS::AccountId"}
    trials.has_resource_properties("AWS::Lambda::Permission", {"SourceArn": rules, "SourceAccount": account})
    text = json.dumps(trials.to_json())
    assert '"sns:Publish"' in json.dumps(trials.find_resources("AWS::IAM::Role"))
    assert ":seatrial-dev-alarms" in text
    (function,) = trials.find_resources(
        "AWS::Lambda::Function", {"Properties": {"FunctionName": Match.any_value()}}
    ).values()
    assert "FINDINGS_TOPIC" in function["Properties"]["Environment"]["Variables"]


def test_without_a_schedule_nothing_is_there(dev_template: Template, dev_trials: Template) -> None:
    assert dev_template.find_resources("AWS::Events::Rule") == {}
    text = json.dumps(dev_trials.to_json())
    assert "FINDINGS_TOPIC" not in text
    assert "rule/seatrial-dev-*" not in text


def test_an_endpoint_that_is_not_tried_has_no_schedule(dev_deployment: Deployment) -> None:
    environment = dev_deployment.environment.model_copy(update={"trial_schedule": CRON})
    trial = dev_deployment.endpoint.trial.model_copy(update={"mode": "off"})
    endpoint = dev_deployment.endpoint.model_copy(update={"trial": trial})
    app = App()
    add_stacks(app, [replace(dev_deployment, environment=environment, endpoint=endpoint)])
    (stack,) = app.node.children[:1]
    assert Template.from_stack(stack).find_resources("AWS::Events::Rule") == {}  # type: ignore[arg-type]  # a stack


def test_long_names_keep_apart() -> None:
    long = "e" * 56
    first, second = rule_name(f"{long}a"), rule_name(f"{long}b")
    assert (len(first), len(second), first != second) == (LONGEST_RULE_NAME, LONGEST_RULE_NAME, True)
