"""The SNS topic of an environment's alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from seatrial_cdk.place import StackPlace

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

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
