"""Copies a model to a prefix: looks what is there, copies what is missing, checked, and the manifest last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.stage.destination import MANIFEST, Manifest, ManifestFile, for_each, manifest_text, s3_failures
from seatrial.stage.source import base64_of, checksums_of, hex_of
from seatrial.stage.upload import SOURCE_DIGEST, Upload, encryption
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
    # The source tells a digest, so that nothing has to be read, or downloaded, to compare.
    if file.listed_digest is not None:
        return Look(file, None, _entry_by_digest(file, head))
    with file.fetch() as path:
        checksums = checksums_of(path, file.size_bytes, stop)
    right = head.get("ChecksumSHA256") == checksums.s3
    return Look(file, checksums, entry_of(file, checksums) if right else None)


def _entry_by_digest(file: SourceFile, head: HeadObjectOutputTypeDef) -> ManifestFile | None:
    """Return the entry of an object that was copied from a file of the digest that the source tells, else `None`."""
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
        destination: Where to.
        survey_result: What `survey` found there.
        replace: Overwrite another model or revision under the prefix.
        stop: Set it to end the work at the next part; running it again goes on from there.
        on_bytes: Told of each number of bytes that is there.

    Raises:
        StageError: SEA364 when the prefix holds another model, SEA362 and SEA363 for each file that failed.
    """
    if survey_result.old is not None and not replace:
        _refuse_another(source, survey_result, survey_result.old, destination)
    # A manifest promises every file that it lists. It goes first, so that a copy that is cut off leaves none.
    if survey_result.missing and survey_result.old is not None:
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
    files = (*copied, *kept)
    earlier = survey_result.old.files if survey_result.old is not None and not replace else ()
    every = {file.name: file for file in earlier if file.name in survey_result.others} | {
        file.name: file for file in files
    }
    listed = tuple(every[name] for name in sorted(every))
    size_bytes = sum(file.size_bytes for file in listed)
    manifest = Manifest(model=source.model, revision=source.revision, size_bytes=size_bytes, files=listed)
    if survey_result.missing or survey_result.old is None or not manifest.same_content(survey_result.old):
        with s3_failures(destination.uri):
            destination.s3.put_object(
                Bucket=destination.bucket,
                Key=destination.key(MANIFEST),
                Body=manifest_text(manifest).encode(),
                ContentType="application/json",
                **encryption(destination),
            )
    return manifest


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
        message = (
            f"{read_bytes:,} bytes were read, but the source lists {file.size_bytes:,} bytes with another checksum"
        )
        raise StageError.of("SEA363", message, where=file.name, hint="stage it again when nothing writes to it")
    return checksums


def _refuse_another(source: ModelFiles, survey_result: Survey, old: Manifest, destination: Destination) -> None:
    if source.revision is not None or old.revision is not None:
        another = (old.model, old.revision) != (source.model, source.revision)
    else:
        known = {file.name: file.sha256 for file in old.files}
        another = any(_sha256(look) != known.get(look.file.name) for look in survey_result.missing)
    if another:
        what = f"{old.model} at {old.revision}" if old.revision else f"other files of {old.model}"
        hint = "endpoints may use it: choose another prefix, or overwrite it with --replace"
        raise StageError.of("SEA364", f"the prefix holds {what}", where=destination.uri, hint=hint)


def _sha256(look: Look) -> str:
    if look.checksums is not None:
        return look.checksums.sha256
    with look.file.fetch() as path:
        return checksums_of(path, look.file.size_bytes).sha256
