"""Copies a model to a prefix: looks what is there, copies what is missing, checked, and the manifest last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.stage.destination import MANIFEST, Manifest, ManifestFile, for_each, manifest_text, s3_failures
from seatrial.stage.source import base64_of, checksums_of, hex_of
from seatrial.stage.upload import TOLD, Upload, encryption
from seatrial_base.errors import StageError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

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


def copy_model(
    source: ModelFiles,
    destination: Destination,
    found: Survey,
    *,
    replace: bool,
    stop: threading.Event,
    on_bytes: Callable[[int], None],
) -> Manifest:
    """Copy what is missing and write the manifest.

    While a file is missing there is no manifest: an older one is deleted before the first byte is written.

    Args:
        source: The model.
        destination: Where to.
        found: What `survey` found there.
        replace: Overwrite another model or revision under the prefix.
        stop: Set it to end the work at the next part; running it again goes on from there.
        on_bytes: Told of each number of bytes that is there.

    Raises:
        StageError: SEA364 when the prefix holds another model, SEA362 and SEA363 for each file that failed.
    """
    if found.old is not None and not replace:
        _refuse_another(source, found, found.old, destination)
    if found.missing and found.old is not None:
        with s3_failures(destination.uri):
            destination.s3.delete_object(Bucket=destination.bucket, Key=destination.key(MANIFEST))
    for look in found.looks:
        on_bytes(look.file.size_bytes if look.there else 0)
    copied = for_each(
        found.missing,
        lambda look: _copy(look, destination, stop, on_bytes),
        lambda look: look.file.name,
        stop,
    )
    kept = tuple(look.there for look in found.looks if look.there)
    manifest = _manifest(source, (*copied, *kept), found, replace=replace)
    if found.missing or found.old is None or not manifest.same_content(found.old):
        _write_manifest(manifest, destination)
    return manifest


def _copy(look: Look, destination: Destination, stop: threading.Event, on_bytes: Callable[[int], None]) -> ManifestFile:
    file = look.file
    with file.fetch() as path:
        checksums = look.checksums or _read(file, path, stop)
        Upload(destination, file, path, checksums, stop, on_bytes).run()
    head = destination.head(file.name)
    if head is None or head["ContentLength"] != file.size_bytes or head.get("ChecksumSHA256") != checksums.s3:
        hint = "stage it again; if it fails again, the store does not keep SHA-256 checksums"
        raise StageError.of("SEA363", "the object differs from its source", where=file.name, hint=hint)
    return entry_of(file, checksums)


def _read(file: SourceFile, path: Path, stop: threading.Event) -> Checksums:
    found_bytes = path.stat().st_size
    checksums = checksums_of(path, file.size_bytes, stop)
    if found_bytes != file.size_bytes or not checksums.agrees(file.told):
        message = (
            f"{found_bytes:,} bytes were read, but the source lists {file.size_bytes:,} bytes with another checksum"
        )
        raise StageError.of("SEA363", message, where=file.name, hint="stage it again when nothing writes to it")
    return checksums


def _refuse_another(source: ModelFiles, found: Survey, old: Manifest, destination: Destination) -> None:
    if source.revision is not None or old.revision is not None:
        another = (old.model, old.revision) != (source.model, source.revision)
    else:
        known = {file.name: file.sha256 for file in old.files}
        another = any(_sha256(look) != known.get(look.file.name) for look in found.missing)
    if another:
        what = f"{old.model} at {old.revision}" if old.revision else f"other files of {old.model}"
        hint = "endpoints may use it: choose another prefix, or overwrite it with --replace"
        raise StageError.of("SEA364", f"the prefix holds {what}", where=destination.uri, hint=hint)


def _sha256(look: Look) -> str:
    if look.checksums is not None:
        return look.checksums.sha256
    with look.file.fetch() as path:
        return checksums_of(path, look.file.size_bytes).sha256


def _manifest(source: ModelFiles, files: tuple[ManifestFile, ...], found: Survey, *, replace: bool) -> Manifest:
    """List this run's files, and those of earlier runs of the same model that still lie there."""
    earlier = found.old.files if found.old is not None and not replace else ()
    every = {file.name: file for file in earlier if file.name in found.others} | {file.name: file for file in files}
    listed = tuple(every[name] for name in sorted(every))
    size_bytes = sum(file.size_bytes for file in listed)
    return Manifest(model=source.model, revision=source.revision, size_bytes=size_bytes, files=listed)


def _write_manifest(manifest: Manifest, destination: Destination) -> None:
    with s3_failures(destination.uri):
        destination.s3.put_object(
            Bucket=destination.bucket,
            Key=destination.key(MANIFEST),
            Body=manifest_text(manifest).encode(),
            ContentType="application/json",
            **encryption(destination),
        )
