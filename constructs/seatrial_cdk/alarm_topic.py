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

    CloudWatch needs the key too (CloudWatch user guide, "Notify users on alarm changes"). A key of our own says so in
    its policy; add the same statement to a key that is given: `cloudwatch.amazonaws.com` may `kms:Decrypt` and
    `kms:GenerateDataKey*`.

    Args:
        environment: The environment's name.
        key: Encrypts the messages.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: str, key: kms.IKey) -> None:
        super().__init__(scope, construct_id)
        self.key = key
        stack = Stack.of(self)
        same_account = {"StringEquals": {"aws:SourceAccount": stack.account}}
        self.topic = sns.Topic(self, "Resource", topic_name=topic_name(environment), master_key=key, enforce_ssl=True)
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(_CLOUDWATCH)],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions=same_account,
            )
        )
        key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(_CLOUDWATCH)],
                actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                resources=["*"],
                conditions=same_account,
            )
        )
