"""Alarms on what containers tell: a KV cache that is full, requests that wait all the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from seatrial_base.units import S_PER_MINUTE
from seatrial_cdk.observability.endpoint_alarms import RUNBOOK, alarm_name
from seatrial_load.aws.container_metrics import (
    COMPONENT_LABEL,
    ENDPOINT_LABEL,
    KV_CACHE,
    VARIANT_LABEL,
    WAITING,
)
from seatrial_load.aws.promql import selector
from seatrial_load.knee.causes import KV_FULL_SHARE

if TYPE_CHECKING:
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint


LABELS: Final = {
    "InferenceComponentName": COMPONENT_LABEL,
    "EndpointName": ENDPOINT_LABEL,
    "VariantName": VARIANT_LABEL,
}
PENDING_MINUTES: Final = 5
RECOVERY_MINUTES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """When an alarm is raised: its query has a result for five minutes on end."""

    construct_id: str
    query: str
    description: str
    section: str


class ContainerAlarms(Construct):
    """Alarms on what containers tell of their engine; they tell people, and roll nothing back.

    They need SageMaker's detailed observability, and an engine that tells vLLM's or SGLang's metrics; without data they
    are never raised. Each is a PromQL alarm of CloudWatch, evaluated once a minute.

    Args:
        endpoint: What is watched.
        topic_arn: ARN of the topic that is notified of each alarm and of its end; default: none.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, endpoint: ILlmEndpoint, topic_arn: str | None = None
    ) -> None:
        super().__init__(scope, construct_id)
        self.alarms = tuple(_alarm(self, each, endpoint, topic_arn) for each in _conditions(endpoint))


def _conditions(endpoint: ILlmEndpoint) -> tuple[_Condition, ...]:
    labels = {LABELS[name]: value for name, value in endpoint.metric_dimensions.items()}
    caches = (f"{selector(name, labels)} >= {KV_FULL_SHARE:g}" for name in KV_CACHE)
    queues = (f"sum({selector(name, labels)}) >= 1" for name in WAITING)
    return (
        _Condition(
            construct_id="KvCache",
            query=" or ".join(caches),
            description=f"the KV cache of {endpoint.endpoint_name} is {KV_FULL_SHARE:.0%} full for {PENDING_MINUTES} "
            "minutes",
            section="kv-cache",
        ),
        _Condition(
            construct_id="Queue",
            query=" or ".join(queues),
            description=f"requests wait in the engines of {endpoint.endpoint_name} for {PENDING_MINUTES} minutes on "
            "end",
            section="queue",
        ),
    )


def _alarm(
    scope: ContainerAlarms, condition: _Condition, endpoint: ILlmEndpoint, topic_arn: str | None
) -> cloudwatch.CfnAlarm:
    told = None if topic_arn is None else [topic_arn]
    criteria = cloudwatch.CfnAlarm.AlarmPromQLCriteriaProperty(
        query=condition.query,
        pending_period=PENDING_MINUTES * S_PER_MINUTE,
        recovery_period=RECOVERY_MINUTES * S_PER_MINUTE,
    )
    return cloudwatch.CfnAlarm(
        Construct(scope, condition.construct_id),
        "Resource",
        alarm_name=alarm_name(scope, endpoint, f"{scope.node.id}{condition.construct_id}"),
        alarm_description=f"{condition.description}. Runbook: {RUNBOOK}#{condition.section}",
        evaluation_criteria=cloudwatch.CfnAlarm.EvaluationCriteriaProperty(prom_ql_criteria=criteria),
        evaluation_interval=S_PER_MINUTE,
        alarm_actions=told,
        ok_actions=told,
    )
