"""Copies a model to a prefix: looks what is there, copies what is missing, checked, and the manifest last.

A file is written whole when it is small, else in parts that a later run goes on from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from pydantic import ValidationError

from seatrial.stage.destination import MANIFEST, Manifest, ManifestFile, for_each, manifest_text, s3_failures
from seatrial.stage.source import StoppedError, base64_of, checksums_of, hex_of, part_bytes
from seatrial_base.errors import StageError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, HeadObjectOutputTypeDef

    from seatrial.stage.destination import Destination
    from seatrial.stage.source import Checksums, ModelFiles, SourceFile


@dataclass(frozen=True, slots=True)
class Look:
    """One file, and whether its object is there already.

    Attributes:
        checksums: Of its content, when it had to be read to compare.
        there: Its entry of the manifest when its object is there and is right.
    """

    file: SourceFile
    checksums: Checksums | None
    there: ManifestFile | None


@dataclass(frozen=True, slots=True)
class Survey:
    """What a copy would do.

    Attributes:
        looks: One for each file, sorted by name.
        old: The manifest under the prefix; `None` when there is none that can be read.
        others: What is under the prefix and is neither the manifest nor a file of this model.
    """

    looks: tuple[Look, ...]
    old: Manifest | None
    others: tuple[str, ...]

    @property
    def missing(self) -> tuple[Look, ...]:
        """What must be copied."""
        return tuple(look for look in self.looks if look.there is None)


def survey(source: ModelFiles, destination: Destination, stop: threading.Event) -> Survey:
    """Look what of a model is under a prefix already.

    Raises:
        StageError: SEA361 for the bucket, SEA362 for each file that can't be looked at.
    """
    destination.check()
    looks = for_each(source.files, lambda file: _look(file, destination, stop), lambda file: file.name, stop)
    ours = {MANIFEST, *(file.name for file in source.files)}
    with s3_failures(destination.uri):
        others = tuple(name for name in destination.names() if name not in ours)
        try:
            body = destination.s3.get_object(Bucket=destination.bucket, Key=destination.key(MANIFEST))["Body"].read()
            old = Manifest.model_validate_json(body)
        except (destination.s3.exceptions.NoSuchKey, ValidationError):
            old = None
        return Survey(looks, old, others)


def _look(file: SourceFile, destination: Destination, stop: threading.Event) -> Look:
    head = destination.head(file.name)
    if head is None or head["ContentLength"] != file.size_bytes:
        return Look(file, None, None)
    # The source lists a digest, so that nothing has to be read, or downloaded, to compare.
    if file.listed_digest is not None:
        return Look(file, None, _entry_by_digest(file, head))
    with file.fetch() as path:
        checksums = checksums_of(path, file.size_bytes, stop)
    right = head.get("ChecksumSHA256") == checksums.s3
    return Look(file, checksums, entry_of(file, checksums) if right else None)


def _entry_by_digest(file: SourceFile, head: HeadObjectOutputTypeDef) -> ManifestFile | None:
    """Return the entry of an object that was copied from a file of the digest that the source lists, else `None`."""
    checksum = head.get("ChecksumSHA256", "")
    if not checksum or head["Metadata"].get(SOURCE_DIGEST) != file.listed_digest:
        return None
    kind, _, digest = (file.listed_digest or "").partition(":")
    in_parts = "-" in checksum
    sha256 = digest if kind == "sha256" else "" if in_parts else hex_of(checksum)
    if not sha256 or (not in_parts and checksum != base64_of(sha256)):
        return None
    return ManifestFile(name=file.name, size_bytes=file.size_bytes, sha256=sha256, checksum_sha256=checksum)


def entry_of(file: SourceFile, checksums: Checksums) -> ManifestFile:
    """Return the manifest's entry of a file that was read."""
    return ManifestFile(
        name=file.name, size_bytes=file.size_bytes, sha256=checksums.sha256, checksum_sha256=checksums.s3
    )


