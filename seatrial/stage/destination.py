"""Destination of a copied model: a prefix of an S3 bucket, and the failures of many files of it at a time."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from seatrial.account.reader import aws_failures
from seatrial.specs.shapes import HINTS, S3_PREFIX
from seatrial.stage.source import StoppedError
from seatrial_base.errors import SpecError, StageError
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel
from seatrial_load.aws.errors import aws_problem

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef

_REASONS = {
    "404": "there is no such bucket",
    "NoSuchBucket": "there is no such bucket",
    "403": "access to the bucket is denied",
    "AccessDenied": "access is denied",
}
MANIFEST = "seatrial-manifest.json"
MANIFEST_SCHEMA = "1"
WORKERS = 8
"""Files at once: together with parts of 32 MiB this bounds the memory that file contents take to 256 MiB."""
Item = TypeVar("Item")
Result = TypeVar("Result")
_CHANGED = "the file changed during the copy: stage it again when nothing writes to it"


@dataclass(frozen=True, slots=True)
class Destination:
    """A prefix of a bucket, and how objects are written there.

    Attributes:
        s3: Client of the bucket's account; used by several threads.
        prefix: Begins each key; ends with a slash.
        kms_key: Key that S3 encrypts the objects with; `None` leaves it to the bucket's default.
    """

    s3: S3Client
    bucket: str
    prefix: str
    kms_key: str | None = None

    @property
    def uri(self) -> str:
        """The prefix as `model.s3_uri` wants it."""
        return f"s3://{self.bucket}/{self.prefix}"

    def key(self, name: str) -> str:
        """Return the key of a file."""
        return f"{self.prefix}{name}"

    def check(self) -> None:
        """Refuse a bucket that can't be used.

        Raises:
            StageError: SEA361 when it does not exist or is not ours to read.
            BenchError: As `aws_failures` when AWS can't be read.
        """
        with s3_failures(self.uri):
            self.s3.head_bucket(Bucket=self.bucket)

    def head(self, name: str) -> HeadObjectOutputTypeDef | None:
        """Return the head of a file's object, its checksum included; `None` when there is none."""
        try:
            return self.s3.head_object(Bucket=self.bucket, Key=self.key(name), ChecksumMode="ENABLED")
        except self.s3.exceptions.ClientError as error:
            if error.response["Error"].get("Code") in ("404", "NoSuchKey"):
                return None
            raise

    def names(self) -> tuple[str, ...]:
        """Return the names of everything under the prefix."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix)
        keys = (entry["Key"] for page in pages for entry in page.get("Contents", ()))
        return tuple(key.removeprefix(self.prefix) for key in keys)


def split_uri(uri: str) -> tuple[str, str]:
    """Return bucket and prefix of an `s3://bucket/prefix/`.

    Raises:
        SpecError: SEA361 when it is none, or lacks the final slash.
    """
    if not re.match(S3_PREFIX, uri):
        raise SpecError.of("SEA361", f"{uri!r} is not an S3 prefix", field="--to", hint=HINTS[S3_PREFIX])
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, prefix


def s3_failures(uri: str) -> AbstractContextManager[None]:
    """Turn what S3 refuses within into an error with its remedy.

    Raises:
        StageError: SEA361 when S3 refuses.
        BenchError: As `aws_failures`: no credentials, no connection, no permission.
    """
    hint = "use an existing bucket with write access; check the account and region of your credentials"
    return aws_failures(uri, lambda error: StageError.of("SEA361", reason(error), where=uri, hint=hint))


def reason(error: ClientError) -> str:
    """Return what S3 answered, in words."""
    details = error.response.get("Error", {})
    code = details.get("Code", "")
    return _REASONS.get(code) or f"S3 refused: {code} {details.get('Message', '')}".rstrip()


class ManifestFile(FrozenModel):
    """One staged file.

    Attributes:
        sha256: SHA-256 of its content, in hexadecimal digits.
        checksum_sha256: The object's ChecksumSHA256 as S3 returns it.
    """

    name: str
    size_bytes: int
    sha256: str
    checksum_sha256: str


class Manifest(FrozenModel):
    """The files under a prefix. The same model gives the same bytes.

    Attributes:
        schema_version: Version of this document.
        model: Hub id, or the name of the folder that it was copied from.
        revision: Commit of the hub repository; `None` for a folder.
        size_bytes: Size of all files together.
        files: Sorted by name.
    """

    schema_version: str = MANIFEST_SCHEMA
    model: str
    revision: str | None
    size_bytes: int
    files: tuple[ManifestFile, ...]

    def same_content(self, other: Manifest) -> bool:
        """Return whether another manifest lists the same files with the same content."""
        return {(file.name, file.sha256) for file in self.files} == {(file.name, file.sha256) for file in other.files}


def manifest_text(manifest: Manifest) -> str:
    """Write a manifest as indented JSON."""
    return f"{manifest.model_dump_json(indent=2)}\n"


def for_each(
    items: Sequence[Item], work: Callable[[Item], Result], name: Callable[[Item], str], stop: threading.Event
) -> tuple[Result, ...]:
    """Return what the work gives for each item, in the items' order.

    Args:
        items: What is worked on.
        work: The work on one item, on a thread of its own.
        name: The item's name, for its problem.
        stop: Set when the caller is interrupted, so that running work ends at its next part.

    Raises:
        StageError: With the problem of every item that failed, sorted by name; expired credentials are reported once.
    """
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = {pool.submit(work, item): item for item in items}
        try:
            for future in as_completed(futures):
                # Every item is waited for, so that the problems of all are reported and not the first alone.
                future.exception()
        except BaseException:
            # Ctrl-C: what runs ends at its next part, and what waits never begins.
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    problems = dict.fromkeys(failure for future, item in futures.items() for failure in _problems(future, name(item)))
    if problems:
        raise StageError(sorted(problems, key=lambda problem: problem.where))
    return tuple(future.result() for future in futures)


def _problems(future: Future[Result], name: str) -> tuple[Finding, ...]:
    error = future.exception()
    if error is None or isinstance(error, StoppedError):
        return ()
    if isinstance(error, StageError):
        return error.problems
    problem = aws_problem(error, where=name) if isinstance(error, BotoCoreError | ClientError) else None
    if problem is not None and problem.rule == "SEA503":  # the credentials are those of every file: one problem
        return (replace(problem, place=Place(field=problem.field)),)
    if problem is not None and problem.rule == "SEA511":
        return (problem,)
    if isinstance(error, ClientError):
        hint = _CHANGED if error.response["Error"].get("Code") == "BadDigest" else ""
        return (Finding("SEA362", Place.at(name), reason(error), hint),)
    if isinstance(error, BotoCoreError | OSError):
        return (Finding("SEA362", Place.at(name), f"{error}".replace("\n", " ")),)
    raise error
