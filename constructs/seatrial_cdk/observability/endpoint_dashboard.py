"""One endpoint on a CloudWatch dashboard: traffic, latency, tokens, copies, accelerators, cost, trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aws_cdk import Stack, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from seatrial_base.catalog.images import console_host
from seatrial_base.catalog.instances import find_instance
from seatrial_base.units import S_PER_MINUTE
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME
from seatrial_cdk.observability.widgets import (
    AlarmWidget,
    DashboardText,
    Graph,
    GraphBound,
    Grid,
    MetricFormula,
    MetricLine,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.deployment.document import Deployment
    from seatrial.documents.plan import Plan
    from seatrial.specs.endpoint import Slo
    from seatrial.specs.hosting import HostingSpec
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.observability.endpoint_alarms import ContainerAlarms
    from seatrial_cdk.trials.endpoint_trial import SmokeBenchmark

SERVICE: Final = "AWS/SageMaker"
INSTANCES: Final = "/aws/sagemaker/Endpoints"
COPIES: Final = "/aws/sagemaker/InferenceComponents"
TRIALS: Final = "Seatrial"
US_PER_MS: Final = 1000
TRIAL_PERIOD_S: Final = 3600
HOURS_PER_MONTH: Final = 730
_TOKENS: Final = ("OutputTokensPerSecond", "output tokens per second")
_PRICE: Final = ("UsdPerMillionOutputTokens", "USD per million")


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardInstances:
    """What an endpoint runs on.

    Attributes:
        instance_type: As `ml.g6e.12xlarge`.
        accelerators: Accelerators of one instance.
        usd_per_hour: Price of one instance per hour; `None` where it is not known.
        price_note: Which price that is, as `list price of 2026-11-21`.
        points_per_minute: Data points of each instance: 6 where metrics come every 10 s (`publish_metrics`).
    """

    instance_type: str
    accelerators: int
    usd_per_hour: float | None = None
    price_note: str = "list price"
    points_per_minute: int = 1

    @property
    def count(self) -> str:
        """The expression of their number, of the data points in a minute."""
        return "running" if self.points_per_minute == 1 else f"running/{self.points_per_minute}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardTrials:
    """Where the numbers of an endpoint's trials are.

    Attributes:
        endpoint: The endpoint's name in its spec, which the metrics of its trials have.
        results_bucket: Name of the bucket of results, for the link; default: no link.
    """

    endpoint: str
    environment: str
    results_bucket: str | None = None


class EndpointDashboard(Construct):
    """A dashboard of one endpoint: one resource, whatever made the endpoint.

    Rows: traffic; latency of SageMaker, the container and a client; tokens of the last trials; copies and instances;
    accelerators and memory; cost at the price that is given. A part without its argument is left out.

    Args:
        endpoint: What is shown.
        instances: What it runs on; default: no instances, accelerators and cost.
        trials: Where the numbers of its trials are; default: none.
        slo: Bounds that are drawn; default: none.
        target_concurrency_per_copy: Requests in flight per copy that scaling holds: a number, or a token of text that
            resolves to one; default: none.
        container_alarms: Alarms on its containers' metrics, whose states are shown; default: none.
        dashboard_name: Its name; default: the endpoint's, with the variant's behind it where that has another name than
            `AllTraffic`, or one that CloudFormation makes where that is a token.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        instances: DashboardInstances | None = None,
        trials: DashboardTrials | None = None,
        slo: Slo | None = None,
        target_concurrency_per_copy: float | str | None = None,
        container_alarms: ContainerAlarms | None = None,
        dashboard_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        region = Stack.of(self).region
        grid = Grid(region)
        grid.add_text(DashboardText(_heading(endpoint, instances, trials, region)))
        grid.add_row(_traffic(endpoint))
        grid.add_row(_latency(endpoint, trials, slo))
        if trials is not None:
            grid.add_row(_trials(trials))
        grid.add_row(_load(endpoint, instances, target_concurrency_per_copy))
        grid.add_row(_hardware(endpoint, instances))
        if container_alarms is not None:
            arns = [alarm.attr_arn for alarm in container_alarms.alarms]
            grid.add_row([AlarmWidget("KV cache, queue and first tokens of the engines", arns)])
        # Variants of one endpoint have a dashboard each. A token is no name.
        has_model = endpoint.inference_component_name is None and endpoint.variant_name != VARIANT_NAME
        own = f"{endpoint.endpoint_name}-{endpoint.variant_name}" if has_model else endpoint.endpoint_name
        name = dashboard_name or (None if Token.is_unresolved(own) else own)
        self.resource = cloudwatch.CfnDashboard(self, "Resource", dashboard_name=name, dashboard_body=grid.body())


def service_line(endpoint: ILlmEndpoint, name: str, stat: str, label: str, *, key: str = "") -> MetricLine:
    """Return a metric that SageMaker publishes of an endpoint's component, else of its variant."""
    return MetricLine(SERVICE, name, endpoint.metric_dimensions, label, stat, key=key, is_shown=not key)


