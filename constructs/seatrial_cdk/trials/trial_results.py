"""The bucket that keeps what trials measured."""

from __future__ import annotations

from typing import Literal, cast

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from seatrial_cdk.acknowledgements import acknowledge
from seatrial_cdk.private_bucket import private_bucket, removal_policy
from seatrial_cdk.trials.runtime.store import EXPIRING

ACKNOWLEDGED = {"S1": "The trial service alone reads and writes the bucket; CloudTrail data events log who reads it."}


class TrialResults(Construct):
    """An encrypted, private bucket of trial results; its layout is in `runtime.store`.

    Only the history of trials and of their runs expires. What later deployments are answered from (the latest and the
    passing result of each plan, the copies that CloudFormation was told) or compared with (what is released) stays.

    Args:
        removal: `destroy` empties and deletes the bucket with the stack; `retain` keeps it and its key, unless it is
            their own creation that is rolled back.
        key: Key to encrypt with; default: a key of its own that rotates every year.
        expiry: How long the history is kept; default: one year.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal: Literal["destroy", "retain"] = "retain",
        key: kms.IKey | None = None,
        expiry: Duration | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.removal = removal
        policy = removal_policy(removal)
        self.key: kms.IKey = (
            key
            if key is not None
            else kms.Key(self, "Key", description="Results of trials", enable_key_rotation=True, removal_policy=policy)
        )
        rules = [s3.LifecycleRule(prefix=f"{folder}/", expiration=expiry or Duration.days(365)) for folder in EXPIRING]
        self.bucket = private_bucket(self, key=self.key, removal=removal, lifecycle_rules=rules)
        acknowledge(self.bucket, ACKNOWLEDGED)


def log_group_of(scope: Construct, *, keep: bool = False, days: int | None = None) -> logs.LogGroup:
    """Define a log group; it goes with its stack, unless it is to be kept.

    Args:
        scope: What it belongs to.
        keep: It stays when its stack is deleted.
        days: Days after which its events end, one of the values that CloudWatch Logs knows; default: a month.
    """
    policy = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
    group = logs.LogGroup(scope, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=policy)
    if days is not None:
        resource = cast("logs.CfnLogGroup", group.node.default_child)
        resource.retention_in_days = days
    return group