def copy_model(
    source: ModelFiles,
    destination: Destination,
    survey_result: Survey,
    *,
    replace: bool,
    stop: threading.Event,
    on_bytes: Callable[[int], None],
) -> Manifest:
    """Copy what is missing and write the manifest.

    While a file is missing there is no manifest: an older one is deleted before the first byte is written.

    Args:
        replace: Overwrite another model or revision under the prefix.
        stop: Set it to end the work at the next part; running it again goes on from there.
        on_bytes: Called with each number of bytes that is there.

    Raises:
        StageError: SEA364 when the prefix holds another model, SEA362 and SEA363 for each file that failed.
    """
    old = survey_result.old
    if old is not None and not replace and _is_another(source, old, survey_result.missing):
        what = f"{old.model} at {old.revision}" if old.revision else f"other files of {old.model}"
        hint = "endpoints may use it: choose another prefix, or overwrite it with --replace"
        raise StageError.of("SEA364", f"the prefix holds {what}", where=destination.uri, hint=hint)
    # A manifest promises every file that it lists. It goes first, so that a copy that is cut off leaves none.
    if survey_result.missing and old is not None:
        with s3_failures(destination.uri):
            destination.s3.delete_object(Bucket=destination.bucket, Key=destination.key(MANIFEST))
    for look in survey_result.looks:
        on_bytes(look.file.size_bytes if look.there else 0)
    copied = for_each(
        survey_result.missing,
        lambda look: _copy(look, destination, stop, on_bytes),
        lambda look: look.file.name,
        stop,
    )
    kept = tuple(look.there for look in survey_result.looks if look.there)
    earlier = old.files if old is not None and not replace else ()
    others = tuple(file for file in earlier if file.name in survey_result.others)
    every = {file.name: file for file in (*others, *copied, *kept)}
    listed = tuple(every[name] for name in sorted(every))
    size_bytes = sum(file.size_bytes for file in listed)
    manifest = Manifest(model=source.model, revision=source.revision, size_bytes=size_bytes, files=listed)
    if survey_result.missing or old is None or not manifest.same_content(old):
        with s3_failures(destination.uri):
            destination.s3.put_object(
                Bucket=destination.bucket,
                Key=destination.key(MANIFEST),
                Body=manifest_text(manifest).encode(),
                ContentType="application/json",
                **encryption(destination),
            )
    return manifest


def _is_another(source: ModelFiles, old: Manifest, missing: Sequence[Look]) -> bool:
    if source.revision is not None or old.revision is not None:
        return (old.model, old.revision) != (source.model, source.revision)
    known = {file.name: file.sha256 for file in old.files}
    return any(_sha256(look) != known.get(look.file.name) for look in missing)


def _copy(look: Look, destination: Destination, stop: threading.Event, on_bytes: Callable[[int], None]) -> ManifestFile:
    file = look.file
    with file.fetch() as path:
        checksums = look.checksums or _read(file, path, stop)
        Upload(destination, file, path, checksums, stop, on_bytes).run()
    head = destination.head(file.name)
    # Read back from the store: a manifest is of what is there, not of what was sent.
    if head is None or head["ContentLength"] != file.size_bytes or head.get("ChecksumSHA256") != checksums.s3:
        hint = "stage it again; if it fails again, the store does not keep SHA-256 checksums"
        raise StageError.of("SEA363", "the object differs from its source", where=file.name, hint=hint)
    return entry_of(file, checksums)


def _read(file: SourceFile, path: Path, stop: threading.Event) -> Checksums:
    read_bytes = path.stat().st_size
    checksums = checksums_of(path, file.size_bytes, stop)
    if read_bytes != file.size_bytes or not checksums.agrees(file.listed_digest):
        listed = f"the source lists {file.size_bytes:,} bytes with another checksum"
        message = f"{read_bytes:,} bytes were read, but {listed}"
        raise StageError.of("SEA363", message, where=file.name, hint="stage it again when nothing writes to it")
    return checksums


def _sha256(look: Look) -> str:
    if look.checksums is not None:
        return look.checksums.sha256
    with look.file.fetch() as path:
        return checksums_of(path, look.file.size_bytes).sha256


SOURCE_DIGEST = "seatrial-digest"
"""Metadata key of the digest that the source listed. An object with it was copied from a file of that digest."""


class Encryption(TypedDict, total=False):
    """The arguments by which S3 encrypts an object."""

    ServerSideEncryption: Literal["aws:kms"]
    SSEKMSKeyId: str


@dataclass(frozen=True, slots=True)
class Upload:
    """One file on its way.

    Attributes:
        checksums: Of its content; S3 refuses a part that differs.
        stop: Set when the user stops the work.
        on_bytes: Called with each number of bytes that has arrived, or was there.
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
        pages = at.s3.get_paginator("list_parts").paginate(
            Bucket=at.bucket, Key=at.key(self.file.name), UploadId=upload_id
        )
        # By checksum, not by number alone: the file may have changed since the upload began.
        there = {
            (part["PartNumber"], part.get("ChecksumSHA256", ""), part["Size"]): part["ETag"]
            for page in pages
            for part in page.get("Parts", ())
        }
        for number, checksum in enumerate(self.checksums.parts, start=1):
            if self.stop.is_set():
                raise StoppedError
            length = min(size, self.file.size_bytes - (number - 1) * size)
            tag = there.get((number, checksum, length))
            if tag is None:
                with self.path.open("rb") as file:
                    file.seek((number - 1) * size)
                    body = file.read(size)
                tag = at.s3.upload_part(
                    Bucket=at.bucket,
                    Key=at.key(self.file.name),
                    UploadId=upload_id,
                    PartNumber=number,
                    Body=body,
                    ChecksumSHA256=checksum,
                )["ETag"]
            self.on_bytes(length)
            yield {"PartNumber": number, "ETag": tag, "ChecksumSHA256": checksum}

    def _begun(self) -> str:
        """Return the upload to go on with: the latest unfinished one of this object, else a new one.

        A file whose digest the source listed is begun again: the metadata of an upload is set when it begins, so an
        old one might carry another digest than this file's.
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