def trial_line(trials: DashboardTrials, name: str, label: str, stat: str = "Average") -> MetricLine:
    """Return a number of an endpoint's trials."""
    dimensions = {"Endpoint": trials.endpoint, "Environment": trials.environment}
    return MetricLine(TRIALS, name, dimensions, label, stat, period_s=TRIAL_PERIOD_S)


def traffic_lines(endpoint: ILlmEndpoint) -> tuple[MetricLine, ...]:
    """Return requests and failures per minute."""
    return (
        service_line(endpoint, "Invocations", "Sum", "requests"),
        service_line(endpoint, "Invocation4XXErrors", "Sum", "4XX"),
        service_line(endpoint, "Invocation5XXErrors", "Sum", "5XX"),
        service_line(endpoint, "NoCapacityInvocationFailures", "Sum", "no capacity"),
    )


def _variant(endpoint: ILlmEndpoint) -> Mapping[str, str]:
    return {"EndpointName": endpoint.endpoint_name, "VariantName": endpoint.variant_name}


def _heading(
    endpoint: ILlmEndpoint, instances: DashboardInstances | None, trials: DashboardTrials | None, region: str
) -> str:
    lines = [f"# {endpoint.endpoint_name}"]
    if instances is not None:
        price = "price unknown"
        if instances.usd_per_hour is not None:
            price = f"{instances.price_note}: {instances.usd_per_hour:g} USD per instance and hour"
        lines.append(f"{instances.instance_type}, {instances.accelerators} accelerators each; {price}")
    if trials is not None and trials.results_bucket is not None:
        folder = f"https://{console_host(region)}/s3/buckets/{trials.results_bucket}?region={region}&prefix=trials/"
        lines.append(f"[results of trials]({folder})")
    return "\n\n".join(lines)


def _traffic(endpoint: ILlmEndpoint) -> Iterator[Graph]:
    requests, *failures = traffic_lines(endpoint)
    model = service_line(endpoint, "InvocationModelErrors", "Sum", "errors of the container")
    yield Graph(title="Requests per minute", lines=[requests])
    yield Graph(title="Failures per minute", lines=[*failures, model])


def _latency(endpoint: ILlmEndpoint, trials: DashboardTrials | None, slo: Slo | None) -> Iterator[Graph]:
    parts, unseen = [("ModelLatency", "model"), ("OverheadLatency", "overhead")], ["TPOT", "TTFT"]
    if endpoint.inference_component_name is None:  # of a component SageMaker publishes no first chunks
        parts.append(("FirstChunkModelLatency", "first chunk"))
        unseen.remove("TTFT")
    lines: list[MetricLine | MetricFormula] = []
    for number, (name, label) in enumerate(parts, 1):
        for stat in ("p50", "p95"):
            key = f"{stat}_{number}"
            lines.append(service_line(endpoint, name, stat, label, key=key))
            lines.append(MetricFormula(f"{key}/{US_PER_MS}", f"{label} {stat}", f"ms_{key}"))
    whole = [mark for mark in _bounds(slo) if not any(name in mark.label for name in unseen)]
    yield Graph(title="Latency at SageMaker (ms)", lines=lines, marks=whole)
    if trials is not None:
        client = (("TtftP95Ms", "TTFT p95"), ("TpotP95Ms", "TPOT p95"), ("E2eP95Ms", "end to end p95"))
        seen = [trial_line(trials, name, label) for name, label in client]
        yield Graph(title="Latency at a client, in trials (ms)", lines=seen, marks=_bounds(slo))


def _bounds(slo: Slo | None) -> list[GraphBound]:
    if slo is None:
        return []
    bounds = {"SLO TTFT p95": slo.ttft_ms.p95, "SLO TPOT p95": slo.tpot_ms.p95, "SLO e2e p95": slo.e2e_latency_ms.p95}
    return [GraphBound(label, value) for label, value in bounds.items() if value is not None]


def _trials(trials: DashboardTrials) -> Iterator[Graph]:
    yield Graph(title="Output tokens per second at the knee", lines=[trial_line(trials, *_TOKENS)])
    yield Graph(title="USD per million output tokens", lines=[trial_line(trials, *_PRICE)])
    passed = trial_line(trials, "Passed", "passed (1) or not (0)", "Minimum")
    knee = trial_line(trials, "KneeConcurrencyPerCopy", "knee, requests per copy")
    errors = trial_line(trials, "ErrorRate", "error rate", "Maximum")
    yield Graph(title="Last trials", lines=[passed, knee, errors], as_numbers=True)


