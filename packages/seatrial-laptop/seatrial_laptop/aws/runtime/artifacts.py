"""The files that a container finds in its model folder: the unpacked artifact, read from the embedded S3."""

from __future__ import annotations

import functools
import io
import tarfile
from typing import TYPE_CHECKING, Final

import boto3
from botocore.exceptions import ClientError

from seatrial_laptop.environment import REGION

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_s3 import S3Client


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
    body = read_object(url)
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

    Raises:
        ArtifactError: S3 refuses to give it.
    """
    for url in object_urls(f"{prefix.rstrip('/')}/"):
        name = url.removeprefix(f"{prefix.rstrip('/')}/")
        if name in READ_BY_ENGINE or ("/" not in name and name.endswith(".gguf")):
            (folder / name).write_bytes(read_object(url) or b"")


def object_urls(prefix: str) -> list[str]:
    """Return the objects under an `s3://bucket/prefix`, by name; none when there is no such bucket.

    Raises:
        ArtifactError: S3 refuses to tell them.
    """
    bucket, _, start = prefix.removeprefix("s3://").partition("/")
    pages = own_s3().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=start)
    try:
        return [f"s3://{bucket}/{found['Key']}" for page in pages for found in page.get("Contents", [])]
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":
            return []
        raise ArtifactError(f"Could not list {prefix}: {error}.") from error


def read_object(url: str) -> bytes | None:
    """Return the content of an `s3://bucket/key`, or None when there is no such object.

    Raises:
        ArtifactError: S3 refuses to give it.
    """
    bucket, _, key = url.removeprefix("s3://").partition("/")
    try:
        answer = own_s3().get_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchKey", "NoSuchBucket", "404"):
            return None
        raise ArtifactError(f"Could not read {url}: {error}.") from error
    return answer["Body"].read()
