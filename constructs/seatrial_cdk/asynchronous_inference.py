"""Asynchronous inference: requests wait in a queue, answers are written to S3, topics are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker

if TYPE_CHECKING:
    from aws_cdk import aws_sns as sns

    from seatrial_cdk.output_location import OutputBucket, OutputLocation

REQUESTS, ANSWERS, FAILURES = "requests/", "answers/", "failures/"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsynchronousInference:
    """How requests are taken by `InvokeEndpointAsync`, and where their answers go.

    Attributes:
        requests: Where callers put requests; default: `requests/` of the default bucket, or of the answers' location.
        answers: Where answers are written; default: `answers/` of a private bucket of the endpoint's own.
        failures: Where failed requests are written; default: `failures/` beside the answers of the default bucket,
            else nowhere.
        success_topic: Is told of each answer.
        error_topic: Is told of each failed request.
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


def locations_of(asked: AsynchronousInference, bucket: OutputBucket | None) -> AsynchronousLocations:
    """Return the locations of an asynchronous endpoint.

    Args:
        asked: What is given.
        bucket: The default bucket; `None` where the answers have a location.
    """
    if asked.answers is not None:
        return AsynchronousLocations(
            requests=asked.requests or asked.answers, answers=asked.answers, failures=asked.failures
        )
    if bucket is None:
        raise TypeError("answers without a location need a bucket")
    return AsynchronousLocations(
        requests=asked.requests or bucket.location(REQUESTS),
        answers=bucket.location(ANSWERS),
        failures=asked.failures or bucket.location(FAILURES),
    )


def asynchronous_config(
    asked: AsynchronousInference, locations: AsynchronousLocations
) -> sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty:
    """Define asynchronous inference.

    Args:
        asked: Topics and concurrency.
        locations: Where answers are written.
    """
    config = sagemaker.CfnEndpointConfig
    topics = config.AsyncInferenceNotificationConfigProperty(
        success_topic=asked.success_topic.topic_arn if asked.success_topic else None,
        error_topic=asked.error_topic.topic_arn if asked.error_topic else None,
    )
    most = asked.max_concurrent_invocations
    return config.AsyncInferenceConfigProperty(
        output_config=config.AsyncInferenceOutputConfigProperty(
            s3_output_path=locations.answers.s3_uri,
            s3_failure_path=locations.failures.s3_uri if locations.failures else None,
            kms_key_id=locations.answers.key_arn,
            notification_config=topics if asked.success_topic or asked.error_topic else None,
        ),
        client_config=None
        if most is None
        else config.AsyncInferenceClientConfigProperty(max_concurrent_invocations_per_instance=most),
    )
