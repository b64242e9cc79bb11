"""An environment as a whole: a dashboard with a line for each endpoint, and a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aws_cdk import Stack, Token
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial_base.frozen_model import digest
from seatrial_base.tags import ENVIRONMENT_TAG, TEAM_TAG
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME
from seatrial_cdk.observability.endpoint_dashboard import (
    INSTANCES,
    SERVICE,
    TRIAL_PERIOD_S,
    TRIALS,
    US_PER_MS,
    DashboardInstances,
    shown_instances,
)
from seatrial_cdk.observability.widgets import DashboardText, Graph, Grid, MetricFormula, MetricLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seatrial.deployment.document import Deployment
    from seatrial.specs.environment import Audience, EnvironmentSpec
    from seatrial_cdk.observability.endpoint_alarms import AlarmTopic


MOST_ENDPOINTS: Final = 200
"""Endpoints that are drawn: a dashboard has 2,500 metrics at most (CloudWatch quotas), and each endpoint has ten."""
BUDGETS: Final = "budgets.amazonaws.com"
MOST_EMAILS: Final = 10
"""E-mail addresses of one notification (AWS Budgets API reference, NotificationWithSubscribers)."""
NOTIFICATIONS: Final = (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))
"""Notifications, in percent of the budget: what was spent, and what the month is expected to come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEndpoint:
    """One endpoint of the dashboard.

    Attributes:
        spec_name: Its name in its spec, which the metrics of its trials have.
        instances: What it runs on; `None` leaves its cost out.
    """

    endpoint_name: str
    spec_name: str
    instances: DashboardInstances | None = None

    @property
    def component(self) -> dict[str, str]:
        """Dimensions of its component's metrics."""
        return {"InferenceComponentName": f"{self.endpoint_name}{COMPONENT_SUFFIX}"}

    @property
    def variant(self) -> dict[str, str]:
        """Dimensions of its variant's metrics."""
        return {"EndpointName": self.endpoint_name, "VariantName": VARIANT_NAME}


class EnvironmentDashboard(Construct):
    """A dashboard of an environment's endpoints: requests, failures, latency, load, cost, verdicts of trials.

    The first 200 endpoints by name are drawn; the heading says how many are not.

    Args:
        endpoints: Its endpoints, with their model in an inference component.
        dashboard_name: Its name; default: `seatrial-ENVIRONMENT`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        endpoints: Sequence[ShownEndpoint],
        dashboard_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        every = sorted(endpoints, key=lambda each: each.endpoint_name)
        shown = every[:MOST_ENDPOINTS]
        grid = Grid(Stack.of(self).region)
        left = f"; {len(every) - len(shown)} more are not drawn" if every[MOST_ENDPOINTS:] else ""
        grid.add_text(DashboardText(f"# {environment}\n\n{len(shown)} endpoints{left}"))
        if shown:
            requests = _each(shown, "Invocations", "Sum")
            in_flight = _each(shown, "ConcurrentRequestsPerCopy", "Maximum")
            grid.add_row([Graph(title="Requests per minute", lines=requests), _failures(shown)])
            grid.add_row([_latency(shown), Graph(title="Requests in flight per copy", lines=in_flight)])
            grid.add_row([_trials(shown, environment), *_cost(shown)])
        self.resource = cloudwatch.CfnDashboard(
            self,
            "Resource",
            dashboard_name=dashboard_name or f"seatrial-{environment}",
            dashboard_body=grid.body(),
        )


def _each(shown: Sequence[ShownEndpoint], metric: str, stat: str) -> list[MetricLine]:
    return [MetricLine(SERVICE, metric, each.component, each.endpoint_name, stat) for each in shown]


def _failures(shown: Sequence[ShownEndpoint]) -> Graph:
    lines = [
        MetricLine(SERVICE, metric, each.component, f"{each.endpoint_name} {label}", "Sum")
        for each in shown
        for metric, label in (("Invocation5XXErrors", "5XX"), ("NoCapacityInvocationFailures", "no capacity"))
    ]
    return Graph(title="Failures per minute", lines=lines)


def _latency(shown: Sequence[ShownEndpoint]) -> Graph:
    lines: list[MetricLine | MetricFormula] = []
    for number, each in enumerate(shown):
        name, key = each.endpoint_name, f"m{number}"
        lines.append(MetricLine(SERVICE, "ModelLatency", each.component, name, "p95", key=key, is_shown=False))
        lines.append(MetricFormula(f"{key}/{US_PER_MS}", name, f"ms{number}"))
    return Graph(title="Latency of the containers, p95 (ms)", lines=lines)


def _trials(shown: Sequence[ShownEndpoint], environment: str) -> Graph:
    lines = []
    for each in shown:
        place = {"Endpoint": each.spec_name, "Environment": environment}
        lines.append(MetricLine(TRIALS, "Passed", place, each.spec_name, "Minimum", period_s=TRIAL_PERIOD_S))
    return Graph(title="Last trials: passed (1) or not (0)", lines=lines, as_numbers=True)


def _cost(shown: Sequence[ShownEndpoint]) -> list[Graph]:
    """Return what the endpoints with a known price cost, and their sum; none when no price is known.

    An expression has no room for two hundred names, so the sum is made by price: the counts of one price have keys with
    the same beginning.
    """
    # By data point: an instance publishes several a minute where metrics come every ten seconds.
    priced = [
        (each, None if (price := each.instances.usd_per_hour) is None else round(price / points, 6))
        for each in shown
        if each.instances is not None and (points := each.instances.points_per_minute)
    ]
    prices = sorted({price for _, price in priced if price is not None})
    lines: list[MetricLine | MetricFormula] = []
    for number, (each, price) in enumerate(priced):
        if price is not None:  # one without a price has its number too: those of the others stay when it gets one
            name, key = each.endpoint_name, f"p{prices.index(price)}_{number}"
            lines.append(
                MetricLine(INSTANCES, "CPUUtilization", each.variant, name, "SampleCount", key=key, is_shown=False)
            )
            lines.append(MetricFormula(f"{key}*{price:g}", name, f"usd{number}"))
    if not prices:
        return []
    total = "+".join(f'FILL(SUM(METRICS("p{index}_")),0)*{price:g}' for index, price in enumerate(prices))
    return [Graph(title="Cost (USD per hour)", lines=[*lines, MetricFormula(total, "all", "total")])]


class EnvironmentBudget(Construct):
    """A monthly cost budget, which notifies a topic or addresses at 80 % and 100 %, and when the forecast exceeds it.

    It counts what carries the tag `seatrial:environment`, and `team` where it is a team's, once the tags are activated
    as cost allocation tags in the account that pays (AWS Billing user guide); until then it counts nothing. That two
    keys of one filter are joined by AND, as in Cost Explorer, is assumed. AWS Budgets updates a few times a day and
    stops nothing. CloudFormation names it: other addresses replace a budget, and its successor could not have its name.

    Args:
        environment: The environment's name, the value of the tag.
        usd_per_month: The budget.
        emails: At most ten addresses.
        topic_arn: A topic that AWS Budgets may publish to; default: none.
        topic: A topic of this app, which is notified and whose policy allows it; default: none.
        team: Counts what is this team's alone; default: everything of the environment.

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
        team: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if topic is not None:
            topic_arn = topic.topic.topic_arn
            _allow_budgets(topic)
        if not Token.is_unresolved(usd_per_month) and usd_per_month <= 0:
            raise ValueError(f"a budget of {usd_per_month} USD; give more than 0")
        subscribers = _subscribers(emails, topic_arn)
        tags = {ENVIRONMENT_TAG: environment, **({} if team is None else {TEAM_TAG: team})}
        self.resource = budgets.CfnBudget(
            self,
            "Resource",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=usd_per_month, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{key}${value}" for key, value in tags.items()]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        comparison_operator="GREATER_THAN",
                        notification_type=kind,
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=subscribers,
                )
                for kind, percent in NOTIFICATIONS
            ],
        )
        if topic is not None:
            self.resource.node.add_dependency(topic.topic)


