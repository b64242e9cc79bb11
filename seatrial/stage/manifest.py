"""The manifest of a staged model: written last, so that a prefix without one is half a copy."""

from __future__ import annotations

from seatrial.model import FrozenModel

MANIFEST = "seatrial-manifest.json"
MANIFEST_SCHEMA = "1"


class ManifestFile(FrozenModel):
    """One staged file.

    Attributes:
        name: Its path below the prefix.
        size_bytes: Its size.
        sha256: SHA-256 of its content, in hexadecimal digits.
        checksum_sha256: The object's ChecksumSHA256 as S3 tells it.
    """

    name: str
    size_bytes: int
    sha256: str
    checksum_sha256: str


class Manifest(FrozenModel):
    """What lies under a prefix. The same model gives the same bytes.

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
    """Write a manifest as JSON for people and machines."""
    return f"{manifest.model_dump_json(indent=2)}\n"
