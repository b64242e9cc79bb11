"""Looks what of a model is under a prefix already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.stage.destination import MANIFEST, Manifest, ManifestFile, s3_failures
from seatrial.stage.parallel import for_each
from seatrial.stage.source import base64_of, checksums_of, hex_of
from seatrial.stage.upload import TOLD

if TYPE_CHECKING:
    import threading

    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef

    from seatrial.stage.destination import Destination
    from seatrial.stage.source import Checksums, ModelFiles, SourceFile


@dataclass(frozen=True, slots=True)
class Look:
    """One file, and whether its object is there already.

    Attributes:
        file: The file.
        checksums: What reading it gave, when it had to be read to tell.
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
        others: What lies under the prefix and is neither the manifest nor a file of this model.
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
        return Survey(looks, _read_manifest(destination), others)


def _look(file: SourceFile, destination: Destination, stop: threading.Event) -> Look:
    head = destination.head(file.name)
    if head is None or head["ContentLength"] != file.size_bytes:
        return Look(file, None, None)
    if file.told is not None:
        return Look(file, None, _told_entry(file, head))
    with file.fetch() as path:
        checksums = checksums_of(path, file.size_bytes, stop)
    right = head.get("ChecksumSHA256") == checksums.s3
    return Look(file, checksums, entry_of(file, checksums) if right else None)


def _told_entry(file: SourceFile, head: HeadObjectOutputTypeDef) -> ManifestFile | None:
    """Return the entry of an object that was copied from a file of the digest that the source tells, else `None`."""
    checksum = head.get("ChecksumSHA256", "")
    if not checksum or head["Metadata"].get(TOLD) != file.told:
        return None
    kind, _, digest = (file.told or "").partition(":")
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


def _read_manifest(destination: Destination) -> Manifest | None:
    try:
        body = destination.s3.get_object(Bucket=destination.bucket, Key=destination.key(MANIFEST))["Body"].read()
        return Manifest.model_validate_json(body)
    except destination.s3.exceptions.NoSuchKey:
        return None
    except ValidationError:
        return None