def _load(endpoint: ILlmEndpoint, instances: DashboardInstances | None, target: float | str | None) -> Iterator[Graph]:
    """Yield load per copy, copies and instances, and what they cost.

    SageMaker publishes no number of copies: each invocation adds 1 to `Invocations` and 1/n to the metric per copy, so
    their sums divide to n. Instances are the data points of a metric that each publishes once a minute.
    """
    by_model = endpoint.inference_component_name is None
    name = "ConcurrentRequestsPerModel" if by_model else "ConcurrentRequestsPerCopy"
    marks = [] if target is None else [GraphBound("target", target)]
    per_copy = service_line(endpoint, name, "Maximum", "requests in flight")
    yield Graph(title="Requests in flight per copy", lines=[per_copy], marks=marks)
    share = "InvocationsPerInstance" if by_model else "InvocationsPerCopy"
    counted: list[MetricLine | MetricFormula] = [
        service_line(endpoint, "Invocations", "Sum", "requests", key="requests"),
        service_line(endpoint, share, "Sum", "requests per copy", key="share"),
        MetricFormula("requests/share", "instances with requests" if by_model else "copies with requests", "copies"),
    ]
    if instances is not None:
        counted.append(_instance_count(endpoint))
        counted.append(MetricFormula(instances.count, "instances", "instances"))
    yield Graph(title="Copies and instances", lines=counted)
    if instances is not None and instances.usd_per_hour is not None:
        price = f"{instances.usd_per_hour:g}"
        lines: list[MetricLine | MetricFormula] = [
            _instance_count(endpoint),
            MetricFormula(f"{instances.count}*{price}", "USD per hour", "usd_hour"),
            MetricFormula(f"{instances.count}*{price}*{HOURS_PER_MONTH}", "USD per month at this size", "usd_month"),
        ]
        yield Graph(title="Cost (USD)", lines=lines, as_numbers=True)


def _instance_count(endpoint: ILlmEndpoint) -> MetricLine:
    return MetricLine(
        INSTANCES, "CPUUtilization", _variant(endpoint), "instances", "SampleCount", key="running", is_shown=False
    )


def _hardware(endpoint: ILlmEndpoint, instances: DashboardInstances | None) -> Iterator[Graph]:
    """Yield utilization per instance and per copy; the service adds up an instance's accelerators, so it is divided."""
    if instances is not None:
        lines: list[MetricLine | MetricFormula] = []
        for number, name in enumerate(("GPUUtilization", "GPUMemoryUtilization"), 1):
            key = f"gpu_{number}"
            lines.append(MetricLine(INSTANCES, name, _variant(endpoint), name, "Average", key=key, is_shown=False))
            lines.append(MetricFormula(f"{key}/{instances.accelerators}", name, f"each_{number}"))
        lines += [
            MetricLine(INSTANCES, name, _variant(endpoint), name, "Average")
            for name in ("MemoryUtilization", "DiskUtilization")
        ]
        yield Graph(title="Utilization of the instances (%)", lines=lines)
    if endpoint.inference_component_name is not None:
        yield Graph(
            title="Utilization of the copies (%)",
            lines=[
                MetricLine(COPIES, name, endpoint.metric_dimensions, name, "Average")
                for name in (
                    "GPUUtilizationNormalized",
                    "GPUMemoryUtilizationNormalized",
                    "CPUUtilizationNormalized",
                    "MemoryUtilizationNormalized",
                )
            ],
        )


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
        trial: The trial of what is deployed; `None` without trials.
        container_alarms: The alarms on its containers' metrics; `None` without detailed metrics.
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


def dashboard_url(deployment: Deployment) -> str:
    """Return the address of what shows a deployment: its own dashboard, else its environment's; empty without one."""
    environment, shown = deployment.environment, deployment.environment.observability
    has_environment = shown.has_environment_dashboard and deployment.needs_trial_service
    if environment.is_embedded or not (shown.has_endpoint_dashboards or has_environment):  # it has no console
        return ""
    name = deployment.endpoint_name if shown.has_endpoint_dashboards else environment.name
    region = environment.region
    page = f"https://{console_host(region)}/cloudwatch/home?region={region}#dashboards/dashboard"
    return f"{page}/seatrial-{name}"


def shown_instances(plan: Plan, hosting: HostingSpec) -> DashboardInstances:
    """Return the instances of a plan with their price, and how often they publish their metrics."""
    instance_type, cost = plan.instance_type.value, plan.cost
    known, every_s = find_instance(instance_type), hosting.metrics.frequency_s if hosting.metrics else None
    price = None if cost.usd_per_hour is None else round(cost.usd_per_hour / plan.instance_count.value, 6)
    dated = f" of {cost.price_date}" if cost.price_date else ""
    less = f", less {cost.discount:.0%}" if cost.discount else ""
    return DashboardInstances(
        instance_type=instance_type,
        accelerators=1 if known is None else known.accelerator_count,
        usd_per_hour=price,
        price_note=f"list price{dated}{less}{cost.elsewhere}",
        points_per_minute=max(1, int(S_PER_MINUTE / (every_s or S_PER_MINUTE))),
    )
