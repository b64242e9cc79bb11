"""The endpoints of an environment on one CloudWatch dashboard, a line for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME
from seatrial_cdk.observability.endpoint_dashboard import (
    INSTANCES,
    SERVICE,
    TRIAL_PERIOD_S,
    TRIALS,
    US_PER_MS,
    DashboardInstances,
)
from seatrial_cdk.observability.widgets import DashboardText, Graph, Grid, MetricFormula, MetricLine

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ENDPOINTS: Final = 200
"""Endpoints that are drawn: a dashboard has 2,500 metrics at most (CloudWatch quotas), and each endpoint has ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEndpoint:
    """One endpoint of the dashboard.

    Attributes:
        endpoint_name: Its name on SageMaker.
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
        environment: The environment's name.
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
            grid.add_row([_requests(shown), _failures(shown)])
            grid.add_row([_latency(shown), _load(shown)])
            grid.add_row([_trials(shown, environment), *_cost(shown)])
        self.resource = cloudwatch.CfnDashboard(
            self,
            "Resource",
            dashboard_name=dashboard_name or f"seatrial-{environment}",
            dashboard_body=grid.body(),
        )


def _each(shown: Sequence[ShownEndpoint], metric: str, stat: str) -> list[MetricLine]:
    return [MetricLine(SERVICE, metric, each.component, each.endpoint_name, stat) for each in shown]


def _requests(shown: Sequence[ShownEndpoint]) -> Graph:
    return Graph(title="Requests per minute", lines=_each(shown, "Invocations", "Sum"))


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


def _load(shown: Sequence[ShownEndpoint]) -> Graph:
    return Graph(title="Requests in flight per copy", lines=_each(shown, "ConcurrentRequestsPerCopy", "Maximum"))


def _trials(shown: Sequence[ShownEndpoint], environment: str) -> Graph:
    lines = []
    for each in shown:
        place = {"Endpoint": each.spec_name, "Environment": environment}
        lines.append(MetricLine(TRIALS, "Passed", place, each.spec_name, "Minimum", period_s=TRIAL_PERIOD_S))
    return Graph(title="Last trials: passed (1) or not (0)", lines=lines, as_numbers=True)


def _usd_per_point(instances: DashboardInstances) -> float | None:
    """Return the price of an instance per hour for each data point that it publishes in a minute."""
    price = instances.usd_per_hour
    return None if price is None else round(price / instances.points_per_minute, 6)


def _cost(shown: Sequence[ShownEndpoint]) -> list[Graph]:
    """Return what the endpoints with a known price cost, and their sum; none when no price is known.

    An expression has no room for two hundred names, so the sum is made by price: the counts of one price have keys with
    the same beginning.
    """
    priced = [(each, _usd_per_point(each.instances)) for each in shown if each.instances is not None]
    prices = sorted({price for _, price in priced if price is not None})
    lines: list[MetricLine | MetricFormula] = []
    for number, (each, price) in enumerate(priced):
        if price is not None:
            name, key = each.endpoint_name, f"p{prices.index(price)}_{number}"
            lines.append(
                MetricLine(INSTANCES, "CPUUtilization", each.variant, name, "SampleCount", key=key, is_shown=False)
            )
            lines.append(MetricFormula(f"{key}*{price:g}", name, f"usd{number}"))
    if not prices:
        return []
    total = "+".join(f'FILL(SUM(METRICS("p{index}_")),0)*{price:g}' for index, price in enumerate(prices))
    return [Graph(title="Cost (USD per hour)", lines=[*lines, MetricFormula(total, "all", "total")])]
