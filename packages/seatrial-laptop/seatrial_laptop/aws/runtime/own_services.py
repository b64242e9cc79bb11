"""The S3 and the SNS of this same process, as far as invocations need them; use them off the event loop only."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Protocol

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from seatrial_laptop.aws.runtime.artifacts import ArtifactError, own_s3, read_object
from seatrial_laptop.environment import REGION

if TYPE_CHECKING:
    from collections.abc import Mapping


class ServiceFailed(Exception):  # noqa: N818 (named after what happened)
    """An object could not be read or written, or a message not published; the message says why."""


class Services(Protocol):
    """Where inputs are read, results written and notifications sent."""

    def read(self, url: str) -> bytes:
        """Return the content of an `s3://bucket/key`.

        Raises:
            ServiceFailed: There is no such object, or it can't be read.
        """

    def write(self, url: str, body: bytes, content_type: str) -> None:
        """Write an `s3://bucket/key`.

        Raises:
            ServiceFailed: The bucket isn't there, or refuses it.
        """

    def publish(self, topic_arn: str, message: str) -> None:
        """Publish a message to a topic.

        Raises:
            ServiceFailed: The topic isn't there, or refuses it.
        """


class TopicsClient(Protocol):
    """The call of SNS that is made here."""

    def publish(self, **request: object) -> Mapping[str, object]:
        """Publish a message."""


@functools.cache
def _own_sns() -> TopicsClient:
    client: TopicsClient = boto3.client("sns", region_name=REGION)
    return client


class OwnServices:
    """The S3 and the SNS of this process."""

    def read(self, url: str) -> bytes:
        """Return the content of an `s3://bucket/key`.

        Raises:
            ServiceFailed: There is no such object, or it can't be read.
        """
        try:
            found = read_object(url)
        except (ArtifactError, BotoCoreError) as error:
            raise ServiceFailed(str(error)) from error
        if found is None:
            raise ServiceFailed(f"Could not find {url}.")
        return found

    def write(self, url: str, body: bytes, content_type: str) -> None:
        """Write an `s3://bucket/key`.

        Raises:
            ServiceFailed: The bucket isn't there, or refuses it.
        """
        bucket, _, key = url.removeprefix("s3://").partition("/")
        try:
            own_s3().put_object(Bucket=bucket, Key=key, Body=body, ContentType=content_type)
        except (ClientError, BotoCoreError) as error:
            raise ServiceFailed(f"Could not write {url}: {error}") from error

    def publish(self, topic_arn: str, message: str) -> None:
        """Publish a message to a topic.

        Raises:
            ServiceFailed: The topic isn't there, or refuses it.
        """
        try:
            _own_sns().publish(TopicArn=topic_arn, Message=message)
        except (ClientError, BotoCoreError) as error:
            raise ServiceFailed(f"Could not publish to {topic_arn}: {error}") from error


OWN: Final = OwnServices()
"""What an embedded AWS uses; tests give others."""
