"""What an environment's file asks for: dashboards of its deployments, and its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog.instances import find_instance
from seatrial_base.units import S_PER_MINUTE
from seatrial_cdk.observability.endpoint_dashboard import DashboardInstances, DashboardTrials, EndpointDashboard
from seatrial_cdk.observability.environment_budget import EnvironmentBudget
from seatrial_cdk.observability.environment_dashboard import EnvironmentDashboard, ShownEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.documents.plan import Plan
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.hosting import HostingSpec
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.observability.endpoint_alarms import AlarmTopic, ContainerAlarms
    from seatrial_cdk.trials.endpoint_trial import SmokeBenchmark


def define_endpoint_dashboard(
    scope: Construct,
    construct_id: str,
    endpoint: ILlmEndpoint,
    deployment: Deployment,
    trial: SmokeBenchmark | None,
    *,
    container_alarms: ContainerAlarms | None = None,
) -> EndpointDashboard | None:
    """Define the dashboard of a deployment where its environment asks for one.

    Args:
        scope: What it belongs to.
        construct_id: Its construct ID.
        endpoint: The endpoint.
        deployment: What is deployed.
        trial: The trial of what is deployed; `None` without trials.
        container_alarms: The alarms on what its containers tell; `None` without detailed metrics.
    """
    environment, spec = deployment.environment, deployment.endpoint
    if not environment.observability.has_endpoint_dashboards:
        return None
    trials = target = None
    if trial is not None:
        target = trial.attribute("TargetConcurrencyPerCopy")
        trials = DashboardTrials(
            endpoint=spec.name, environment=environment.name, results_bucket=trial.attribute("ResultsBucket")
        )
    return EndpointDashboard(
        scope,
        construct_id,
        endpoint=endpoint,
        instances=shown_instances(deployment.plan, spec.hosting),
        trials=trials,
        slo=spec.slo,
        target_concurrency_per_copy=target,
        container_alarms=container_alarms,
        dashboard_name=f"seatrial-{deployment.endpoint_name}",
    )


def define_environment_view(
    scope: Construct, environment: EnvironmentSpec, deployments: Iterable[Deployment]
) -> EnvironmentDashboard | None:
    """Define the dashboard of an environment where it asks for one.

    Args:
        scope: The stack of its trials.
        environment: The environment.
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


def define_budget(scope: Construct, environment: EnvironmentSpec, topic: AlarmTopic | None) -> EnvironmentBudget | None:
    """Define the budget of an environment where it has one.

    Args:
        scope: The stack of its trials.
        environment: The environment.
        topic: Its own topic; `None` where its file names one, whose policy is its owner's.
    """
    wanted = environment.observability
    if wanted.budget_usd_per_month is None:
        return None
    return EnvironmentBudget(
        scope,
        "Budget",
        environment=environment.name,
        usd_per_month=wanted.budget_usd_per_month,
        emails=wanted.budget_emails,
        topic_arn=environment.alarms.topic_arn,
        topic=topic,
    )


def shown_instances(plan: Plan, hosting: HostingSpec) -> DashboardInstances:
    """Return the instances of a plan with their price, and how often they publish their metrics."""
    instance_type, cost = plan.instance_type.value, plan.cost
    known = find_instance(instance_type)
    price = None if cost.usd_per_hour is None else round(cost.usd_per_hour / plan.instance_count.value, 6)
    dated = f" of {cost.price_date}" if cost.price_date else ""
    less = f", less {cost.discount:.0%}" if cost.discount else ""
    return DashboardInstances(
        instance_type=instance_type,
        accelerators=1 if known is None else known.accelerator_count,
        usd_per_hour=price,
        price_note=f"list price{dated}{less}",
        points_per_minute=_points_per_minute(hosting),
    )


def _points_per_minute(hosting: HostingSpec) -> int:
    every_s = hosting.metrics.frequency_s if hosting.metrics else None
    return max(1, int(S_PER_MINUTE / (every_s or S_PER_MINUTE)))
