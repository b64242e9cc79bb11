"""Locations of responses and captures in S3, and the rights that a role needs for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_cdk.policy import acknowledge, allow
from seatrial_cdk.private_bucket import private_bucket, removal_policy
from seatrial_cdk.value_checks import names_bucket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aws_cdk import aws_sns as sns

    from seatrial_cdk.place import StackPlace
    from seatrial_cdk.policy import Statement


ACKNOWLEDGED = {"S1": "The endpoint and its callers alone read and write the bucket; CloudTrail data events log who."}
DEFAULT_EXPIRY_DAYS = 30
CAPTURES = "captures/"
MODES = {"input": "Input", "output": "Output"}
REQUESTS, ANSWERS, FAILURES = "requests/", "answers/", "failures/"


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
        """Yield what reads objects here, and distinguishes a missing one from one that is denied."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCapture:
    """What SageMaker keeps of requests and answers.

    Attributes:
        destination: Where it is written; default: `captures/` of a private bucket of the endpoint's own.
        sampling_percentage: Share of the requests, 1 to 100 percent.
        capture: What is kept of a request.
    """

    destination: OutputLocation | None = None
    sampling_percentage: int = 100
    capture: tuple[Literal["input", "output"], ...] = ("input", "output")


def capture_config(
    capture: DataCapture, destination: OutputLocation
) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    """Define the capture; JSON is kept as text, not as base64."""
    config = sagemaker.CfnEndpointConfig
    return config.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percentage,
        destination_s3_uri=destination.s3_uri,
        kms_key_id=destination.key_arn,
        capture_options=[config.CaptureOptionProperty(capture_mode=MODES[each]) for each in capture.capture],
        capture_content_type_header=config.CaptureContentTypeHeaderProperty(json_content_types=["application/json"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AsynchronousInference:
    """How requests are taken by `InvokeEndpointAsync`, and where their answers go.

    Attributes:
        requests: Where callers put requests; default: `requests/` of the default bucket, or of the answers' location.
        answers: Where answers are written; default: `answers/` of a private bucket of the endpoint's own.
        failures: Where failed requests are written; default: `failures/` beside the answers of the default bucket,
            else nowhere.
        success_topic: Is notified of each response.
        error_topic: Is notified of each failed request.
        max_concurrent_invocations: Most requests that an instance is sent at a time, 1 to 1,000; default: the
            service's choice.
    """

    requests: OutputLocation | None = None
    answers: OutputLocation | None = None
    failures: OutputLocation | None = None
    success_topic: sns.ITopic | None = None
    error_topic: sns.ITopic | None = None
    max_concurrent_invocations: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AsynchronousLocations:
    """Where requests are read and answers written, once defaults are known.

    Attributes:
        requests: Where callers put requests.
        answers: Where answers are written.
        failures: Where failed requests are written; `None` for nowhere.
    """

    requests: OutputLocation
    answers: OutputLocation
    failures: OutputLocation | None


def locations_of(inference: AsynchronousInference, bucket: OutputBucket | None) -> AsynchronousLocations:
    """Return the locations of an asynchronous endpoint.

    Args:
        bucket: The default bucket; `None` where the answers have a location.
    """
    if inference.answers is not None:
        return AsynchronousLocations(
            requests=inference.requests or inference.answers, answers=inference.answers, failures=inference.failures
        )
    if bucket is None:
        raise TypeError("answers without a location need a bucket")
    return AsynchronousLocations(
        requests=inference.requests or bucket.location(REQUESTS),
        answers=bucket.location(ANSWERS),
        failures=inference.failures or bucket.location(FAILURES),
    )


def asynchronous_config(
    inference: AsynchronousInference, locations: AsynchronousLocations
) -> sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty:
    """Define asynchronous inference."""
    config = sagemaker.CfnEndpointConfig
    topics = config.AsyncInferenceNotificationConfigProperty(
        success_topic=inference.success_topic.topic_arn if inference.success_topic else None,
        error_topic=inference.error_topic.topic_arn if inference.error_topic else None,
    )
    most = inference.max_concurrent_invocations
    return config.AsyncInferenceConfigProperty(
        output_config=config.AsyncInferenceOutputConfigProperty(
            s3_output_path=locations.answers.s3_uri,
            s3_failure_path=locations.failures.s3_uri if locations.failures else None,
            kms_key_id=locations.answers.key_arn,
            notification_config=topics if inference.success_topic or inference.error_topic else None,
        ),
        client_config=None
        if most is None
        else config.AsyncInferenceClientConfigProperty(max_concurrent_invocations_per_instance=most),
    )
