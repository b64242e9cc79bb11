"""The alarms of an endpoint: those that notify, those that roll an update back, and the topic that is notified."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from aws_cdk import Stack, Tags
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from seatrial.documents.live import ROLLBACK_ALARM, ROLLBACK_ALARMS_OFF
from seatrial.specs.environment import EVERYONE
from seatrial_base.errors import SpecError
from seatrial_base.tags import ENVIRONMENT_TAG, TEAM_TAG
from seatrial_base.units import MS_PER_S, S_PER_HOUR, S_PER_MINUTE
from seatrial_cdk.place import StackPlace
from seatrial_cdk.value_checks import AT_LEAST_ONE, check_number, in_unit
from seatrial_load.aws.container_metrics import (
    COMPONENT_LABEL,
    ENDPOINT_LABEL,
    KV_CACHE,
    KV_FULL_SHARE,
    VARIANT_LABEL,
    WAITING,
    first_token_query,
    selector,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from aws_cdk import Duration
    from aws_cdk import aws_kms as kms

    from seatrial.specs.endpoint import Slo
    from seatrial.specs.environment import Audience
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint


_CLOUDWATCH = "cloudwatch.amazonaws.com"
LABELS: Final = {
    "InferenceComponentName": COMPONENT_LABEL,
    "EndpointName": ENDPOINT_LABEL,
    "VariantName": VARIANT_LABEL,
}
ENGINES_WITH_METRICS = ("lmi", "vllm", "sglang")
"""Those whose metrics SageMaker collects (developer guide, "Amazon SageMaker AI detailed observability")."""
PENDING_MINUTES: Final = 5
RECOVERY_MINUTES: Final = 5
LONGEST_TEAM = 64
"""Characters of a team's name in that of its topic, which has 256."""
MINUTES_WATCHED = 5
MINUTES_BAD = 3
ERRORS_PER_MINUTE = 5
US_PER_MS = MS_PER_S
NAMESPACE = "AWS/SageMaker"
NEVER = 1e15
"""A threshold that no metric reaches: 31 years in microseconds, and more requests than a minute has."""
ON_CALL = "OnCall"
"""Construct ID of the alarms that notify."""
ROLLBACK_ALARMS = ROLLBACK_ALARMS_OFF.partition("=")[0]
"""The context by which a deployment goes without rollback by alarms."""


def topic_name(environment: str, audience: Audience = EVERYONE, *, is_plain: bool = False) -> str:
    """Return the name of the topic that is made for an environment's alarms, or for those of a team or an endpoint.

    No underscore is in the name of an endpoint or of a product's team, so none of the three is another's.

    Args:
        is_plain: The name is that of a parameter, whose values have letters and digits alone.
    """
    kind, name = audience
    if kind == "endpoint":
        return f"seatrial-{environment}-endpoint_{name}-alarms"
    if kind == "team":
        # A tag may have signs that a topic may not.
        plain = re.sub("[^A-Za-z0-9]+", "-", name)[:LONGEST_TEAM]
        name = name if plain == name or is_plain else f"{plain}-{sha256(name.encode()).hexdigest()[:6]}"
        return f"seatrial-{environment}-{name}-alarms"
    return f"seatrial-{environment}-alarms"


def topic_arn(stack: Stack, environment: str, audience: Audience = EVERYONE) -> str:
    """Return the ARN of a topic that is made for an environment's alarms; no stack exports it.

    Args:
        stack: The endpoint's stack, in the account and region of the environment.
        audience: The team or endpoint whose topic it is; default: the environment.
    """
    return StackPlace.of(stack).arn("sns", topic_name(environment, audience))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCall:
    """Whom the alarms of an endpoint notify, and where who is notified looks next.

    Attributes:
        topic_arns: Topics that are notified of each alarm and of its end; at most five.
        runbook_url: Address of a runbook, with a section for each kind of alarm; empty without one.
        dashboard_url: Address of a dashboard; empty without one.
        command: Command that tells the cause; empty without one.
    """

    topic_arns: tuple[str, ...] = ()
    runbook_url: str = ""
    dashboard_url: str = ""
    command: str = ""

    def description(self, condition: str, section: str) -> str:
        """Return the description of an alarm.

        Args:
            section: Anchor of its section in the runbook.
        """
        places = {
            "Runbook": f"{self.runbook_url}#{section}" if self.runbook_url else "",
            "Dashboard": self.dashboard_url,
            "Cause": f"`{self.command}`" if self.command else "",
        }
        return ". ".join([condition, *(f"{name}: {place}" for name, place in places.items() if place)])


