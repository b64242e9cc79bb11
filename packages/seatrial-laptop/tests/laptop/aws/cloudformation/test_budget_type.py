"""A stack with a dashboard and a budget, and one with a hook, from creation over an update to deletion."""

from __future__ import annotations

import json
from typing import Any

import boto3

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
LONGEST_S = 30.0


def template(amount: int, *, address: str = "a@example.com", name: str = "seatrial-watched") -> str:
    budget = {
        **({"BudgetName": name} if name else {}),
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": amount, "Unit": "USD"},
    }
    told = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80}
    subscriber = {"SubscriptionType": "EMAIL", "Address": address}
    notifications = [{"Notification": told, "Subscribers": [subscriber]}]
    properties = {"Budget": budget, "NotificationsWithSubscribers": notifications}
    dashboard = {"DashboardName": "seatrial-watched", "DashboardBody": json.dumps({"widgets": []})}
    resources = {
        "Budget": {"Type": "AWS::Budgets::Budget", "Properties": properties},
        "Dashboard": {"Type": "AWS::CloudWatch::Dashboard", "Properties": dashboard},
    }
    return json.dumps({"Resources": resources})


def limits(laptop: Laptop) -> dict[str, float]:
    found = boto3.client("budgets", region_name="us-east-1").describe_budgets(AccountId=laptop.local.account)
    return {each["BudgetName"]: float(each["BudgetLimit"]["Amount"]) for each in found.get("Budgets", ())}


def test_a_budget_and_a_dashboard_live_with_their_stack(laptop: Laptop) -> None:
    stack, cloudwatch = laptop.name("watched"), boto3.client("cloudwatch")
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=template(2000))
    assert laptop.stack_settled(stack) == "CREATE_COMPLETE"
    assert limits(laptop) == {"seatrial-watched": 2000}
    assert [each["DashboardName"] for each in cloudwatch.list_dashboards()["DashboardEntries"]] == ["seatrial-watched"]
    laptop.cloudformation.update_stack(StackName=stack, TemplateBody=template(3000))
    assert laptop.stack_settled(stack) == "UPDATE_COMPLETE"
    assert limits(laptop) == {"seatrial-watched": 3000}
    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_COMPLETE"
    assert limits(laptop) == {}
    assert cloudwatch.list_dashboards()["DashboardEntries"] == []


def test_another_address_makes_another_budget_where_the_template_names_none(laptop: Laptop) -> None:
    """A budget's notifications are create-only: under the name of its predecessor there can be no successor."""
    client, stack = laptop.cloudformation, laptop.name("watched")
    for name, ended in (("seatrial-watched", "UPDATE_ROLLBACK_COMPLETE"), ("", "UPDATE_COMPLETE")):
        client.create_stack(StackName=f"{stack}{len(name)}", TemplateBody=template(100, name=name))
        assert laptop.stack_settled(f"{stack}{len(name)}") == "CREATE_COMPLETE"
        (before,) = limits(laptop)
        changed = template(100, address="b@example.com", name=name)
        client.update_stack(StackName=f"{stack}{len(name)}", TemplateBody=changed)
        assert laptop.stack_settled(f"{stack}{len(name)}") == ended
        (after,) = limits(laptop)
        assert (after == before) is bool(name)
        client.delete_stack(StackName=f"{stack}{len(name)}")
        laptop.stack_settled(f"{stack}{len(name)}")


def test_a_guard_hook_is_kept_with_its_stack_and_judges_nothing(laptop: Laptop) -> None:
    stack, alias = laptop.name("hooked"), "Seatrial::GuardRails::OfDev"
    for mode, ended in (("WARN", "CREATE_COMPLETE"), ("FAIL", "UPDATE_COMPLETE")):
        properties = {
            "Alias": alias,
            "ExecutionRole": f"arn:aws:iam::{laptop.local.account}:role/reads-rules",
            "FailureMode": mode,
            "HookStatus": "ENABLED",
            "RuleLocation": {"Uri": "s3://rules/nothing-is-allowed.guard"},
            "TargetOperations": ["RESOURCE"],
        }
        hook = {"Type": "AWS::CloudFormation::GuardHook", "Properties": properties}
        budget = json.loads(template(100))["Resources"]["Budget"]
        body = json.dumps(
            {"Resources": {"Hook": hook, "Budget": budget}, "Outputs": {"Hook": {"Value": {"Ref": "Hook"}}}}
        )
        change = laptop.cloudformation.create_stack if mode == "WARN" else laptop.cloudformation.update_stack
        change(StackName=stack, TemplateBody=body)
        assert laptop.stack_settled(stack) == ended
    (made,) = laptop.cloudformation.describe_stacks(StackName=stack)["Stacks"]
    assert [each["OutputValue"].rpartition(":type/")[2] for each in made["Outputs"]] == [
        "hook/Seatrial-GuardRails-OfDev"
    ]
    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_COMPLETE"


OF_TEAMS = "0f0e0d0c-1a2b-4c3d-8e9f-0a1b2c3d4e5f"


def test_a_channel_of_a_chat_is_kept_with_its_stack_and_told_nothing(laptop: Laptop) -> None:
    stack, role = laptop.name("chats"), f"arn:aws:iam::{laptop.local.account}:role/reads-alarms"
    chats = {
        "Slack": {"SlackWorkspaceId": "T0123456789", "SlackChannelId": "C0123456789"},
        "MicrosoftTeams": {"TeamId": OF_TEAMS, "TeamsTenantId": OF_TEAMS, "TeamsChannelId": "19%3aabc%40thread.tacv2"},
    }
    resources = {
        chat: {
            "Type": f"AWS::Chatbot::{chat}ChannelConfiguration",
            "Properties": {"ConfigurationName": f"{stack}-{chat}", "IamRoleArn": role, **channel},
        }
        for chat, channel in chats.items()
    }
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=json.dumps({"Resources": resources}))
    assert laptop.stack_settled(stack) == "CREATE_COMPLETE"
    made = laptop.cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    assert {each["PhysicalResourceId"].rpartition("/")[2] for each in made} == {f"{stack}-{chat}" for chat in chats}
    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_COMPLETE"
