"""The alarms of an endpoint, and the topic that they notify."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from seatrial_base.units import MS_PER_S, S_PER_MINUTE
from seatrial_cdk.place import StackPlace
from seatrial_cdk.value_checks import AT_LEAST_ONE, check_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_cdk import aws_kms as kms

    from seatrial.specs.endpoint import Slo
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint


_CLOUDWATCH = "cloudwatch.amazonaws.com"


def topic_name(environment: str) -> str:
    """Return the name of the topic that an environment's alarms notify where none is given."""
    return f"seatrial-{environment}-alarms"


def topic_arn(stack: Stack, environment: str) -> str:
    """Return the ARN of the topic that an environment's alarms notify where none is given; no stack exports it.

    Args:
        stack: The endpoint's stack, in the account and region of the environment.
        environment: The environment's name.
    """
    return StackPlace.of(stack).arn("sns", topic_name(environment))


class AlarmTopic(Construct):
    """A topic that CloudWatch alarms of this account publish to, encrypted, over TLS only.

    CloudWatch needs the key too (CloudWatch user guide, "Notify users on alarm changes"). A key of this app says so in
    its policy; add the same statement to a key that is imported: `cloudwatch.amazonaws.com` may `kms:Decrypt` and
    `kms:GenerateDataKey*`.

    Args:
        environment: The environment's name.
        key: Encrypts the messages.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: str, key: kms.IKey) -> None:
        super().__init__(scope, construct_id)
        self.key = key
        self.topic = sns.Topic(self, "Resource", topic_name=topic_name(environment), master_key=key, enforce_ssl=True)
        allow_alarms(self, self.topic)


def allow_alarms(scope: Construct, topic: sns.ITopic) -> None:
    """Let CloudWatch alarms of this account publish to a topic of this app, and use the topic's key.

    CDK's `enforce_ssl` and every right on a topic replace the policy by which CloudWatch may publish otherwise. The
    policies of what is imported stay as they are.

    Args:
        scope: What the alarms belong to.
        topic: Their topic.
    """
    principals: list[iam.IPrincipal] = [iam.ServicePrincipal(_CLOUDWATCH)]
    conditions = {"StringEquals": {"aws:SourceAccount": StackPlace.of(scope).account}}
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            principals=principals, actions=["sns:Publish"], resources=[topic.topic_arn], conditions=conditions
        )
    )
    if (key := topic.master_key) is not None:
        actions = ["kms:Decrypt", "kms:GenerateDataKey*"]
        statement = iam.PolicyStatement(principals=principals, actions=actions, resources=["*"], conditions=conditions)
        key.add_to_resource_policy(statement, True)  # noqa: FBT003 (an imported key keeps its policy)


MINUTES_WATCHED = 5
MINUTES_BAD = 3
ERRORS_PER_MINUTE = 5
US_PER_MS = MS_PER_S
NAMESPACE = "AWS/SageMaker"
RUNBOOK = "docs/how-to/alarms.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """When an alarm is raised.

    Attributes:
        construct_id: The alarm's construct ID.
        metric_name: What is watched, per minute.
        statistic: As CloudWatch writes it.
        threshold: The alarm is raised at this value or above it.
        description: What it means.
        section: Anchor of its section in the runbook.
        minutes_bad: Minutes at the threshold or above it.
        minutes_watched: Minutes that are looked at.
    """

    construct_id: str
    metric_name: str
    statistic: str
    threshold: float
    description: str
    section: str
    minutes_bad: int = MINUTES_BAD
    minutes_watched: int = MINUTES_WATCHED


class EndpointAlarms(Construct):
    """Alarms on the component's errors, capacity and latency.

    A minute without a request that no copy took is enough for the alarm on capacity; the others need three bad minutes
    of five. A metric without data raises no alarm. While an endpoint of this app is updated, each alarm rolls the
    update back (`LlmEndpoint.roll_back_on`); one that is imported is watched alone. The alarms name the component by
    its name alone, so nothing waits for it. An endpoint without inference component has no alarm on capacity: SageMaker
    publishes `NoCapacityInvocationFailures` for components.

    Args:
        endpoint: What is watched.
        slo: Bounds the latencies; one that is left out has no alarm.
        output_tokens: Length of an answer, in tokens; it is needed where the SLO bounds TTFT and TPOT alone.
        topic: SNS topic that is notified of each alarm and of its end; one of this app, and its key, allow that to
            CloudWatch; default: none.
        topic_arn: The topic by its ARN, in place of `topic`.
        start_minutes: Minutes that a copy may take to start, for an endpoint that scales to zero: requests that are
            refused for so long are normal, and raise no alarm. Default: it always has a copy.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        slo: Slo,
        output_tokens: int,
        topic: sns.ITopic | None = None,
        topic_arn: str | None = None,
        start_minutes: int = 1,
    ) -> None:
        super().__init__(scope, construct_id)
        check_number(self, "output_tokens", output_tokens, AT_LEAST_ONE)
        check_number(self, "start_minutes", start_minutes, AT_LEAST_ONE)
        if topic is not None:
            allow_alarms(self, topic)
            topic_arn = topic.topic_arn
        self.alarms = tuple(
            _alarm(self, condition, endpoint.metric_dimensions, topic_arn)
            for condition in _conditions(endpoint, slo, output_tokens, start_minutes)
        )
        self.names = tuple(alarm.ref for alarm in self.alarms)
        endpoint.roll_back_on(self.names)