NOBODY = OnCall()


class AlarmTopic(Construct):
    """A topic that CloudWatch alarms of this account publish to, encrypted, over TLS only.

    CloudWatch needs the key too (CloudWatch user guide, "Notify users on alarm changes"). A key of this app says so in
    its policy; add the same statement to a key that is imported: `cloudwatch.amazonaws.com` may `kms:Decrypt` and
    `kms:GenerateDataKey*`.

    Args:
        key: Encrypts the messages.
        audience: The team or endpoint whose topic it is; default: the environment.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        key: kms.IKey,
        audience: Audience = EVERYONE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.key = key
        name = topic_name(environment, audience)
        self.topic = sns.Topic(self, "Resource", topic_name=name, master_key=key, enforce_ssl=True)
        allow_alarms(self, self.topic)
        Tags.of(self).add(ENVIRONMENT_TAG, environment)
        if audience[0] == "team":
            Tags.of(self).add(TEAM_TAG, audience[1])


def allow_alarms(scope: Construct, topic: sns.ITopic) -> None:
    """Let CloudWatch alarms of this account publish to a topic of this app, and use the topic's key.

    CDK's `enforce_ssl` and every right on a topic replace the policy by which CloudWatch may publish otherwise. The
    policies of what is imported stay as they are.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """When an alarm is raised.

    Attributes:
        threshold: The alarm is raised at this value or above it.
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
    """Alarms on the component's errors, capacity and latency, each twice: one notifies, one rolls an update back.

    A minute without a request that no copy took is enough for the alarm on capacity; the others need three bad minutes
    of five. A metric without data raises no alarm. An endpoint without inference component has no alarm on capacity:
    SageMaker publishes `NoCapacityInvocationFailures` for components. It publishes the time to first token of variants
    alone, so that of a component nothing here notifies (`ContainerAlarms` do). One that is imported is watched alone.

    The alarms of the rollback are always the same ones, so that another SLO changes neither endpoint nor component:
    SageMaker replaces a whole fleet for another `DeploymentConfig` (API reference, UpdateEndpoint). One without an
    objective is never raised; nor is that on a component's first token, which only keeps its place in the list. With
    the context `rollback_alarms=off` none is raised in this deployment, which may then repair an endpoint that is
    broken; the next deployment without it restores them. Notifications are sent either way.

    The alarms name the component by its name alone, so nothing waits for it.

    Args:
        endpoint: What is watched.
        slo: Bounds the latencies; of no other there are notifications.
        output_tokens: Length of an answer, in tokens; it is needed where the SLO bounds TTFT and TPOT alone.
        topic: SNS topic that is notified of each alarm and of its end; one of this app, and its key, allow that to
            CloudWatch; default: none.
        on_call: Topics by their ARNs, beside `topic`, and what descriptions name; default: nothing.
        start_minutes: Minutes that a copy may take to start, for an endpoint that scales to zero: requests that are
            refused for so long are normal, and raise no alarm. Default: it always has a copy.

    Raises:
        SpecError: SEA404 when the context `rollback_alarms` is neither `on` nor `off`.
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
        on_call: OnCall = NOBODY,
        start_minutes: int | Duration = 1,
    ) -> None:
        super().__init__(scope, construct_id)
        check_number(self, "output_tokens", output_tokens, AT_LEAST_ONE)
        start_minutes = in_unit(start_minutes, "minutes")
        check_number(self, "start_minutes", start_minutes, AT_LEAST_ONE)
        if topic is not None:
            allow_alarms(self, topic)
            on_call = replace(on_call, topic_arns=(topic.topic_arn, *on_call.topic_arns))
        conditions = [*_conditions(endpoint, slo, output_tokens, start_minutes)]
        self._on_call = Construct(self, ON_CALL) if endpoint.rolls_back else self
        beginning = alarm_beginning(self, endpoint)
        called = None if beginning is None else f"{beginning}{construct_id}{ON_CALL if endpoint.rolls_back else ''}"
        self.alarms = tuple(
            _alarm(self._on_call, each, endpoint, called, on_call) for each in conditions if each.threshold < NEVER
        )
        called = None if beginning is None else f"{beginning}{construct_id}"
        rollback = _rollback_conditions(self, conditions) if endpoint.rolls_back else ()
        silent = replace(on_call, topic_arns=())
        self.rollback = tuple(_alarm(self, each, endpoint, called, silent) for each in rollback)
        self.rollback_names = tuple(alarm.ref for alarm in self.rollback)
        endpoint.roll_back_on(self.rollback_names)

    @property
    def names(self) -> tuple[str, ...]:
        """The alarms that notify, as tokens."""
        return tuple(alarm.ref for alarm in self.alarms)

    def tell_after(self, trial: Construct) -> None:
        """Let the alarms that notify begin after a trial, whose load is no incident."""
        self._on_call.node.add_dependency(trial)


