"""Who is notified of an environment's alarms: topics of teams and endpoints, and what subscribes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from seatrial.specs.environment import (
    EVERYONE,
    MicrosoftTeamsChannel,
    SlackChannel,
    alarm_audiences,
    audiences,
    channels,
    given_topics,
    named_audiences,
)
from seatrial_base.frozen_model import digest
from seatrial_base.tags import TEAM_TAG
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, RoleOptions, role_arguments
from seatrial_cdk.observability.endpoint_alarms import AlarmTopic, OnCall, alarm_prefix, topic_arn
from seatrial_cdk.observability.endpoint_dashboard import dashboard_url
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import acknowledge_wildcards, allow_unnamed

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

    from seatrial.deployment.document import Deployment
    from seatrial.specs.environment import Audience, EnvironmentSpec

CHATBOT = "chatbot.amazonaws.com"
GUARDRAIL = "arn:aws:iam::aws:policy/CloudWatchReadOnlyAccess"
"""The most that a channel may do; without one AWS Chatbot takes AdministratorAccess (its API reference)."""


class OnCallTopics(Construct):
    """The topics of an environment's teams and endpoints, and whoever is subscribed to them and to the environment's.

    Args:
        environment: With `alarms.notify`.
        key: Encrypts the messages.
        own: The environment's topic; `None` where its file names one.
        role_options: Path and permissions boundary of the role of AWS Chatbot.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: EnvironmentSpec,
        key: kms.IKey,
        own: AlarmTopic | None,
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        super().__init__(scope, construct_id)
        name, alarms = environment.name, environment.alarms
        self.topics: dict[Audience, AlarmTopic] = {} if own is None else {EVERYONE: own}
        for each in named_audiences(alarms):
            self.topics[each] = AlarmTopic(self, _id(*each), environment=name, key=key, audience=each)
        arns = {each: made.topic.topic_arn for each, made in self.topics.items()}
        if alarms.topic_arn is not None:
            arns[EVERYONE] = alarms.topic_arn
        chats: dict[SlackChannel | MicrosoftTeamsChannel, dict[str, None]] = {}
        for entry in alarms.notify:
            for (kind, *_), channel in channels(entry).items():
                for each in audiences(entry):
                    if isinstance(channel, (SlackChannel, MicrosoftTeamsChannel)):
                        chats.setdefault(channel, {})[arns[each]] = None
                    elif kind != "topic_arn":  # a topic can't subscribe to a topic: alarms notify it themselves
                        self._subscribe(each, arns[each], f"{kind}", f"{channel}")
        if chats:
            role = self._chatbot_role(name, role_options)
            for chat, topics in chats.items():
                self._chat(name, chat, [*topics], role)

    def _subscribe(self, audience: Audience, arn: str, kind: str, address: str) -> None:
        # The address of a PagerDuty integration holds its key: CloudFormation reads it, no template has it.
        secret = f"{{{{resolve:secretsmanager:{address}:SecretString:::}}}}"
        is_email = kind == "emails"
        sns.CfnSubscription(
            self,
            _id("subscription", *audience, kind, address),
            topic_arn=arn,
            protocol="email" if is_email else "https",
            endpoint=address if is_email else secret,
        )

    def _chatbot_role(self, environment: str, options: RoleOptions) -> iam.Role:
        stack = Stack.of(self)
        alarms = StackPlace.of(stack).arn("cloudwatch", f"alarm:{alarm_prefix(environment)}*")
        role = iam.Role(
            self,
            "Chatbot",
            description=f"Channels of AWS Chatbot of {environment}",
            assumed_by=iam.ServicePrincipal(CHATBOT, conditions={"StringEquals": {"aws:SourceAccount": stack.account}}),
            **role_arguments(options),
            inline_policies={
                "Show": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(actions=["cloudwatch:DescribeAlarms"], resources=[alarms]),
                        allow_unnamed("cloudwatch:GetMetricData", "cloudwatch:ListMetrics"),
                    ]
                )
            },
        )
        reason = "Names of the environment's alarms begin with its name; graphs are of metrics, which have no resource."
        acknowledge_wildcards(role, [alarms, "*"], reason)
        return role

    def _chat(
        self, environment: str, chat: SlackChannel | MicrosoftTeamsChannel, topics: list[str], role: iam.Role
    ) -> None:
        # An account has one configuration of a channel, so that all topics of the environment are in it. Workspaces may
        # share a channel, whose ID is then the same in each.
        made = _id("channel", *chat.model_dump().values())
        name = f"seatrial-{environment}-{made.lower()}"
        if isinstance(chat, SlackChannel):
            chatbot.CfnSlackChannelConfiguration(
                self,
                made,
                configuration_name=name,
                slack_workspace_id=chat.workspace_id,
                slack_channel_id=chat.channel_id,
                sns_topic_arns=topics,
                iam_role_arn=role.role_arn,
                guardrail_policies=[GUARDRAIL],
            )
            return
        tenant, team = chat.tenant_id, chat.team_id
        chatbot.CfnMicrosoftTeamsChannelConfiguration(
            self,
            made,
            configuration_name=name,
            teams_tenant_id=tenant,
            team_id=team,
            teams_channel_id=chat.channel_id,
            sns_topic_arns=topics,
            iam_role_arn=role.role_arn,
            guardrail_policies=[GUARDRAIL],
        )


def _id(kind: str, *parts: str) -> str:
    return f"{kind.capitalize()}{digest(' '.join(parts))[:8].upper()}"


def on_call_of(scope: Construct, host: Deployment, model: Deployment, topic: str | None = None) -> OnCall:
    """Return whom the alarms of a model notify, and what their descriptions name.

    Args:
        host: The deployment whose stack has the alarms.
        model: The host, or a further model of it, which may be another team's.
        topic: ARN of a topic in place of the environment's.
    """
    environment, spec, stack = host.environment, model.endpoint, Stack.of(scope)
    alarms = environment.alarms
    # Without trials there may be no stack with topics; with entries of `notify` there is (`needs_trial_service`).
    has_own = host.endpoint.trial.mode != "off" or bool(alarms.notify)
    own = topic or alarms.topic_arn or (topic_arn(stack, environment.name) if has_own else None)
    team = {**environment.tags, **spec.tags}.get(TEAM_TAG, "")
    topics = [] if own is None else [own]
    for each in alarm_audiences(alarms, team=team, endpoint=spec.name):
        topics += [] if each == EVERYONE else [topic_arn(stack, environment.name, each)]
        topics += given_topics(alarms, each)
    return OnCall(
        topic_arns=tuple(dict.fromkeys(topics)),
        runbook_url=alarms.runbook_url or "",
        dashboard_url=dashboard_url(host),
        command=f"seatrial doctor {host.endpoint.name} -e {environment.name}",
    )
