"""A monthly budget of an environment, by its cost allocation tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Stack, Token
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_iam as iam
from constructs import Construct

from seatrial_base.tags import ENVIRONMENT_TAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_cdk.observability.endpoint_alarms import AlarmTopic

BUDGETS: Final = "budgets.amazonaws.com"
MOST_EMAILS: Final = 10
"""E-mail addresses of one notification (AWS Budgets API reference, NotificationWithSubscribers)."""
NOTIFICATIONS: Final = (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))
"""What is told, in percent of the budget: what was spent, and what the month is expected to come to."""


class EnvironmentBudget(Construct):
    """A monthly cost budget, which tells a topic or addresses at 80 % and 100 %, and when the forecast exceeds it.

    It counts what carries the tag `seatrial:environment`, once the tag is activated as a cost allocation tag in the
    account that pays (AWS Billing user guide); until then it counts nothing. AWS Budgets updates a few times a day and
    stops nothing. CloudFormation names it: other addresses replace a budget, and its successor could not have its name.

    Args:
        environment: The environment's name, the value of the tag.
        usd_per_month: The budget.
        emails: At most ten addresses.
        topic_arn: A topic that AWS Budgets may publish to; default: none.
        topic: The environment's own topic, which is notified and whose policy allows it; default: none.

    Raises:
        ValueError: Nobody would be notified, more than ten addresses are given, or the budget is not above 0.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        usd_per_month: float,
        emails: Sequence[str] = (),
        topic_arn: str | None = None,
        topic: AlarmTopic | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if topic is not None:
            topic_arn = topic.topic.topic_arn
            _allow_budgets(topic)
        if not Token.is_unresolved(usd_per_month) and usd_per_month <= 0:
            raise ValueError(f"a budget of {usd_per_month} USD; give more than 0")
        subscribers = _subscribers(emails, topic_arn)
        self.resource = budgets.CfnBudget(
            self,
            "Resource",
            budget=_budget(environment, usd_per_month),
            notifications_with_subscribers=[
                _notification(kind, percent, subscribers) for kind, percent in NOTIFICATIONS
            ],
        )
        if topic is not None:
            self.resource.node.add_dependency(topic.topic)


def _budget(environment: str, usd_per_month: float) -> budgets.CfnBudget.BudgetDataProperty:
    return budgets.CfnBudget.BudgetDataProperty(
        budget_type="COST",
        time_unit="MONTHLY",
        budget_limit=budgets.CfnBudget.SpendProperty(amount=usd_per_month, unit="USD"),
        cost_filters={"TagKeyValue": [f"user:{ENVIRONMENT_TAG}${environment}"]},
    )


def _subscribers(emails: Sequence[str], topic_arn: str | None) -> list[budgets.CfnBudget.SubscriberProperty]:
    if len(emails) > MOST_EMAILS:
        raise ValueError(f"{len(emails)} e-mail addresses; AWS Budgets takes {MOST_EMAILS}")
    found = [budgets.CfnBudget.SubscriberProperty(address=each, subscription_type="EMAIL") for each in emails]
    if topic_arn is not None:
        found.append(budgets.CfnBudget.SubscriberProperty(address=topic_arn, subscription_type="SNS"))
    if not found:
        raise ValueError("a budget that notifies nobody; give emails, topic_arn or topic")
    return found


def _notification(
    kind: str, percent: int, subscribers: list[budgets.CfnBudget.SubscriberProperty]
) -> budgets.CfnBudget.NotificationWithSubscribersProperty:
    return budgets.CfnBudget.NotificationWithSubscribersProperty(
        notification=budgets.CfnBudget.NotificationProperty(
            comparison_operator="GREATER_THAN",
            notification_type=kind,
            threshold=percent,
            threshold_type="PERCENTAGE",
        ),
        subscribers=subscribers,
    )


def _allow_budgets(topic: AlarmTopic) -> None:
    """Let AWS Budgets of this account publish to a topic and use its key (AWS Cost Management user guide)."""
    stack = Stack.of(topic)
    same_account = {"StringEquals": {"aws:SourceAccount": stack.account}}
    topic.topic.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal(BUDGETS)],
            actions=["sns:Publish"],
            resources=[topic.topic.topic_arn],
            conditions=same_account,
        )
    )
    topic.key.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal(BUDGETS)],
            actions=["kms:Decrypt", "kms:GenerateDataKey*"],
            resources=["*"],
            conditions=same_account,
        )
    )