def rollback_alarms_are_off(scope: Construct) -> bool:
    """Tell whether no alarm rolls an update back in this deployment, by the context `rollback_alarms`.

    Raises:
        SpecError: SEA404 when the context is neither `on` nor `off`.
    """
    value: object = scope.node.try_get_context(ROLLBACK_ALARMS)
    if value not in {None, "on", "off"}:
        message = f"the context value `{ROLLBACK_ALARMS}` is {value!r}, neither `on` nor `off`"
        raise SpecError.of("SEA404", message, hint=f"give `-c {ROLLBACK_ALARMS}=off`, or nothing")
    return value == "off"


def _rollback_conditions(scope: Construct, conditions: Sequence[_Condition]) -> Iterator[_Condition]:
    off = f"off for one deployment ({ROLLBACK_ALARMS_OFF})" if rollback_alarms_are_off(scope) else ""
    for condition in conditions:
        described = replace(condition, description=f"{ROLLBACK_ALARM}: {off or condition.description}")
        yield replace(described, threshold=NEVER) if off else described


def longest_latency_ms(slo: Slo, output_tokens: int) -> float | None:
    """Return the longest end-to-end latency (p95) that an SLO allows, in milliseconds; `None` when it allows any.

    Without a bound on the whole it is that of its parts: TTFT + (output tokens - 1) x TPOT.
    """
    if slo.e2e_latency_ms.p95 is not None:
        return slo.e2e_latency_ms.p95
    if slo.ttft_ms.p95 is None or slo.tpot_ms.p95 is None:
        return None
    return slo.ttft_ms.p95 + (output_tokens - 1) * slo.tpot_ms.p95


def _conditions(endpoint: ILlmEndpoint, slo: Slo, output_tokens: int, start_minutes: int) -> Iterator[_Condition]:
    """Yield every condition, also those without an objective, whose threshold no value reaches."""
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
        yield _Condition(
            construct_id="NoCapacity",
            metric_name="NoCapacityInvocationFailures",
            statistic="Sum",
            threshold=1,
            description=f"{name} refuses requests because no copy is in service",
            section="no-capacity",
            minutes_bad=start_minutes,
            minutes_watched=start_minutes,
        )
    yield _latency(
        longest_latency_ms(slo, output_tokens),
        f"p95 latency of {name}",
        construct_id="Latency",
        metric_name="ModelLatency",
        section="model-latency",
    )
    first_token = _latency(
        slo.ttft_ms.p95,
        f"p95 time to first token of {name}",
        construct_id="Ttft",
        metric_name="FirstChunkModelLatency",
        section="time-to-first-token",
    )
    if endpoint.inference_component_name is None:
        yield first_token
    else:
        # A list of alarms without it is another DeploymentConfig, which would replace every fleet that is deployed.
        unpublished = f"p95 time to first token of {name}: SageMaker publishes none of inference components"
        yield replace(first_token, threshold=NEVER, description=unpublished)