def longest_latency_ms(slo: Slo, output_tokens: int) -> float | None:
    """Return the longest end-to-end latency (p95) that an SLO allows, in milliseconds; `None` when it allows any.

    Without a bound on the whole it is that of its parts: TTFT + (output tokens - 1) x TPOT (design.md, tpot_ms).
    """
    if slo.e2e_latency_ms.p95 is not None:
        return slo.e2e_latency_ms.p95
    if slo.ttft_ms.p95 is None or slo.tpot_ms.p95 is None:
        return None
    return slo.ttft_ms.p95 + (output_tokens - 1) * slo.tpot_ms.p95


def _conditions(endpoint: ILlmEndpoint, slo: Slo, output_tokens: int, start_minutes: int) -> Iterator[_Condition]:
    name = endpoint.endpoint_name
    yield _Condition(
        construct_id="Errors",
        metric_name="Invocation5XXErrors",
        statistic="Sum",
        threshold=ERRORS_PER_MINUTE,
        description=f"{name} returns {ERRORS_PER_MINUTE} or more 5XX errors per minute",
        section="5xx-errors",
    )
    if endpoint.inference_component_name is not None:
        yield _no_capacity(endpoint, start_minutes)
    if (longest_ms := longest_latency_ms(slo, output_tokens)) is not None:
        yield _Condition(
            construct_id="Latency",
            metric_name="ModelLatency",
            statistic="p95",
            threshold=longest_ms * US_PER_MS,
            description=f"p95 latency of {name} exceeds its SLO of {longest_ms:g} ms",
            section="model-latency",
        )
    if (ttft_ms := slo.ttft_ms.p95) is not None:
        yield _Condition(
            construct_id="Ttft",
            metric_name="FirstChunkModelLatency",
            statistic="p95",
            threshold=ttft_ms * US_PER_MS,
            description=f"p95 time to first token of {name} exceeds its SLO of {ttft_ms:g} ms",
            section="time-to-first-token",
        )


def _no_capacity(endpoint: ILlmEndpoint, start_minutes: int) -> _Condition:
    """Return the condition on refused requests; variants with a model have no such metric."""
    return _Condition(
        construct_id="NoCapacity",
        metric_name="NoCapacityInvocationFailures",
        statistic="Sum",
        threshold=1,
        description=f"{endpoint.endpoint_name} refuses requests because no copy is in service",
        section="no-capacity",
        minutes_bad=start_minutes,
        minutes_watched=start_minutes,
    )


def _alarm(
    scope: EndpointAlarms, condition: _Condition, dimensions: Mapping[str, str], topic_arn: str | None
) -> cloudwatch.CfnAlarm:
    is_percentile = condition.statistic.startswith("p")
    told = None if topic_arn is None else [topic_arn]
    return cloudwatch.CfnAlarm(
        Construct(scope, condition.construct_id),
        "Resource",
        alarm_description=f"{condition.description}. Runbook: {RUNBOOK}#{condition.section}",
        namespace=NAMESPACE,
        metric_name=condition.metric_name,
        statistic=None if is_percentile else condition.statistic,
        extended_statistic=condition.statistic if is_percentile else None,
        dimensions=[
            cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value) for name, value in dimensions.items()
        ],
        period=S_PER_MINUTE,
        threshold=condition.threshold,
        comparison_operator="GreaterThanOrEqualToThreshold",
        evaluation_periods=condition.minutes_watched,
        datapoints_to_alarm=condition.minutes_bad,
        treat_missing_data="notBreaching",
        alarm_actions=told,
        ok_actions=told,
    )