def _subscribers(emails: Sequence[str], topic_arn: str | None) -> list[budgets.CfnBudget.SubscriberProperty]:
    if len(emails) > MOST_EMAILS:
        raise ValueError(f"{len(emails)} e-mail addresses; AWS Budgets takes {MOST_EMAILS}")
    subscribers = [budgets.CfnBudget.SubscriberProperty(address=each, subscription_type="EMAIL") for each in emails]
    if topic_arn is not None:
        subscribers.append(budgets.CfnBudget.SubscriberProperty(address=topic_arn, subscription_type="SNS"))
    if not subscribers:
        raise ValueError("a budget that notifies nobody; give emails, topic_arn or topic")
    return subscribers


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


def define_environment_view(
    scope: Construct, environment: EnvironmentSpec, deployments: Iterable[Deployment]
) -> EnvironmentDashboard | None:
    """Define the dashboard of an environment where it asks for one.

    Args:
        deployments: Every deployment of the app; those of other environments are left out.
    """
    if not environment.observability.has_environment_dashboard:
        return None
    shown = [
        ShownEndpoint(
            endpoint_name=each.endpoint_name,
            spec_name=each.endpoint.name,
            instances=shown_instances(each.plan, each.endpoint.hosting),
        )
        for each in deployments
        if each.environment.name == environment.name
    ]
    return EnvironmentDashboard(scope, "Dashboard", environment=environment.name, endpoints=shown)


def define_budgets(
    scope: Construct, environment: EnvironmentSpec, own: AlarmTopic | None, topics: Mapping[Audience, AlarmTopic]
) -> tuple[EnvironmentBudget, ...]:
    """Define the budgets of an environment and of its teams, as far as its file has them.

    Args:
        own: Its own topic; `None` where its file names one, whose policy is its owner's.
        topics: The topics of its teams.
    """
    wanted = environment.observability
    made: list[EnvironmentBudget] = []
    limits: list[tuple[str | None, float]] = [*wanted.team_budgets_usd_per_month.items()]
    if wanted.budget_usd_per_month is not None:
        limits.insert(0, (None, wanted.budget_usd_per_month))
    for team, limit in limits:
        topic = own if team is None else topics.get(("team", team), own)
        made.append(
            EnvironmentBudget(
                scope,
                "Budget" if team is None else f"Budget{digest(team)[:8].upper()}",
                environment=environment.name,
                usd_per_month=limit,
                emails=wanted.budget_emails if team is None else (),
                topic_arn=environment.alarms.topic_arn,
                topic=topic,
                team=team,
            )
        )
    return tuple(made)