def _latency(bound_ms: float | None, what: str, *, construct_id: str, metric_name: str, section: str) -> _Condition:
    description = f"{what} has no SLO" if bound_ms is None else f"{what} exceeds its SLO of {bound_ms:g} ms"
    return _Condition(
        construct_id=construct_id,
        metric_name=metric_name,
        statistic="p95",
        threshold=NEVER if bound_ms is None else bound_ms * US_PER_MS,
        description=description,
        section=section,
    )


def _alarm(
    scope: Construct, condition: _Condition, endpoint: ILlmEndpoint, called: str | None, on_call: OnCall
) -> cloudwatch.CfnAlarm:
    is_percentile = condition.statistic.startswith("p")
    actions = [*on_call.topic_arns] or None
    return cloudwatch.CfnAlarm(
        Construct(scope, condition.construct_id),
        "Resource",
        alarm_name=None if called is None else f"{called}{condition.construct_id}",
        alarm_description=on_call.description(condition.description, condition.section),
        namespace=NAMESPACE,
        metric_name=condition.metric_name,
        statistic=None if is_percentile else condition.statistic,
        extended_statistic=condition.statistic if is_percentile else None,
        dimensions=[
            cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value)
            for name, value in endpoint.metric_dimensions.items()
        ],
        period=S_PER_MINUTE,
        threshold=condition.threshold,
        comparison_operator="GreaterThanOrEqualToThreshold",
        evaluation_periods=condition.minutes_watched,
        datapoints_to_alarm=condition.minutes_bad,
        # A minute without a request has no data: an alarm raised by silence would roll every idle endpoint back.
        treat_missing_data="notBreaching",
        alarm_actions=actions,
        ok_actions=actions,
    )


def alarm_beginning(scope: Construct, endpoint: ILlmEndpoint) -> str | None:
    """Return what begins names that the environment's trial service may read; `None` where CloudFormation makes them.

    CloudFormation begins a name with that of the stack, which is enough where it is one of the environment's.
    """
    if endpoint.environment is None:
        return None
    beginning = alarm_prefix(endpoint.environment)
    if Stack.of(scope).stack_name.startswith(beginning):
        return None
    watched = endpoint.inference_component_name or f"{endpoint.endpoint_name}-{endpoint.variant_name}"
    return f"{beginning}{watched.removeprefix(f'{endpoint.environment}-')}-"


def alarm_prefix(environment: str) -> str:
    """Return what the names of an environment's alarms begin with: those that its trial service may read."""
    return f"seatrial-{environment}-"


