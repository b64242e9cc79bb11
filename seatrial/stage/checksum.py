"""The checksums of a file, as its source and as S3 tell them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.units import MIB

if TYPE_CHECKING:
    import threading
    from pathlib import Path

SMALLEST_PART_BYTES = 32 * MIB
MOST_PARTS = 10_000  # Amazon S3 user guide, multipart upload limits


class StoppedError(Exception):
    """The user stopped the work; parts that were written stay, and the next run goes on from them."""


@dataclass(frozen=True, slots=True)
class Checksums:
    """What one reading of a file gives.

    Attributes:
        sha256: Of the whole file, in hexadecimal digits.
        git_sha1: The id of the file as a git blob, in hexadecimal digits.
        parts: SHA-256 of each part that it is uploaded in, in Base64 as S3 writes it; one entry for a small file.
    """

    sha256: str
    git_sha1: str
    parts: tuple[str, ...]

    @property
    def s3(self) -> str:
        """Return the ChecksumSHA256 that S3 gives the object.

        Of an object put whole it is the file's SHA-256; of one uploaded in parts it is composite: the SHA-256 of the
        parts' digests, a hyphen, and their number (Amazon S3 user guide, checking object integrity).
        """
        if len(self.parts) == 1:
            return self.parts[0]
        joined = b"".join(base64.b64decode(part) for part in self.parts)
        return f"{_base64(hashlib.sha256(joined).digest())}-{len(self.parts)}"

    def agrees(self, told: str | None) -> bool:
        """Return whether the digest that a source told is this file's; `None` tells nothing, and agrees."""
        return told is None or told in (f"sha256:{self.sha256}", f"git-sha1:{self.git_sha1}")


def part_bytes(size_bytes: int) -> int:
    """Return the size of a part of a file: 32 MiB, or the whole MiB with which 10,000 parts suffice.

    It depends on the size only, so that a later run finds the parts of an earlier one.
    """
    needed = -(-size_bytes // MOST_PARTS)
    return max(SMALLEST_PART_BYTES, -(-needed // MIB) * MIB)


def checksums_of(path: Path, size_bytes: int, stop: threading.Event | None = None) -> Checksums:
    """Read a file once, part by part, and return its checksums.

    Args:
        path: The file.
        size_bytes: Its size as it was listed, which sets the size of the parts.
        stop: Ends the reading at the next part, once it is set.

    Raises:
        StoppedError: Once `stop` is set.
        OSError: When it can't be read.
    """
    whole = hashlib.sha256()
    blob = hashlib.sha1(f"blob {size_bytes}\0".encode(), usedforsecurity=False)
    parts: list[str] = []
    with path.open("rb") as file:
        while (part := file.read(part_bytes(size_bytes))) or not parts:
            if stop is not None and stop.is_set():
                raise StoppedError
            whole.update(part)
            blob.update(part)
            parts.append(_base64(hashlib.sha256(part).digest()))
    return Checksums(whole.hexdigest(), blob.hexdigest(), tuple(parts))


def hex_of(checksum_sha256: str) -> str:
    """Return the hexadecimal digits of a SHA-256 in Base64."""
    return base64.b64decode(checksum_sha256).hex()


def base64_of(sha256: str) -> str:
    """Return the Base64 of a SHA-256 in hexadecimal digits."""
    return _base64(bytes.fromhex(sha256))


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
