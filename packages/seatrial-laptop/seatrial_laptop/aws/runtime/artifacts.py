"""The files that a container finds in its model folder: the unpacked artifact, read from the embedded S3."""

from __future__ import annotations

import functools
import io
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from seatrial_laptop.aws.rights import download_denial, publication_denial, upload_denial
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sns import SNSClient


READ_BY_ENGINE: Final = ("serving.properties", "config.json")


class ArtifactError(Exception):
    """The artifact isn't there, isn't a tar.gz file or would leave its folder."""


@functools.cache
def own_s3() -> S3Client:
    """Return a client of this same process's S3; use it off the event loop only."""
    return boto3.client("s3", region_name=REGION)


def unpack_artifact(url: str, folder: Path) -> None:
    """Unpack an `s3://bucket/key` tar.gz file into a folder.

    Raises:
        ArtifactError: The object isn't there, isn't a tar.gz file, or a member would leave the folder.
    """
    body = read_s3_object(url)
    if body is None:
        raise ArtifactError(f"Could not find model data at {url}.")
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ArtifactError(f"Could not unpack model data at {url}: {error}.") from error


def copy_prefix(prefix: str, folder: Path) -> None:
    """Copy what the local engine reads under an `s3://bucket/prefix/` into a folder; other weights stay where they are.

    That is `serving.properties`, `config.json` and GGUF files.
    """
    for url in object_urls(f"{prefix.rstrip('/')}/"):
        name = url.removeprefix(f"{prefix.rstrip('/')}/")
        if name in READ_BY_ENGINE or ("/" not in name and name.endswith(".gguf")):
            (folder / name).write_bytes(read_s3_object(url) or b"")


def object_urls(prefix: str) -> list[str]:
    """Return the objects under an `s3://bucket/prefix`, by name; none when there is no such bucket."""
    bucket, _, start = prefix.removeprefix("s3://").partition("/")
    pages = own_s3().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=start)
    try:
        return [f"s3://{bucket}/{stored['Key']}" for page in pages for stored in page.get("Contents", [])]
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":
            return []
        raise ArtifactError(f"Could not list {prefix}: {error}.") from error


def read_s3_object(url: str) -> bytes | None:
    """Return the content of an `s3://bucket/key`, or None when there is no such object."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    try:
        answer = own_s3().get_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchKey", "NoSuchBucket", "404"):
            return None
        raise ArtifactError(f"Could not read {url}: {error}.") from error
    return answer["Body"].read()


class ServiceFailed(Exception):  # noqa: N818 (named after what happened)
    """An object could not be read or written, or a message not published; the message is the reason."""


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


@functools.cache
def _own_sns() -> SNSClient:
    return boto3.client("sns", region_name=REGION)


class OwnServices:
    """The S3 and the SNS of this process."""

    def read(self, url: str) -> bytes:
        """Return the content of an `s3://bucket/key`."""
        try:
            content = read_s3_object(url)
        except (ArtifactError, BotoCoreError) as error:
            raise ServiceFailed(str(error)) from error
        if content is None:
            raise ServiceFailed(f"Could not find {url}.")
        return content

    def write(self, url: str, body: bytes, content_type: str) -> None:
        """Write an `s3://bucket/key`."""
        bucket, _, key = url.removeprefix("s3://").partition("/")
        try:
            own_s3().put_object(Bucket=bucket, Key=key, Body=body, ContentType=content_type)
        except (ClientError, BotoCoreError) as error:
            raise ServiceFailed(f"Could not write {url}: {error}") from error

    def publish(self, topic_arn: str, message: str) -> None:
        """Publish a message to a topic."""
        try:
            _own_sns().publish(TopicArn=topic_arn, Message=message)
        except (ClientError, BotoCoreError) as error:
            raise ServiceFailed(f"Could not publish to {topic_arn}: {error}") from error


@dataclass(frozen=True, slots=True)
class RoleServices:
    """S3 and SNS as an execution role may use them."""

    role_arn: str
    services: Services

    def read(self, url: str) -> bytes:
        """Return the content of an `s3://bucket/key`."""
        _refuse(download_denial(self.role_arn, url))
        return self.services.read(url)

    def write(self, url: str, body: bytes, content_type: str) -> None:
        """Write an `s3://bucket/key`."""
        _refuse(upload_denial(self.role_arn, url))
        self.services.write(url, body, content_type)

    def publish(self, topic_arn: str, message: str) -> None:
        """Publish a message to a topic."""
        _refuse(publication_denial(self.role_arn, topic_arn))
        self.services.publish(topic_arn, message)


def _refuse(reason: str | None) -> None:
    if reason:
        raise ServiceFailed(reason)


OWN: Final = OwnServices()
"""What an embedded AWS uses; tests give others."""