class ContainerAlarms(Construct):
    """Alarms on the metrics of containers' engines; they notify, and roll nothing back.

    They need SageMaker's detailed observability, and an engine with vLLM's or SGLang's metrics; without data they
    are never raised. Each is a PromQL alarm of CloudWatch, evaluated once a minute. Engines count first tokens in
    buckets, so that their p95 is an estimate.

    Args:
        endpoint: What is watched.
        ttft_p95_ms: Bound of the time to first token; default: that is not watched.
        on_call: Whom they notify, and what their descriptions name; default: nothing.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        ttft_p95_ms: float | Duration | None = None,
        on_call: OnCall = NOBODY,
    ) -> None:
        super().__init__(scope, construct_id)
        labels = {LABELS[name]: value for name, value in endpoint.metric_dimensions.items()}
        name = endpoint.endpoint_name
        beginning = alarm_beginning(self, endpoint)
        called = None if beginning is None else f"{beginning}{construct_id}"
        self.alarms: tuple[cloudwatch.CfnAlarm, ...] = (
            _query_alarm(
                self,
                "KvCache",
                called,
                on_call,
                query=" or ".join(f"{selector(metric, labels)} >= {KV_FULL_SHARE:g}" for metric in KV_CACHE),
                description=f"the KV cache of {name} is {KV_FULL_SHARE:.0%} full for {PENDING_MINUTES} minutes",
                section="kv-cache",
            ),
            _query_alarm(
                self,
                "Queue",
                called,
                on_call,
                query=" or ".join(f"sum({selector(metric, labels)}) >= 1" for metric in WAITING),
                description=f"requests wait in the engines of {name} for {PENDING_MINUTES} minutes on end",
                section="queue",
            ),
        )
        if (ttft_p95_ms := in_unit(ttft_p95_ms, "ms", is_whole=False)) is not None:
            first_token = _query_alarm(
                self,
                "Ttft",
                called,
                on_call,
                query=f"({first_token_query(labels, 'p95')}) >= {ttft_p95_ms / MS_PER_S:g}",
                description=f"p95 time to first token of {name} exceeds its SLO of {ttft_p95_ms:g} ms",
                section="time-to-first-token",
            )
            self.alarms = (*self.alarms, first_token)


class ReservationAlarm(Construct):
    """An alarm that is raised some days before an endpoint's reserved capacity ends, and notifies.

    It compares the time itself, by metric math: `EPOCH` has a value for each hour, whether there were requests or not
    (CloudWatch user guide, "Metric math syntax and functions"). A schedule of EventBridge Scheduler would need a role,
    and one in the past is refused, so that no stack could be deployed within the notice.

    Args:
        endpoint: What the capacity is reserved for.
        ends_at: When it ends, with its time zone.
        notice_days: How long before that the alarm is raised, in days.
        on_call: Whom it notifies, and what its description names; default: nothing.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        ends_at: datetime,
        notice_days: int | Duration,
        on_call: OnCall = NOBODY,
    ) -> None:
        super().__init__(scope, construct_id)
        notice_days = in_unit(notice_days, "days")
        check_number(self, "notice_days", notice_days, AT_LEAST_ONE)
        beginning = alarm_beginning(self, endpoint)
        ending = f"the reserved capacity of {endpoint.endpoint_name} ends at {ends_at:%Y-%m-%d %H:%M %Z}"
        alarm = cloudwatch.CfnAlarm
        dimensions = [
            alarm.DimensionProperty(name=name, value=value) for name, value in endpoint.metric_dimensions.items()
        ]
        requests = alarm.MetricProperty(namespace=NAMESPACE, metric_name="Invocations", dimensions=dimensions)
        hourly = alarm.MetricStatProperty(metric=requests, period=S_PER_HOUR, stat="Sum")
        days = f"({int(ends_at.timestamp())} - EPOCH(requests)) / 86400"
        self.alarm = cloudwatch.CfnAlarm(
            self,
            "Resource",
            alarm_name=None if beginning is None else f"{beginning}{construct_id}",
            alarm_description=on_call.description(
                f"{ending}: no instance of it serves after that", "reserved-capacity"
            ),
            metrics=[
                alarm.MetricDataQueryProperty(id="requests", metric_stat=hourly, return_data=False),
                alarm.MetricDataQueryProperty(id="days", expression=days, return_data=True),
            ],
            comparison_operator="LessThanOrEqualToThreshold",
            threshold=notice_days,
            evaluation_periods=1,
            treat_missing_data="ignore",
            alarm_actions=[*on_call.topic_arns] or None,
        )


def _query_alarm(
    scope: ContainerAlarms,
    construct_id: str,
    called: str | None,
    on_call: OnCall,
    *,
    query: str,
    description: str,
    section: str,
) -> cloudwatch.CfnAlarm:
    """Define an alarm that is raised while a query has a result for five minutes on end."""
    actions = [*on_call.topic_arns] or None
    criteria = cloudwatch.CfnAlarm.AlarmPromQLCriteriaProperty(
        query=query,
        pending_period=PENDING_MINUTES * S_PER_MINUTE,
        recovery_period=RECOVERY_MINUTES * S_PER_MINUTE,
    )
    return cloudwatch.CfnAlarm(
        Construct(scope, construct_id),
        "Resource",
        alarm_name=None if called is None else f"{called}{construct_id}",
        alarm_description=on_call.description(description, section),
        evaluation_criteria=cloudwatch.CfnAlarm.EvaluationCriteriaProperty(prom_ql_criteria=criteria),
        evaluation_interval=S_PER_MINUTE,
        alarm_actions=actions,
        ok_actions=actions,
    )
