"""A bucket that can't be read without TLS, without the key, or from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from aws_cdk import CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_s3 as s3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from seatrial_cdk.endpoint.execution_role import RoleOptions

EMPTYING = "Custom::S3AutoDeleteObjectsCustomResourceProvider"
"""The CDK's ID of what empties the buckets of a stack: a function, with a role that takes no options."""
Removal = Literal["destroy", "retain"]


def removal_policy(removal: Removal) -> RemovalPolicy:
    """Return the policy of a bucket or key; `retain` keeps it, unless its own creation is rolled back."""
    return RemovalPolicy.DESTROY if removal == "destroy" else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def private_bucket(
    scope: Construct, *, key: kms.IKey, removal: Removal, lifecycle_rules: Sequence[s3.LifecycleRule]
) -> s3.Bucket:
    """Define an encrypted, private bucket as the main child of a construct."""
    return s3.Bucket(
        scope,
        "Resource",
        encryption=s3.BucketEncryption.KMS,
        encryption_key=key,
        bucket_key_enabled=True,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        enforce_ssl=True,
        removal_policy=removal_policy(removal),
        auto_delete_objects=removal == "destroy",
        lifecycle_rules=lifecycle_rules,
    )


def bound_emptying_role(scope: Construct, options: RoleOptions) -> None:
    """Give the role with which the CDK empties the buckets of a stack the path and the boundary of every other role."""
    provider = Stack.of(scope).node.try_find_child(EMPTYING)
    role = provider.node.try_find_child("Role") if provider else None
    if not isinstance(role, CfnResource):
        return
    if options.path is not None:
        role.add_property_override("Path", options.path)
    if options.permissions_boundary is not None:
        role.add_property_override("PermissionsBoundary", options.permissions_boundary.managed_policy_arn)
