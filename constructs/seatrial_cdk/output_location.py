"""Where SageMaker writes answers and captures: a prefix of a bucket, and what a role needs for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_cdk.acknowledgements import acknowledge
from seatrial_cdk.policy import allow
from seatrial_cdk.private_bucket import private_bucket, removal_policy
from seatrial_cdk.value_checks import names_bucket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_cdk.place import StackPlace
    from seatrial_cdk.policy import Statement

ACKNOWLEDGED = {"S1": "The endpoint and its callers alone read and write the bucket; CloudTrail data events log who."}
DEFAULT_EXPIRY_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLocation:
    """A prefix of a bucket.

    Attributes:
        bucket_name: Name of the bucket, or a token of it.
        prefix: Beginning of the keys, with its final slash; empty for the whole bucket.
        key_arn: KMS key that encrypts the objects; default: what the bucket does by itself.
    """

    bucket_name: str
    prefix: str = ""
    key_arn: str | None = None

    @classmethod
    def of_uri(cls, s3_uri: str, *, key: kms.IKey | None = None) -> OutputLocation:
        """Return the location of an S3 URI.

        Args:
            s3_uri: As `s3://bucket/prefix/`.
            key: KMS key of the objects.

        Raises:
            SpecError: SEA439 when the text names no bucket; a bucket may be a token.
        """
        if not names_bucket(s3_uri):
            raise SpecError.of("SEA439", f"{s3_uri} is no S3 URI", hint="write s3://BUCKET/PREFIX/, or use in_bucket")
        bucket, _, prefix = s3_uri.removeprefix("s3://").partition("/")
        return cls(bucket_name=bucket, prefix=_folder(prefix), key_arn=None if key is None else key.key_arn)

    @classmethod
    def in_bucket(cls, bucket: s3.IBucket, prefix: str = "", *, key: kms.IKey | None = None) -> OutputLocation:
        """Return a location in a bucket.

        Args:
            bucket: The bucket.
            prefix: Beginning of the keys, with its final slash.
            key: KMS key of the objects; default: that of the bucket.
        """
        key = key or bucket.encryption_key
        return cls(bucket_name=bucket.bucket_name, prefix=_folder(prefix), key_arn=None if key is None else key.key_arn)

    @property
    def s3_uri(self) -> str:
        """The S3 URI."""
        return f"s3://{self.bucket_name}/{self.prefix}"

    def writing(self, place: StackPlace) -> Iterator[Statement]:
        """Yield what writes objects here."""
        yield allow(["s3:PutObject", "s3:AbortMultipartUpload"], [self._objects(place)])
        if self.key_arn is not None:
            yield allow(["kms:GenerateDataKey", "kms:Decrypt"], [self.key_arn])

    def reading(self, place: StackPlace) -> Iterator[Statement]:
        """Yield what reads objects here, and tells a missing one from one that is denied."""
        yield allow(["s3:GetObject"], [self._objects(place)])
        bucket = f"arn:{place.partition}:s3:::{self.bucket_name}"
        yield allow(["s3:ListBucket"], [bucket], {"StringLike": {"s3:prefix": [f"{self.prefix}*"]}})
        if self.key_arn is not None:
            yield allow(["kms:Decrypt"], [self.key_arn])

    def _objects(self, place: StackPlace) -> str:
        return f"arn:{place.partition}:s3:::{self.bucket_name}/{self.prefix}*"


def _folder(prefix: str) -> str:
    """Return a prefix with its final slash, so that rights end where it ends."""
    return f"{prefix.rstrip('/')}/" if prefix.strip("/") else ""


class OutputBucket(Construct):
    """A private bucket of requests, answers and captures, encrypted with a key of its own, over TLS only.

    Args:
        removal: `destroy` empties and deletes the bucket with the stack; `retain` keeps it and its key.
        expiry: How long an object is kept; default: 30 days.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal: Literal["destroy", "retain"] = "retain",
        expiry: Duration | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        policy = removal_policy(removal)
        self.key = kms.Key(
            self, "Key", description="Answers of an endpoint", enable_key_rotation=True, removal_policy=policy
        )
        rule = s3.LifecycleRule(expiration=expiry or Duration.days(DEFAULT_EXPIRY_DAYS))
        self.bucket = private_bucket(self, key=self.key, removal=removal, lifecycle_rules=[rule])
        acknowledge(self.bucket, ACKNOWLEDGED)

    def location(self, prefix: str) -> OutputLocation:
        """Return a prefix of the bucket."""
        return OutputLocation.in_bucket(self.bucket, prefix)
