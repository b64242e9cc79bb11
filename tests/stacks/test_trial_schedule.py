"""The schedule of an environment's trials: one per endpoint, one group, role and topic; nothing without it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial_cdk.trials.trials_stack import LONGEST_SCHEDULE_NAME, schedule_name
from seatrial_stacks.app_stacks import add_stacks
from tests.stacks.conftest import dev

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

CRON = "cron(0 6 ? * MON *)"
SCHEDULE = "AWS::Scheduler::Schedule"


@pytest.fixture(scope="module")
def templates() -> tuple[Template, Template]:
    """Return the endpoint's and the service's template."""
    deployment = dev()
    environment = deployment.environment.model_copy(update={"trial_schedule": CRON})
    app = App()
    add_stacks(app, [replace(deployment, environment=environment)])
    endpoint, trials = (app.node.find_child(name) for name in ("seatrial-dev-chat", "seatrial-dev-trials"))
    return Template.from_stack(endpoint), Template.from_stack(trials)  # type: ignore[arg-type]  # they are stacks


def test_the_endpoint_has_a_schedule_that_asks_the_service_by_its_name(templates: tuple[Template, Template]) -> None:
    (schedule,) = templates[0].find_resources(SCHEDULE).values()
    properties, target = schedule["Properties"], schedule["Properties"]["Target"]
    assert (properties["Name"], properties["GroupName"]) == ("seatrial-dev-chat", "seatrial-dev-trials")
    assert properties["ScheduleExpression"] == CRON
    assert properties["FlexibleTimeWindow"] == {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 240}
    assert json.dumps(target["Arn"]).endswith('":function:seatrial-dev-trials"]]}')
    assert ":role/seatrial-dev-schedules-" in json.dumps(target["RoleArn"])
    parts = target["Input"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else part["Ref"] for part in parts)
    assert json.loads(text) == {
        "Scheduled": {
            "EndpointName": "dev-chat",
            "InferenceComponentName": "dev-chat-model",
            "StackId": "AWS::StackId",
            "Id": "<aws.scheduler.scheduled-time>",
        }
    }
    templates[0].resource_count_is("AWS::Lambda::Permission", 0)


def test_schedules_of_the_group_may_call_the_service_and_it_may_tell_the_alarm_topic(
    templates: tuple[Template, Template],
) -> None:
    trials = templates[1]
    trials.has_resource_properties("AWS::Scheduler::ScheduleGroup", {"Name": "seatrial-dev-trials"})
    text = json.dumps(trials.to_json())
    named = {"Description": "Schedules of trials of dev"}
    (role,) = trials.find_resources("AWS::IAM::Role", {"Properties": named}).values()
    assert "seatrial-dev-schedules-" in json.dumps(role["Properties"]["RoleName"])
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert json.dumps(trust["Condition"]["StringEquals"]["aws:SourceArn"]).endswith(
        ':schedule-group/seatrial-dev-trials"]]}'
    )
    ((right,),) = (policy["PolicyDocument"]["Statement"] for policy in role["Properties"]["Policies"])
    assert right["Action"] == "lambda:InvokeFunction"
    assert json.dumps(right["Resource"]).endswith(':function:seatrial-dev-trials"]]}')
    assert '"sns:Publish"' in json.dumps(trials.find_resources("AWS::IAM::Role"))
    assert ":seatrial-dev-alarms" in text
    (function,) = trials.find_resources(
        "AWS::Lambda::Function", {"Properties": {"FunctionName": Match.any_value()}}
    ).values()
    assert "FINDINGS_TOPIC" in function["Properties"]["Environment"]["Variables"]


def test_without_a_schedule_nothing_is_there(dev_template: Template, dev_trials: Template) -> None:
    assert dev_template.find_resources(SCHEDULE) == {}
    text = json.dumps(dev_trials.to_json())
    assert "FINDINGS_TOPIC" not in text
    assert "AWS::Scheduler::" not in text


def test_an_endpoint_that_is_not_tried_has_no_schedule(dev_deployment: Deployment) -> None:
    environment = dev_deployment.environment.model_copy(update={"trial_schedule": CRON})
    trial = dev_deployment.endpoint.trial.model_copy(update={"mode": "off"})
    endpoint = dev_deployment.endpoint.model_copy(update={"trial": trial})
    app = App()
    add_stacks(app, [replace(dev_deployment, environment=environment, endpoint=endpoint)])
    (stack,) = app.node.children[:1]
    assert Template.from_stack(stack).find_resources(SCHEDULE) == {}  # type: ignore[arg-type]  # a stack


def test_long_names_keep_apart() -> None:
    long = "e" * 56
    first, second = schedule_name(f"{long}a"), schedule_name(f"{long}b")
    assert (len(first), len(second), first != second) == (LONGEST_SCHEDULE_NAME, LONGEST_SCHEDULE_NAME, True)
