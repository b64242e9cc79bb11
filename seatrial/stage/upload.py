"""Writes one file as an object: whole when it is small, else in parts that a later run goes on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from seatrial.stage.source import StoppedError, part_bytes

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

    from seatrial.stage.destination import Destination
    from seatrial.stage.source import Checksums, SourceFile

SOURCE_DIGEST = "seatrial-digest"
"""Metadata key of the digest that the source told. An object with it was copied from a file of that digest."""


class Encryption(TypedDict, total=False):
    """The arguments that tell S3 how to encrypt an object."""

    ServerSideEncryption: Literal["aws:kms"]
    SSEKMSKeyId: str


@dataclass(frozen=True, slots=True)
class Upload:
    """One file on its way.

    Attributes:
        checksums: Of its content; S3 refuses a part that differs.
        stop: Set when the user stops the work.
        on_bytes: Told of each number of bytes that has arrived, or was there.
    """

    destination: Destination
    file: SourceFile
    path: Path
    checksums: Checksums
    stop: threading.Event
    on_bytes: Callable[[int], None]

    def run(self) -> None:
        """Write the object.

        Raises:
            StoppedError: Between two parts, once `stop` is set.
            ClientError: What S3 refuses, a part whose content differs from its checksum included.
            OSError: The file can't be read.
        """
        at, key = self.destination, self.destination.key(self.file.name)
        if len(self.checksums.parts) == 1:
            at.s3.put_object(
                Bucket=at.bucket,
                Key=key,
                Body=self.path.read_bytes(),
                ChecksumSHA256=self.checksums.s3,
                Metadata=self._metadata(),
                **encryption(at),
            )
            self.on_bytes(self.file.size_bytes)
            return
        upload_id = self._begun()
        parts = list(self._parts(upload_id))
        at.s3.complete_multipart_upload(Bucket=at.bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": parts})

    def _parts(self, upload_id: str) -> Iterator[CompletedPartTypeDef]:
        at, size = self.destination, part_bytes(self.file.size_bytes)
        there = self._parts_there(upload_id)
        for number, checksum in enumerate(self.checksums.parts, start=1):
            if self.stop.is_set():
                raise StoppedError
            length = min(size, self.file.size_bytes - (number - 1) * size)
            # By checksum, not by number alone: the file may have changed since the upload began.
            tag = there.get((number, checksum, length))
            if tag is None:
                tag = at.s3.upload_part(
                    Bucket=at.bucket,
                    Key=at.key(self.file.name),
                    UploadId=upload_id,
                    PartNumber=number,
                    Body=self._read(number, size),
                    ChecksumSHA256=checksum,
                )["ETag"]
            self.on_bytes(length)
            yield {"PartNumber": number, "ETag": tag, "ChecksumSHA256": checksum}

    def _read(self, number: int, size: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek((number - 1) * size)
            return file.read(size)

    def _parts_there(self, upload_id: str) -> dict[tuple[int, str, int], str]:
        """Return the tag of every part that has arrived, by its number, checksum and size."""
        at = self.destination
        pages = at.s3.get_paginator("list_parts").paginate(
            Bucket=at.bucket, Key=at.key(self.file.name), UploadId=upload_id
        )
        return {
            (part["PartNumber"], part.get("ChecksumSHA256", ""), part["Size"]): part["ETag"]
            for page in pages
            for part in page.get("Parts", ())
        }

    def _begun(self) -> str:
        """Return the upload to go on with: the latest unfinished one of this object, else a new one.

        A file whose digest the source told is begun anew: the metadata of an upload is set when it begins, so an old
        one might carry another digest than this file's.
        """
        at, key = self.destination, self.destination.key(self.file.name)
        pages = at.s3.get_paginator("list_multipart_uploads").paginate(Bucket=at.bucket, Prefix=key)
        old = [upload for page in pages for upload in page.get("Uploads", ()) if upload["Key"] == key]
        if old and self.file.listed_digest is None:
            return max(old, key=lambda upload: upload["Initiated"])["UploadId"]
        for upload in old:
            at.s3.abort_multipart_upload(Bucket=at.bucket, Key=key, UploadId=upload["UploadId"])
        return at.s3.create_multipart_upload(
            Bucket=at.bucket,
            Key=key,
            ChecksumAlgorithm="SHA256",
            Metadata=self._metadata(),
            **encryption(at),
        )["UploadId"]

    def _metadata(self) -> dict[str, str]:
        return {SOURCE_DIGEST: self.file.listed_digest} if self.file.listed_digest else {}


def encryption(destination: Destination) -> Encryption:
    """Return how objects of a destination are encrypted; nothing leaves it to the bucket's default."""
    if destination.kms_key is None:
        return {}
    return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": destination.kms_key}
