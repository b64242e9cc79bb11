"""Archives whose bytes depend on their content only, because an asset's hash decides whether a GPU fleet restarts."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that the format can hold
_GZIP_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255))  # deflate, no flags, no time, unknown system
_LONGEST_BLOCK = 0xFFFF  # bytes of a stored block


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Pack files by name into a zip archive: sorted, no times, readable by everyone (mode 644)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, compresslevel=9)
    return buffer.getvalue()


def tar_gz_bytes(files: Mapping[str, bytes]) -> bytes:
    """Pack files by name into a gzipped tar archive: sorted, no times, owner 0, mode 644.

    The content is stored, not compressed: what a compressor writes depends on the machine's zlib, and these are small
    texts.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return _gzip_stored(buffer.getvalue())


def _gzip_stored(content: bytes) -> bytes:
    """Write a gzip file of one member (RFC 1952) in stored blocks (RFC 1951, 3.2.4), without name and time."""
    starts = range(0, max(len(content), 1), _LONGEST_BLOCK)
    blocks = [content[start : start + _LONGEST_BLOCK] for start in starts]
    stored = b"".join(
        struct.pack("<BHH", block is blocks[-1], len(block), len(block) ^ 0xFFFF) + block for block in blocks
    )
    return _GZIP_HEADER + stored + struct.pack("<LL", zlib.crc32(content), len(content) & 0xFFFFFFFF)
