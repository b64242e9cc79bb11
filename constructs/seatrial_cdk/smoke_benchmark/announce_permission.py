"""The right to say on the account's event bus that a trial has ended, and nothing else."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from seatrial_cdk.smoke_benchmark.runtime.announcement import DETAIL_TYPE, SOURCE


def grant_announce(grantee: iam.Role) -> None:
    """Allow putting our one kind of event on the default bus of the grantee's region and account."""
    stack = Stack.of(grantee)
    iam.Grant.add_to_principal(
        grantee=grantee,
        actions=["events:PutEvents"],
        resource_arns=[stack.format_arn(service="events", resource="event-bus", resource_name="default")],
        conditions={"StringEquals": {"events:source": SOURCE, "events:detail-type": DETAIL_TYPE}},
    )
